"""What is a model made of: its arrays, its caches, and the count of its parameters."""

from tpu_systems_audit.models.config import read_config
from tpu_systems_audit.models.families import supported
from tpu_systems_audit.models.shapes import Cache, Leaf, Model
from tpu_systems_audit.models.transformer import from_config, load, model_names

__all__ = ["Cache", "Leaf", "Model", "from_config", "load", "model_names", "read_config", "supported"]
