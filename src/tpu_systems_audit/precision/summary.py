"""The error summary: four ways of computing a product, each error beside its bound, and what the sums are kept in."""

from __future__ import annotations  # the pages show the names of array types, not what they stand for

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tpu_systems_audit.precision.bounds as bounds
from tpu_systems_audit.precision.probe import Certificate, certify
from tpu_systems_audit.precision.rounding import (
    bf16_accumulated_matmul,
    bf16_matmul,
    difference,
    exact_product,
    int8_matmul,
)
from tpu_systems_audit.precision.rows import Shape

METHODS = ("bf16", "bf16_accumulated", "int8_tensor", "int8_channel")


@dataclass(frozen=True)
class MethodError:
    """The error of one method against the exact product and against a float32 one, and the bounds of both norms.

    ``within_bound`` compares every element with its own bound, not only the largest.
    """

    max_abs: float
    rel_fro: float
    bound: float
    rel_fro_bound: float
    within_bound: bool
    max_abs_vs_float32: float
    rel_fro_vs_float32: float
    bound_vs_float32: float


@dataclass(frozen=True)
class Summary:
    """The errors of every method on the same operands, and the certificate of the bf16 product used."""

    shape: Shape
    seed: int
    errors: dict[str, MethodError]
    accumulator: Certificate


def drawn(shape: Shape, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw standard normal operands of shapes (M, K) and (K, N).

    Args:
        shape: M, K, N.
        seed: of numpy's default generator.
    """
    m, length, n = shape
    draw = np.random.default_rng(seed)
    return draw.standard_normal((m, length)).astype(np.float32), draw.standard_normal((length, n)).astype(np.float32)


def summarize(shape: Shape, seed: int = 0) -> Summary:
    """Compute a drawn product in every method, and certify the dot product that the bf16 one uses.

    Args:
        shape: M, K, N.
        seed: draws the operands and the probes.

    Raises:
        InputError: when K is so long that int32 sums can wrap.
    """
    x, w = drawn(shape, seed)
    errors = {method: method_error(method, x, w) for method in METHODS}
    return Summary(shape, seed, errors, certify(bf16_matmul, shape, seed))


def method_error(method: str, x: ArrayLike, w: ArrayLike) -> MethodError:
    """Compute one method's error on the operands given, and its bounds.

    Args:
        method: one of ``METHODS``.
        x: float32 values, shape (M, K).
        w: float32 values, shape (K, N).

    Raises:
        InputError: where a bound does not exist for these operands.

    >>> error = method_error("bf16", [[3.0]], [[-2.0]])
    >>> error.max_abs, error.bound
    (0.0, 0.046966552734375)
    """
    compute, bound = _METHODS[method]
    out, exact = compute(x, w), exact_product(x, w)
    allowed = bound(x, w) + (bounds.rescale_bound(out) if method.startswith("int8") else 0.0)
    single = (np.asarray(x, np.float32) @ np.asarray(w, np.float32)).astype(np.float64)
    ours, theirs = difference(out, exact), difference(out, single)
    norm = float(np.linalg.norm(exact))
    within = np.abs(out.astype(np.float64) - exact) <= allowed + bounds.reference_bound(x, w)
    return MethodError(
        max_abs=ours.max_abs,
        rel_fro=ours.rel_fro,
        bound=float(np.max(allowed)),
        rel_fro_bound=float(np.linalg.norm(allowed)) / norm if norm else float("inf"),
        within_bound=bool(within.all()),
        max_abs_vs_float32=theirs.max_abs,
        rel_fro_vs_float32=theirs.rel_fro,
        bound_vs_float32=float(np.max(allowed + bounds.float32_bound(x, w))),
    )


_Compute = Callable[[ArrayLike, ArrayLike], NDArray[np.float32]]
_Bound = Callable[[ArrayLike, ArrayLike], NDArray[np.float64]]
_METHODS: dict[str, tuple[_Compute, _Bound]] = {
    "bf16": (bf16_matmul, bounds.bf16_bound),
    "bf16_accumulated": (bf16_accumulated_matmul, bounds.bf16_accumulation_bound),
    "int8_tensor": (lambda x, w: int8_matmul(x, w, False), lambda x, w: bounds.int8_bound(x, w, False)),
    "int8_channel": (int8_matmul, bounds.int8_bound),
}
