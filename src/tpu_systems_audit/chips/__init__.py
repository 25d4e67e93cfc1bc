"""What is a TPU, and what bounds a kernel on it: generations, slices and rooflines."""

from tpu_systems_audit.chips.generations import (
    PEAK_DTYPES,
    Figure,
    Generation,
    generation,
    generations,
    parse_slice,
    sources,
)
from tpu_systems_audit.chips.roofline import Roofline, matmul_intensity, ridge_point, roofline
from tpu_systems_audit.chips.slices import Slice

__all__ = [
    "PEAK_DTYPES",
    "Figure",
    "Generation",
    "Roofline",
    "Slice",
    "generation",
    "generations",
    "matmul_intensity",
    "parse_slice",
    "ridge_point",
    "roofline",
    "sources",
]
