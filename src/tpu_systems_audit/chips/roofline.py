"""The roofline: which of arithmetic and HBM bandwidth bounds a kernel on a generation."""

from dataclasses import dataclass
from fractions import Fraction

from tpu_systems_audit.chips.generations import PEAK_DTYPES, Generation
from tpu_systems_audit.units import InputError, dtype_bits


@dataclass(frozen=True)
class Roofline:
    """Where one intensity stands on one generation's roofline."""

    generation: str
    dtype: str
    intensity_flop_per_byte: Fraction
    ridge_flop_per_byte: Fraction
    bound: str
    attainable_tflops: Fraction
    fraction_of_peak: Fraction


def ridge_point(chip: Generation, dtype: str = "bf16") -> Fraction | None:
    """Compute the intensity at which arithmetic and HBM take equally long, in FLOP/byte.

    Args:
        chip: the generation.
        dtype: ``bf16``, ``int8`` or ``fp8``.

    Returns:
        Peak over bandwidth, exactly; None where the generation has no such peak.

    Source: S. Williams, A. Waterman, D. Patterson, Roofline, CACM 52(4), 2009.

    >>> from tpu_systems_audit.chips.generations import generation
    >>> round(float(ridge_point(generation("v5e"))), 1)
    240.5
    """
    peak = chip.peak_tflops(dtype)
    return None if peak is None else peak * 1000 / chip.hbm_gb_per_s


def matmul_intensity(m: int, k: int, n: int, dtype: str = "bf16") -> Fraction:
    """Compute the intensity of an (m, k) x (k, n) product that moves each matrix once, in FLOP/byte.

    Args:
        m: rows of the first operand, at least 1.
        k: contracted, at least 1.
        n: columns of the second operand, at least 1.
        dtype: of operands and result.

    A multiply-add counts as 2 FLOP; the bytes are those of both operands and the result.

    >>> float(matmul_intensity(1024, 1024, 1024))
    341.3333333333333
    """
    values = m * k + k * n + m * n
    return Fraction(2 * m * k * n * 8, values * dtype_bits(dtype, "dtype"))


def roofline(chip: Generation, intensity_flop_per_byte: Fraction, dtype: str = "bf16") -> Roofline:
    """Place an intensity on a generation's roofline.

    Args:
        chip: the generation.
        intensity_flop_per_byte: FLOP per byte moved from or to HBM, above 0.
        dtype: ``bf16``, ``int8`` or ``fp8``.

    Returns:
        The bound (``compute`` at and above the ridge point, else ``hbm``) and the rate that it allows.

    Raises:
        InputError: when the generation has no peak at *dtype*.

    >>> from tpu_systems_audit.chips.generations import generation
    >>> roofline(generation("v5e"), Fraction(170)).bound
    'hbm'
    """
    ridge, peak = ridge_point(chip, dtype), chip.peak_tflops(dtype)
    if ridge is None or peak is None:
        have = " ".join(d for d in PEAK_DTYPES if chip.peak_tflops(d) is not None)
        raise InputError(f"--dtype: {chip.name} has no {dtype} peak; {have} is right")
    attainable = min(peak, intensity_flop_per_byte * chip.hbm_gb_per_s / 1000)
    bound = "compute" if intensity_flop_per_byte >= ridge else "hbm"
    return Roofline(chip.name, dtype, intensity_flop_per_byte, ridge, bound, attainable, attainable / peak)
