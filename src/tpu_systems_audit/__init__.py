"""Size TPU memory, bound precision error and audit XProf traces, each figure with what vouches for it."""

__version__ = "0.7.0"
