"""The accumulator certificate: what a dot product adds in, told from outside by rows whose exact answer is known.

A certificate holds for the shape it names and for M = 1, which hardware may treat as another instruction. It cannot
see through a function that recognises every row it is probed with; rows of drawn data are mixed in against that.
"""

from __future__ import annotations  # the pages show the names of array types, not what they stand for

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import tpu_systems_audit.precision.rows as rows
from tpu_systems_audit.precision.bounds import U32, U64
from tpu_systems_audit.precision.rows import FP32_BITS, MOST_BITS, Probe, Shape
from tpu_systems_audit.units import InputError

CERTIFIED = "certified"
TRUNCATING = "certified (truncating)"
ROUNDED = "f32-accumulate, output rounded"
REJECTED = "rejected"
UNDETERMINED = "undetermined"
WORSE = (CERTIFIED, TRUNCATING, ROUNDED, UNDETERMINED, REJECTED)

LEAST_LENGTH = 3
LONGEST_ORDER = 512  # of a longer K the order of adding is not probed

Dot = Callable[[NDArray[np.generic], NDArray[np.generic]], object]


@dataclass(frozen=True)
class Certificate:
    """What the probes found: the verdict, the bits that sums have, how they are added, and the reasons."""

    verdict: str
    width_bits: int | None
    order: str
    shape: Shape
    why: tuple[str, ...]


class Refused(Exception):  # noqa: N818
    """The function gave what no product is."""


def certify(dot: Dot, shape: Shape = (8, 320, 4), seed: int = 0) -> Certificate:
    """Certify that a bfloat16 dot product adds in float32 or better, at a shape and at M = 1.

    Args:
        dot: takes bfloat16 arrays of shapes (M, K) and (K, N), gives floats of shape (M, N).
        shape: M, K, N.
        seed: draws positions, scales and data.

    Raises:
        InputError: when *dot* raises.

    >>> certify(lambda x, w: x.astype("float32") @ w.astype("float32")).verdict
    'certified'
    """
    _, length, n = shape
    if length < LEAST_LENGTH:
        short = f"K = {length}: a sum of fewer than {LEAST_LENGTH} products has no order and no small term to lose"
        return Certificate(UNDETERMINED, None, "unknown", shape, (short,))
    found = [_probe(dot, each, np.random.default_rng(seed)) for each in dict.fromkeys([shape, (1, length, n)])]
    worst = max(found, key=lambda each: WORSE.index(each.verdict))
    widths = [each.width_bits for each in found if each.width_bits is not None]
    why = tuple(f"at M, K, N = {_sides(each.shape)}: {reason}" for each in found for reason in each.why)
    return Certificate(worst.verdict, min(widths, default=None), found[0].order, shape, why)


def ask(dot: Dot, call: Probe) -> NDArray[np.generic]:
    """Call a dot product twice with copies of the operands, and give what it answered both times.

    Args:
        dot: the function probed.
        call: operands and the exact result, whose shape the answer must have.
    """
    answers = []
    for _ in range(2):
        try:
            with np.errstate(all="ignore"):
                answer = np.asarray(dot(call.left.copy(), call.right.copy()))
        except (Exception, SystemExit) as error:
            sides = _sides((*call.left.shape, call.right.shape[1]))
            what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise InputError(f"--dot: raised {what} at M, K, N = {sides}; a product of the operands is right") from None
        if answer.shape != call.exact.shape:
            raise Refused(f"the result has shape {answer.shape} where {call.exact.shape} is right")
        answers.append(answer)
    if answers[0].tobytes() != answers[1].tobytes():
        raise Refused("two calls with equal operands gave different results")
    return answers[0]


def _probe(dot: Dot, shape: Shape, draw: np.random.Generator) -> Certificate:
    try:
        width = _width(dot, shape, draw)
        order = _order(dot, shape, draw)
        verdict, why = _verdict(dot, shape, draw)
    except Refused as reason:
        return Certificate(REJECTED, None, "unknown", shape, (str(reason),))
    return Certificate(verdict, width, order, shape, (f"P1: sums of {width} bits", *why, f"P5: adds {order}"))


def _verdict(dot: Dot, shape: Shape, draw: np.random.Generator) -> tuple[str, list[str]]:
    """The verdict of every probe but the ladder's width, and what failed or was noted."""
    length = shape[1]
    sparse = {
        "P1: lost a term of the 24th bit": rows.everywhere(length, draw),
        "P2: products are rounded": rows.products(length, draw),
        "P3: the result is rounded": rows.outputs(length, draw),
        "P4: the range is not float32's": rows.ranges(length, draw),
    }
    asked = [
        (name, call, _floats(dot, call))
        for name, each in sparse.items()
        for call in rows.sparse_calls(each, shape, draw)
    ]
    asked += [("P7: dense sums are not exact", call, _floats(dot, call)) for call in rows.dense_calls(shape, draw)]
    ends = [(call, _floats(dot, call)) for call in rows.sparse_calls(rows.roundings(length, draw), shape, draw)]
    data = [(call, _floats(dot, call)) for call in rows.data_calls(shape, draw)]

    bits = next((p for p in range(FP32_BITS, 7, -1) if all((_rounded(c.exact, p) == g).all() for _, c, g in asked)), 0)
    if not bits:
        failed = [name for name, call, got in asked if (got != call.exact).any()]
        return REJECTED, [f"{name} ({failed.count(name)} calls)" for name in dict.fromkeys(failed)]
    if any((np.abs(got - call.exact) > _allowed(call, bits)).any() for call, got in data):
        return REJECTED, ["P9: drawn data is further from the exact result than float32 sums can be"]
    if bits < FP32_BITS:
        return ROUNDED, [f"P3: the result is rounded to {bits} bits, after sums in float32"]
    if all(((got == call.exact) | (got == _rounded(call.exact, FP32_BITS))).all() for call, got in ends):
        return CERTIFIED, ["P2, P3, P4, P7, P8, P9: as exact as float32 sums to nearest"]
    if all((np.abs(got - call.exact) < np.abs(call.exact) * 2.0**-23).all() for call, got in ends):
        return TRUNCATING, ["P8: sums are not rounded to nearest; bounds need twice the unit roundoff"]
    return REJECTED, ["P8: sums are off by more than float32's last place"]


def _width(dot: Dot, shape: Shape, draw: np.random.Generator) -> int:
    """The widest step of the ladder up to which no order loses the small term."""
    for bits in range(2, MOST_BITS + 1):
        calls = rows.sparse_calls(rows.ladder(shape[1], bits, draw), shape, draw)
        if not all((_floats(dot, call) == call.exact).all() for call in calls):
            return bits - 1
    return MOST_BITS


def _order(dot: Dot, shape: Shape, draw: np.random.Generator) -> str:
    """Name the order of adding from how many terms are lost below the joins of position 0 with the others."""
    length = shape[1]
    if length > LONGEST_ORDER:
        return "in an order not probed"
    others = range(1, length)
    ahead = _lost(dot, shape, draw, [(0, j) for j in others])
    beside = _lost(dot, shape, draw, [(j - 1, j) for j in others])
    if ahead == [2] * len(ahead):
        return "exactly, whatever the order"
    first = next((j for j in others if ahead[j - 1] != j + 1), length)
    if first == length:
        return "in order"
    if beside == [length - j + 1 for j in others]:
        return "in reverse order"
    if ahead == [min(length, 2 ** j.bit_length()) for j in others]:
        return "pairwise"
    if ahead == [j + 1 if j < first else min(length, (j // first + 1) * first) for j in others]:
        return f"in blocks of {first}"
    return "in another order"


def _lost(dot: Dot, shape: Shape, draw: np.random.Generator, pairs: list[tuple[int, int]]) -> list[int]:
    lost: list[int] = []
    for call in rows.sparse_calls(rows.joins(shape[1], pairs), shape, draw):
        with np.errstate(all="ignore"):
            share = _floats(dot, call) / call.exact * (shape[1] - 2)
        lanes = share[0] if call.turned else share[:, 0]
        lost += [shape[1] - round(float(each)) if np.isfinite(each) else -1 for each in lanes]
    return lost[: len(pairs)]  # the last call repeats rows to be full


def _floats(dot: Dot, call: Probe) -> NDArray[np.float64]:
    answer = ask(dot, call)
    if "float" not in answer.dtype.name:  # bfloat16 is one too, but not to numpy's own tests
        raise Refused(f"the result is {answer.dtype}, where a float is right")
    return answer.astype(np.float64)


def _rounded(exact: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    fraction, exponent = np.frexp(exact)
    return np.asarray(np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits))


def _allowed(call: Probe, bits: int) -> NDArray[np.float64]:
    """What float32 sums, in any order and even truncated, may be off, plus the rounding of the result."""
    length = call.left.shape[1]
    size = np.abs(call.left).astype(np.float64) @ np.abs(call.right).astype(np.float64)
    return np.asarray((2 * U32 + 2 * U64) * length * size + 2.0**-bits * (np.abs(call.exact) + size * 2**-20))


def _sides(shape: Iterable[int]) -> str:
    return ", ".join(map(str, shape))
