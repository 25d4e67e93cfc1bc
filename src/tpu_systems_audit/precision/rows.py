"""The rows that an accumulator is probed with: operands of a product whose exact answer every order of adding gives.

A row holds a few values and zeros, or dense data. Powers of two that differ by row, column and position hide the
rows from a function that looks for them, and change no rounding.
"""

from __future__ import annotations  # the pages show the names of array types, not what they stand for

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

FP32_BITS = 24
MOST_BITS = 54  # the ladder's last step: more than float64 has
MOST_POSITIONS = 2048  # of a longer K a sample is probed
HUGE = 2.0**100  # next to it float64 loses every other term of a row
LARGE, SMALL = 2.0**96, 2.0**-80  # with the small term and the powers of two, still normal float32 numbers

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Row:
    """A few products at positions of a row, and their exact sum."""

    products: tuple[tuple[int, float, float], ...]  # position along K, left value, right value
    exact: float


@dataclass(frozen=True)
class Probe:
    """One call of the function probed: bfloat16 operands (M, K) and (K, N), and the exact result (M, N)."""

    left: NDArray[np.generic]
    right: NDArray[np.generic]
    exact: NDArray[np.float64]
    turned: bool = False  # the rows stand in the columns of the right operand


def ladder(length: int, bits: int, draw: np.random.Generator) -> Iterator[Row]:
    """P1: +1, 2**-(bits-1) and -1 in every order: the small term survives if the sums have that many bits.

    Args:
        length: K.
        bits: the width asked for.
        draw: where positions come from.
    """
    middle = length // 2
    fixed = [(0, 1, 2), (length - 3, length - 2, length - 1), (0, middle, length - 1)]
    drawn = [tuple(sorted(draw.choice(length, 3, replace=False))) for _ in range(3)]
    for places in (*fixed, *drawn):
        for p, q, r in permutations(int(place) for place in places):
            if len({p, q, r}) == 3:
                yield _small_term(p, q, r, bits)


def everywhere(length: int, draw: np.random.Generator) -> Iterator[Row]:
    """P1 at float32's 24 bits with the small term at every position: between neighbours, then anywhere.

    Args:
        length: K.
        draw: where positions come from.

    The rows of the second pass are far from 1, large and then small: some sums are narrow only there.
    """
    places = _positions(length, draw)
    half = len(places) // 2
    sizes = [1.0] * len(places) + [LARGE] * half + [SMALL] * (len(places) - half)
    for index, (place, size) in enumerate(zip([*places, *places], sizes, strict=True)):
        if index < len(places) and 0 < place < length - 1:
            p, r = place - 1, place + 1
        elif length < 8:
            p, r = (int(each) for each in draw.choice([e for e in range(length) if e != place], 2, replace=False))
        else:
            p, r = (int((place + step) % length) for step in draw.choice(np.arange(1, length), 2, replace=False))
        yield _small_term(*((p, place, r) if draw.integers(2) else (r, place, p)), FP32_BITS, size)


def products(length: int, draw: np.random.Generator) -> Iterator[Row]:
    """P2: products whose last bit, the 15th or 16th, is all that is left."""
    for place in _positions(length, draw):
        other = int((place + draw.integers(1, length)) % length)
        for value, rest in ((1 + 2.0**-7, 1 + 2.0**-6), (2 - 2.0**-7, 4 - 2.0**-5)):
            yield Row(((place, value, value), (other, -rest, 1.0)), 2.0**-14)


def outputs(length: int, draw: np.random.Generator) -> Iterator[Row]:
    """P3: 1 + 2**-12, which a result cast to bfloat16 or TF32 cannot hold."""
    for _ in range(16):
        p, q = (int(each) for each in draw.choice(length, 2, replace=False))
        yield Row(((p, 1.0, 1.0), (q, 2.0**-12, 1.0)), 1 + 2.0**-12)


def ranges(length: int, draw: np.random.Generator) -> Iterator[Row]:
    """P4: sizes that float16, fixed point and integers do not have."""
    for _ in range(8):
        p, q = (int(each) for each in draw.choice(length, 2, replace=False))
        for large in (HUGE, 2.0**-40, 1 / HUGE):
            yield Row(((p, large, 1.0),), large)
        yield Row(((p, 65536.0, 1.0), (q, -65280.0, 1.0)), 256.0)
        yield Row(((p, HUGE, 1 / HUGE),), 1.0)


def roundings(length: int, draw: np.random.Generator) -> Iterator[Row]:
    """P8: 1 plus a quarter and three quarters of float32's last place, of both signs."""
    for _ in range(16):
        p, q = (int(each) for each in draw.choice(length, 2, replace=False))
        for sign in (1.0, -1.0):
            for quarters in (1, 3):
                yield Row(((p, sign, 1.0), (q, sign * quarters * 2.0**-25, 1.0)), sign * (1 + quarters * 2.0**-25))


def joins(length: int, pairs: Iterable[tuple[int, int]]) -> Iterator[Row]:
    """P5: +HUGE at i, -HUGE at j, ones elsewhere: what is missing of K was added below where i and j join."""
    for i, j in pairs:
        ones = tuple((k, 1.0, 1.0) for k in range(length) if k not in (i, j))
        yield Row((*ones, (i, HUGE, 1.0), (j, -HUGE, 1.0)), float(length - 2))


def sparse_calls(rows: Iterable[Row], shape: Shape, draw: np.random.Generator) -> Iterator[Probe]:
    """Lay rows into calls: by turns as rows of the left operand and as columns of the right one.

    Args:
        rows: the rows; a new call begins where one wants another partner at a position.
        shape: M, K, N.
        draw: where the powers of two come from.
    """
    m, length, n = shape
    turned, waiting = m == 1 and n > 1, list(rows)
    while waiting:
        lanes = n if turned else m
        batch = _batch(waiting, lanes)
        del waiting[: len(batch)]
        wide, partner, exact = np.zeros((lanes, length)), np.ones(length), np.zeros(lanes)
        for lane in range(lanes):
            row = batch[lane % len(batch)]
            exact[lane] = row.exact
            for place, left, right in row.products:
                wide[lane, place], partner[place] = left, right
        others = np.repeat(partner[:, None], m if turned else n, axis=1)
        expected = np.repeat(exact[:, None], others.shape[1], axis=1)
        yield _scaled(wide, others, expected, draw, turned)
        turned = n > 1 and (m == 1 or not turned)


def dense_calls(shape: Shape, draw: np.random.Generator, rounds: int = 8) -> Iterator[Probe]:
    """P7: dense rows of whole numbers whose absolute products sum to at most 2**24, so that 24 bits are exact."""
    m, length, n = shape
    most = min(255, int((2**FP32_BITS / length) ** 0.5))
    for turn in range(rounds if most else 0):
        least = most // 2 if turn % 2 else 0  # every second draw is of one sign, and its sums come near 2**24
        sizes = [draw.integers(least, most + 1, size).astype(np.float64) for size in ((m, length), (length, n))]
        if turn % 2 == 0:
            sizes = [each * draw.choice([-1.0, 1.0], each.shape) for each in sizes]
        yield _scaled(sizes[0], sizes[1], sizes[0] @ sizes[1], draw, turned=False)


def data_calls(shape: Shape, draw: np.random.Generator, rounds: int = 6) -> Iterator[Probe]:
    """P9: data as a model has it, normal, of one sign, or with outliers; the exact result is known to float64."""
    m, length, n = shape
    for turn in range(rounds):
        left, right = draw.standard_normal((m, length)), draw.standard_normal((length, n))
        if turn % 3 == 1:
            left, right = np.abs(left), np.abs(right)
        if turn % 3 == 2:
            left *= 2.0 ** draw.integers(-12, 13, left.shape)
        narrow = [each.astype(ml_dtypes.bfloat16) for each in (left, right)]
        yield Probe(narrow[0], narrow[1], narrow[0].astype(np.float64) @ narrow[1].astype(np.float64))


def _small_term(p: int, q: int, r: int, bits: int, size: float = 1.0) -> Row:
    small = size * 2.0 ** -(bits - 1)
    return Row(((p, size, 1.0), (q, small, 1.0), (r, -size, 1.0)), small)


def _positions(length: int, draw: np.random.Generator) -> list[int]:
    if length <= MOST_POSITIONS:
        return list(range(length))
    return sorted(int(each) for each in draw.choice(length, MOST_POSITIONS, replace=False))


def _batch(rows: Sequence[Row], lanes: int) -> list[Row]:
    """The first rows, at most *lanes*, that agree on the partner at every position."""
    batch: list[Row] = []
    wanted: dict[int, float] = {}
    for row in rows[:lanes]:
        partners = {place: right for place, _, right in row.products}
        if any(wanted.get(place, right) != right for place, right in partners.items()):
            break
        batch.append(row)
        wanted |= partners
    return batch


def _scaled(
    left: NDArray[np.float64], right: NDArray[np.float64], exact: NDArray[np.float64], draw: np.random.Generator,
    turned: bool,
) -> Probe:  # fmt: skip
    """Multiply rows, columns and positions by powers of two; swap the operands when *turned*."""
    rows, columns, places = (2.0 ** draw.integers(-3, 4, size) for size in (len(left), right.shape[1], left.shape[1]))
    left, right = left * rows[:, None] * places, right * columns / places[:, None]
    exact = exact * rows[:, None] * columns
    if turned:
        left, right, exact = right.T, left.T, exact.T
    return Probe(left.astype(ml_dtypes.bfloat16), right.astype(ml_dtypes.bfloat16), exact, turned)
