"""Bounds that provably hold for the operands at hand, element by element, and the lengths where integers wrap.

Notation: ``u`` is the unit roundoff of bfloat16, ``U32`` of float32; ``S`` is ``|x| @ |w|``. A bound scales with S
and not with the result, because sums may cancel. All are computed in float64, whose own error is below their slack.
"""

from __future__ import annotations  # the pages show the names of array types, not what they stand for

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tpu_systems_audit.precision.rounding import LARGEST_CODE, bf16_round, quantized_operands
from tpu_systems_audit.units import InputError

U = 2.0**-8
U32 = 2.0**-24
U64 = 2.0**-53
SMALLEST_NORMAL = 2.0**-126
OVERFLOW = 2.0**128
# Half a quantization step, and what the rounding of scale and quotient can add to it.
HALF_STEP = 0.5 * (1 + 254 * U32)


def bf16_bound(x: ArrayLike, w: ArrayLike) -> NDArray[np.float64]:
    """Bound the error of a bf16 product that adds in float32, against the exact product of the unrounded operands.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).

    Raises:
        InputError: where the bound does not exist, because something may overflow.

    ``(2u + u²) S + (K-1) 2⁻²⁴ (1+u)² S``: the operands' rounding, then K-1 additions in any order, each rounded
    to nearest (Jeannerod and Rump, 2013; no limit on K). Products of two bfloat16 numbers are exact in float32.
    Where values or products below 2⁻¹²⁶ may be flushed to zero, what that can lose is added.

    >>> bf16_bound([[3.0]], [[-2.0]]).tolist()  # K = 1: only the operands' rounding
    [[0.046966552734375]]
    """
    left, right, size = _sizes(x, w)
    length = left.shape[1]
    return np.asarray((2 * U + U * U) * size + (length - 1) * U32 * (1 + U) ** 2 * size + _flushed(left, right))


def bf16_accumulation_factor(length: int) -> float:
    """Bound the relative error, against S of the rounded operands, when products and sums are rounded to bf16.

    Args:
        length: K, the number of products added.

    ``K u + (K-1) u²``. The better known ``K u / (1 - K u)`` does not exist from K = 256; this form always
    does, but from there it promises less than 100 %.

    >>> bf16_accumulation_factor(1)
    0.00390625
    """
    return length * U + (length - 1) * U * U


def bf16_accumulation_bound(x: ArrayLike, w: ArrayLike) -> NDArray[np.float64]:
    """Bound the error of a product whose products and sums are rounded to bf16, against the exact product.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).

    Raises:
        InputError: where the bound does not exist, because something may overflow.
    """
    left, right, size = _sizes(x, w)
    rounded = np.abs(bf16_round(left)).astype(np.float64) @ np.abs(bf16_round(right)).astype(np.float64)
    return (2 * U + U * U) * size + bf16_accumulation_factor(left.shape[1]) * rounded + _flushed(left, right)


def int8_bound(x: ArrayLike, w: ArrayLike, per_channel: bool = True) -> NDArray[np.float64]:
    """Bound what quantizing both operands to int8 can change in the exact product.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).
        per_channel: one scale per row of *x* and per column of *w*; else one for each tensor.

    Raises:
        InputError: when the operands cannot be quantized, or K is so long that int32 sums can wrap.

    With ``h = (1 + 254·2⁻²⁴) / 2``: ``h sw Σ|x| + h sx Σ|w| + K h² sx sw``. The literal half a step is false,
    because the quotient x / s is itself rounded. ``rescale_bound`` adds the rounding of the float32 result.
    """
    left, right = quantized_operands(x, w, per_channel)
    length = left.codes.shape[1]
    if length > int32_k_limit():
        raise InputError(f"K: {length} is so long that int32 sums can wrap; at most {int32_k_limit()} is right")
    rows = np.abs(np.asarray(x, np.float64)).sum(axis=1, keepdims=True)
    columns = np.abs(np.asarray(w, np.float64)).sum(axis=0, keepdims=True)
    sx, sw = left.scale.astype(np.float64), right.scale.astype(np.float64)
    return np.asarray(HALF_STEP * sw * rows + HALF_STEP * sx * columns + length * HALF_STEP**2 * sx * sw)


def rescale_bound(out: ArrayLike) -> NDArray[np.float64]:
    """Bound the rounding when int32 sums become float32 and are multiplied by two scales.

    Args:
        out: the float32 result, shape (M, N).

    Raises:
        InputError: when the result is not finite.

    Three roundings to nearest, and 2⁻¹²⁶ where the result may be flushed to zero.
    """
    result = np.abs(np.asarray(out, np.float64))
    if not np.isfinite(result).all():
        raise InputError("out: is not finite, so that no bound exists; smaller operands are right")
    return np.asarray(3 * U32 / (1 - 3 * U32) * result + 2 * SMALLEST_NORMAL)


def reference_bound(x: ArrayLike, w: ArrayLike) -> NDArray[np.float64]:
    """Bound how far ``exact_product`` itself is from the exact product: K-1 additions in float64.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).
    """
    left, right = (np.abs(np.asarray(np.asarray(each, np.float32), np.float64)) for each in (x, w))
    return np.asarray((left.shape[1] - 1) * U64 * (left @ right) * (1 + 2.0**-20))


def float32_bound(x: ArrayLike, w: ArrayLike) -> NDArray[np.float64]:
    """Bound the error of a float32 product of the unrounded operands: K roundings, products included.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).

    Raises:
        InputError: where the bound does not exist, because something may overflow.
    """
    size = _sizes(x, w)[2]
    length = np.asarray(x).shape[1]
    return np.asarray(length * U32 * size + 2 * length * SMALLEST_NORMAL)


def likely_bf16_accumulation_factor(length: int, sums: int, doubt: float = 0.01) -> float:
    """Estimate the same factor when rounding errors are independent with mean zero: reported, never asserted.

    Args:
        length: K, the number of products added.
        sums: how many sums must stay within it together, M times N.
        doubt: the chance allowed that one does not.

    ``exp(λ √K u + K u² / (1 - u)) - 1`` (Higham and Mary, 2019). Real rounding errors need not be independent:
    ones added in bf16 are not.
    """
    lam = math.sqrt(2 * math.log(2 * length * sums / doubt)) / (1 - U)
    return math.expm1(lam * math.sqrt(length) * U + length * U * U / (1 - U))


def int32_k_limit(lowest_code: int = -LARGEST_CODE) -> int:
    """The longest K whose int32 sum of int8 products cannot wrap.

    >>> int32_k_limit(), int32_k_limit(-128)
    (133144, 131071)
    """
    return (2**31 - 1) // lowest_code**2


def float32_k_limit(lowest_code: int = -LARGEST_CODE) -> int:
    """The longest K whose int8 products a float32 sum holds exactly.

    >>> float32_k_limit(), float32_k_limit(-128)
    (1040, 1024)
    """
    return 2**24 // lowest_code**2


def _sizes(x: ArrayLike, w: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]:
    """The operands as float32 and S, once nothing in the product can overflow."""
    left, right = np.asarray(x, np.float32), np.asarray(w, np.float32)
    for name, values in (("x", left), ("w", right)):
        if not np.isfinite(bf16_round(values)).all():
            raise InputError(f"{name}: holds a value that is not finite in bfloat16, so that no bound exists")
    size = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)
    if (size * (1 + U) ** 2 * (1 + bf16_accumulation_factor(left.shape[1])) >= OVERFLOW).any():
        raise InputError("x, w: their products may sum beyond float32, so that no bound exists")
    return left, right, size


def _flushed(x: NDArray[np.float32], w: NDArray[np.float32]) -> NDArray[np.float64] | float:
    """What is lost where operands, products or sums below 2**-126 become zero; 0 where none can be so small."""
    left, right = np.abs(x).astype(np.float64), np.abs(w).astype(np.float64)
    length = x.shape[1]
    least = [float(np.min(each, where=each > 0, initial=np.inf)) for each in (left, right)]
    # A sum of bfloat16 products is a multiple of 2**-14 times the least of their powers of two.
    products = 2 * length * SMALLEST_NORMAL if least[0] * least[1] < SMALLEST_NORMAL * 2.0**16 else 0.0
    if min(least) >= SMALLEST_NORMAL:
        return products
    small = [np.where(each < SMALLEST_NORMAL, SMALLEST_NORMAL, 0.0) * (each > 0) for each in (left, right)]
    return np.asarray((small[0] @ right + left @ small[1] + small[0] @ small[1]) * (1 + U) + products)
