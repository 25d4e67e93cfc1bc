"""Bytes of optimizer state: what Optax keeps for one array of parameters, without its few counters."""

from fractions import Fraction
from math import ceil, prod

from tpu_systems_audit.units import InputError, shown

ADAM8BIT_BLOCK = 256
ADAM8BIT_LEAST = 4096
ADAFACTOR_LEAST = 128

OPTIMIZERS = ("adamw", "adam", "sgd", "momentum", "adafactor", "lion", "adam8bit", "muon")
NEED_SHAPES = ("adafactor", "muon")

# Step counters and scalar settings that Optax keeps beside the moments, in bytes.
CONSTANT_BYTES = {
    "adamw": 4, "adam": 4, "sgd": 0, "momentum": 0, "adafactor": 4, "lion": 4, "adam8bit": 4, "muon": 20,
}  # fmt: skip


def moment_bytes(shape: tuple[int, ...], optimizer: str, moment: Fraction, weight: Fraction) -> Fraction:
    """Count the bytes of an optimizer's moments for one array.

    Args:
        shape: of the array.
        optimizer: one of ``OPTIMIZERS``.
        moment: bytes of one moment of one parameter; 8-bit Adam and Adafactor have their own.
        weight: bytes of one kept weight, which Adafactor's vectors take after.

    Raises:
        InputError: for an unknown optimizer.

    >>> moment_bytes((4096, 1024), "adamw", Fraction(4), Fraction(4)) == 8 * 4096 * 1024
    True
    """
    if optimizer not in OPTIMIZERS:
        raise InputError(f"--optimizer: {shown(optimizer)} is unknown; one of {' '.join(OPTIMIZERS)} is right")
    size = prod(shape)
    if optimizer in ("adamw", "adam"):
        return 2 * moment * size
    if optimizer in ("momentum", "lion"):
        return moment * size
    if optimizer == "adam8bit":
        return _adam8bit_bytes(size)
    if optimizer == "adafactor":
        return _adafactor_bytes(shape, weight)
    if optimizer == "muon":  # Muon orthogonalizes matrices; everything else falls back to Adam.
        return (moment if len(shape) == 2 else 2 * moment) * size
    return Fraction(0)


def _adam8bit_bytes(size: int) -> Fraction:
    """Two codes a value and two fp32 scales a block; a small array keeps two fp32 moments.

    Source: T. Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv 2110.02861.
    """
    if size < ADAM8BIT_LEAST:
        return Fraction(8 * size)
    return Fraction(2 * size + 2 * 4 * ceil(Fraction(size, ADAM8BIT_BLOCK)))


def _adafactor_bytes(shape: tuple[int, ...], value_bytes: Fraction) -> Fraction:
    """A row and a column vector for a matrix, a full second moment for anything small.

    Values have the dtype of the kept weights, and one-element stand-ins hold the unused slots, as in Optax.

    Source: N. Shazeer, M. Stern, Adafactor, arXiv 1804.04235.
    """
    size = prod(shape)
    large = sorted(shape)[-2:]
    if len(large) == 2 and large[0] >= ADAFACTOR_LEAST:
        return value_bytes * (size // large[0] + size // large[1] + 1)
    return value_bytes * (size + 2)
