"""What did you ask, and how is it said: the command line, its documents and their text."""

from tpu_systems_audit.cli.run import build_parser, main

__all__ = ["build_parser", "main"]
