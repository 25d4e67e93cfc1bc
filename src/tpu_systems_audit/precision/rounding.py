"""BF16 and symmetric INT8 products as a TPU is asked for them, and their error against the exact product.

JAX is imported when a product is computed, so that rounding, quantizing and bounds need only numpy.
"""

from __future__ import annotations  # the pages show the names of array types, not what they stand for

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tpu_systems_audit.units import InputError

LARGEST_CODE = 127  # symmetric: -128 is never used, so that negating a code cannot overflow
# Below it the scale is no normal float32, and a division by it may be one by zero.
SMALLEST_ABSMAX = LARGEST_CODE * 2.0**-126


@dataclass(frozen=True)
class Quantized:
    """INT8 codes in [-127, 127] and the float32 scale of each, dimensions kept: ``codes * scale`` is the value."""

    codes: NDArray[np.int8]
    scale: NDArray[np.float32]


@dataclass(frozen=True)
class Difference:
    """How far a result is from a reference, both numbers computed in float64."""

    max_abs: float
    rel_fro: float


def bf16_round(x: ArrayLike) -> NDArray[np.float32]:
    """Round to the nearest bfloat16, ties to even, and give the result as float32.

    Args:
        x: numbers of any shape; taken as float32 first.

    >>> float(bf16_round(257.0)), float(bf16_round(259.0))  # ties, above 256 where the spacing is 2
    (256.0, 260.0)
    """
    with np.errstate(over="ignore", invalid="ignore"):  # from halfway above the largest bfloat16 on it is inf
        return np.asarray(np.asarray(x, np.float32).astype(ml_dtypes.bfloat16), np.float32)


def quantize_int8(x: ArrayLike, axis: int | None) -> Quantized:
    """Quantize symmetrically: scale absmax / 127, codes rounded half to even.

    Args:
        x: float32 values of any shape.
        axis: the axis that one scale spans (it is reduced over); None for one scale for the whole tensor.

    Raises:
        InputError: when a value is inf or NaN, or when a scale would not be a normal float32 number.

    A channel of zeros gets scale 1 and codes 0. The scale is ``float32(absmax / 127)`` and the code
    ``rint(float32(x / scale))``, clipped to [-127, 127].

    >>> quantize_int8([127.0, 0.5, 1.5, 2.5], axis=None).codes.tolist()
    [127, 0, 2, 2]
    """
    values = np.asarray(x, np.float32)
    _refuse_nonfinite(values, "x")
    absmax = np.max(np.abs(values), axis=axis, keepdims=True, initial=0.0)
    tiny = (absmax > 0) & (absmax < SMALLEST_ABSMAX)
    if tiny.any():
        raise InputError(
            f"x: its largest magnitude {absmax[tiny][0]} in a channel is too small for a normal float32 scale; "
            f"0, or at least {SMALLEST_ABSMAX:.3g} is right"
        )
    scale = np.where(absmax > 0, absmax / np.float32(LARGEST_CODE), np.float32(1)).astype(np.float32)
    codes = np.clip(np.rint(values / scale), -LARGEST_CODE, LARGEST_CODE).astype(np.int8)
    return Quantized(codes, scale)


def int8_dot(x: NDArray[np.int8], w: NDArray[np.int8]) -> NDArray[np.int32]:
    """Multiply int8 codes, shapes (M, K) and (K, N), into int32 sums of shape (M, N).

    Without ``preferred_element_type`` the result would be int8 and wrap: four products of 127 * 127 would be 4.

    >>> seven = np.full((1, 4), 127, np.int8)
    >>> int8_dot(seven, seven.T).tolist()
    [[64516]]
    """
    from jax import lax

    _shapes(x, w)
    return np.asarray(lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=np.int32))


def int8_matmul(x: ArrayLike, w: ArrayLike, per_channel: bool = True) -> NDArray[np.float32]:
    """Quantize both operands, multiply in int8 with int32 sums, and rescale to float32.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).
        per_channel: one scale per row of *x* and per column of *w*; else one for each tensor.

    Raises:
        InputError: as ``quantize_int8`` does, or when the shapes do not fit.
    """
    left, right = quantized_operands(x, w, per_channel)
    with np.errstate(over="ignore"):  # beyond float32 the result is inf
        # One scale after the other: the product of two small scales may not be a normal number where the result is.
        return np.asarray(int8_dot(left.codes, right.codes).astype(np.float32) * left.scale * right.scale)


def quantized_operands(x: ArrayLike, w: ArrayLike, per_channel: bool) -> tuple[Quantized, Quantized]:
    """Quantize the operands of a product of shapes (M, K) and (K, N), contracted over K."""
    _shapes(np.asarray(x), np.asarray(w))
    return quantize_int8(x, axis=1 if per_channel else None), quantize_int8(w, axis=0 if per_channel else None)


def bf16_matmul(x: ArrayLike, w: ArrayLike) -> NDArray[np.float32]:
    """Round both operands to bfloat16 and multiply with float32 sums and a float32 result.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).

    >>> bf16_matmul(np.ones((1, 257)), np.ones((257, 1))).tolist()
    [[257.0]]
    """
    import jax.numpy as jnp
    from jax import lax

    left, right = (jnp.asarray(np.asarray(each, np.float32), jnp.bfloat16) for each in (x, w))
    _shapes(left, right)
    return np.asarray(lax.dot_general(left, right, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32))


def bf16_accumulated_matmul(x: ArrayLike, w: ArrayLike) -> NDArray[np.float32]:
    """Multiply with every product and every sum rounded to bfloat16, one k after the other.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).

    It is an explicit loop because a CPU's ``dot_general`` adds bfloat16 in float32 whatever it is asked.
    ``reduce_precision`` is used because a compiler may drop a cast to bfloat16 and back.

    >>> bf16_accumulated_matmul(np.ones((1, 257)), np.ones((257, 1))).tolist()  # 256 + 1 is a tie, and stays 256
    [[256.0]]
    """
    left, right = (bf16_round(each) for each in (x, w))
    _shapes(left, right)
    return np.asarray(_narrow_product()(left, right))


@cache
def _narrow_product() -> Any:
    """The loop, compiled once for each shape and not for each call."""
    import jax
    import jax.numpy as jnp

    def narrow(value: Any) -> Any:
        return jax.lax.reduce_precision(value, exponent_bits=8, mantissa_bits=7)

    def add(total: Any, pair: Any) -> Any:
        return narrow(total + narrow(pair[0][:, None] * pair[1][None, :])), None

    def product(left: Any, right: Any) -> Any:
        start = jnp.zeros((left.shape[0], right.shape[1]), jnp.float32)
        return jax.lax.scan(add, start, (left.T, right))[0]

    return jax.jit(product)


def exact_product(x: ArrayLike, w: ArrayLike) -> NDArray[np.float64]:
    """Multiply float32 values in float64: products are exact, and each of K - 1 sums is off by at most 2**-53.

    Args:
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).
    """
    left, right = (np.asarray(np.asarray(each, np.float32), np.float64) for each in (x, w))
    _shapes(left, right)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, and stays one
        return left @ right


def difference(got: ArrayLike, reference: ArrayLike) -> Difference:
    """Compare a result with a reference: the largest absolute error, and the relative Frobenius norm of the error.

    Args:
        got: numbers of any shape.
        reference: numbers of the same shape.

    Raises:
        InputError: when the shapes differ.

    The relative error is 0 when both norms are 0, and inf when only the reference's is. A NaN stays one.

    >>> difference([3.0, 4.0], [0.0, 5.0]).max_abs
    3.0
    """
    ours, theirs = np.asarray(got, np.float64), np.asarray(reference, np.float64)
    if ours.shape != theirs.shape:
        raise InputError(f"got: shape {ours.shape} is not the reference's; {theirs.shape} is right")
    with np.errstate(invalid="ignore"):  # inf - inf
        error = np.abs(ours - theirs)
    norm, size = float(np.linalg.norm(error)), float(np.linalg.norm(theirs))
    relative = norm / size if size else (norm if norm == 0 or np.isnan(norm) else float("inf"))
    return Difference(float(np.max(error, initial=0.0)), relative)


def _refuse_nonfinite(values: NDArray[np.float32], name: str) -> None:
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        raise InputError(f"{name}[{place}]: is {values[tuple(wrong[0])]}; every value must be finite")


def _shapes(x: Any, w: Any) -> None:
    if len(x.shape) != 2 or len(w.shape) != 2 or x.shape[1] != w.shape[0]:
        raise InputError(f"x, w: shapes {tuple(x.shape)} and {tuple(w.shape)} do not fit; (M, K) and (K, N) are right")
