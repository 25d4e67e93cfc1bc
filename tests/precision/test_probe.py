"""A certificate says of each dot product what it really adds in, and of a broken one what is wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cases import dots
from tests.cases.dots import BF, F32, bf16_seq, f32_seq, f32p
from tpu_systems_audit.precision import CERTIFIED, REJECTED, ROUNDED, TRUNCATING, certify, certify_int8

Dot = Callable[[Any, Any], Any]

SHIPPED = (8, 320, 4)
SMALL = (8, 48, 4)
# These tell a K of 320 from a shorter one, and are asked there in every run.
LONG_ONLY = {"bf16 flush every 128", "cheat: f32 for K <= 256", "cheat: f32 for listed K"}
SEEDS = (0, 1, 2, 987654321)


@pytest.fixture(scope="module")
def thorough(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--hypothesis-profile") == "thorough"


@pytest.mark.sized
@pytest.mark.parametrize(("name", "dot", "verdict"), dots.BANK, ids=[name for name, _, _ in dots.BANK])
def test_every_dot_of_the_bank_gets_its_verdict(name: str, dot: Dot, verdict: str, thorough: bool) -> None:
    shape = SHIPPED if thorough or name in LONG_ONLY else SMALL
    found = certify(dot, shape)
    assert (found.verdict, found.shape) == (verdict, shape), found.why


@pytest.mark.sized
@pytest.mark.parametrize(
    ("name", "dot", "shape", "verdict"), dots.SHAPES, ids=[f"{name} {shape}" for name, _, shape, _ in dots.SHAPES]
)
def test_a_verdict_is_of_the_shape_it_names(
    name: str, dot: Dot, shape: tuple[int, int, int], verdict: str, thorough: bool
) -> None:
    m, length, n = shape
    shape = shape if thorough else (m, min(length, 264), n)
    assert certify(dot, shape).verdict == verdict, name


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "dot", "verdict"), dots.INTEGER, ids=[name for name, _, _ in dots.INTEGER])
def test_every_integer_dot_gets_its_verdict(name: str, dot: Dot, verdict: str, seed: int) -> None:
    assert certify_int8(dot, SHIPPED, seed).verdict == verdict, name


# Cleverer dots. Each returns (M, N) from bfloat16 (M, K) and (K, N), and its verdict follows from what it adds in.


def adds(rounded: Callable[[Any], Any], terms: Callable[[Any], Any] = lambda each: each) -> Dot:
    """In order, each product passed through *terms* and each sum, exact in float64, through *rounded*."""

    def dot(a: Any, b: Any) -> Any:
        total = np.zeros((len(a), b.shape[1]))
        for k in range(a.shape[1]):
            total = rounded(total + terms(a[:, k, None].astype(np.float64) * b[None, k].astype(np.float64)))
        return total.astype(F32)

    return dot


def to_bits(bits: int, way: Callable[[Any], Any] = np.rint) -> Callable[[Any], Any]:
    def rounded(x: Any) -> Any:
        fraction, exponent = np.frexp(x)
        return np.ldexp(way(np.ldexp(fraction, bits)), exponent - bits)

    return rounded


def by_chance(x: Any) -> Any:
    """Stochastic rounding to 24 bits whose chance is drawn from the value, so that equal operands give equal sums."""
    fraction, exponent = np.frexp(x)
    scaled = np.ldexp(fraction, 24)
    chance = (np.abs(x).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)).astype(np.float64) / 2**53
    return np.ldexp(np.floor(scaled) + (scaled - np.floor(scaled) > chance), exponent - 24)


def flushes(a: Any, b: Any) -> Any:
    """Float32 where everything below 2**-126 is zero, as XLA has it on a CPU."""

    def flushed(x: Any) -> Any:
        x = x.astype(F32)
        return np.where(np.abs(x) < 2.0**-126, F32(0), x)

    total = np.zeros((len(a), b.shape[1]), F32)
    for k in range(a.shape[1]):
        total = flushed(total + flushed(flushed(a[:, k, None]) * flushed(b[None, k])))
    return total


def when(test: Callable[[Any, Any], bool]) -> Dot:
    """Float32, but bfloat16 for the calls that *test* picks."""
    return lambda a, b: bf16_seq(a, b) if test(a, b) else f32_seq(a, b)


def largest(a: Any, b: Any) -> float:
    return max(float(np.abs(each.astype(F32)).max()) for each in (a, b))


def few(a: Any, b: Any) -> Any:
    """Float64 for rows of at most three products, bfloat16 for all others."""
    count = (a != 0).astype(int) @ (b != 0).astype(int)
    return np.where(count <= 3, dots.f64_acc(a, b), bf16_seq(a, b))


def parts(a: Any, b: Any, size: int) -> list[Any]:
    return [f32_seq(a[:, s : s + size], b[s : s + size]) for s in range(0, a.shape[1], size)]


def bf16_parts(a: Any, b: Any) -> Any:
    """Blocks of 16 in float32, each rounded to bfloat16, joined in float32."""
    return sum((each.astype(BF).astype(F32) for each in parts(a, b, 16)), np.zeros((len(a), b.shape[1]), F32))


def bf16_ragged_end(a: Any, b: Any) -> Any:
    """Float32 for whole blocks of 32, bfloat16 for the rest."""
    cut = a.shape[1] // 32 * 32
    return f32_seq(a[:, :cut], b[:cut]) + bf16_seq(a[:, cut:], b[cut:])


def bf16_neighbours(a: Any, b: Any) -> Any:
    """Neighbouring products are added in bfloat16, the rest in float32."""
    each = dots._terms(a, b)
    return (each[::2] + each[1::2]).astype(BF).astype(F32).sum(0, dtype=F32)


def bf16_half_apart(a: Any, b: Any) -> Any:
    """Products K / 2 apart are added in bfloat16, the rest in float32."""
    each, half = dots._terms(a, b), a.shape[1] // 2
    return (each[:half] + each[half:]).astype(BF).astype(F32).sum(0, dtype=F32)


def bf16_last_element(a: Any, b: Any) -> Any:
    """Float32 but for the last element of the result."""
    out = f32_seq(a, b)
    out[-1, -1] = bf16_seq(a[-1:], b[:, -1:])[0, 0]
    return out


_random = np.random.default_rng(0)


def split(count: int) -> Dot:
    """Split K, the partial sums joined in whatever order they finish."""

    def dot(a: Any, b: Any) -> Any:
        each = parts(a, b, -(-a.shape[1] // count))
        total = np.zeros_like(each[0])
        for index in _random.permutation(len(each)):
            total = total + each[index]
        return total

    return dot


def aligned(bits: int) -> Dot:
    """A tensor core: blocks of 16 are cut to *bits* below their largest term and added exactly, then cut to float32."""

    def dot(a: Any, b: Any) -> Any:
        total = np.zeros((len(a), b.shape[1]))
        for s in range(0, a.shape[1], 16):
            each = np.concatenate([total[None], dots._terms(a[:, s : s + 16], b[s : s + 16]).astype(np.float64)])
            unit = np.ldexp(1.0, np.frexp(np.abs(each).max(0))[1] - bits)
            total = to_bits(24, np.trunc)((np.trunc(each / unit) * unit).sum(0))
        return total.astype(F32)

    return dot


def double_bf16(a: Any, b: Any) -> Any:
    """Sums kept as a pair of bfloat16 numbers: 16 bits and a sign, of exact products."""
    high = low = np.zeros((len(a), b.shape[1]), F32)
    for k in range(a.shape[1]):
        total = high.astype(np.float64) + low + f32p(a[:, k, None], b[None, k])
        high = total.astype(BF).astype(F32)
        low = (total - high).astype(BF).astype(F32)
    return high + low


def strassen(a: Any, b: Any) -> Any:
    """Strassen's seven products in float32: right in norm, but an element's error has its neighbours' size."""
    a, b = a.astype(F32), b.astype(F32)
    m, length, n = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    if not m or a.shape[0] % 2:
        return f32_seq(a, b)
    p, q, r, s = a[:m, :length], a[:m, length:], a[m:, :length], a[m:, length:]
    t, u, v, w = b[:length, :n], b[:length, n:], b[length:, :n], b[length:, n:]
    one, two, three, four = (p + s) @ (t + w), (r + s) @ t, p @ (u - w), s @ (v - t)
    five, six, seven = (p + q) @ w, (r - p) @ (t + u), (q - s) @ (v + w)
    return np.block([[one + four - five + seven, three + five], [two + four, one - two + three + six]])


def loses_the_last(a: Any, b: Any) -> Any:
    return f32_seq(a[:, :-1], b[:-1])


class Turns:
    """Float32 for so many calls, bfloat16 from then on."""

    def __init__(self, good: int) -> None:
        self.good = good

    def __call__(self, a: Any, b: Any) -> Any:
        self.good -= 1
        return f32_seq(a, b) if self.good >= 0 else bf16_seq(a, b)


CLEVER: list[tuple[str, Dot, str]] = [
    ("25-bit sums, float32 result", adds(to_bits(25)), CERTIFIED),
    ("24-bit sums", adds(to_bits(24)), CERTIFIED),
    ("23-bit sums", adds(to_bits(23)), REJECTED),
    ("float32 that flushes subnormals", flushes, CERTIFIED),
    ("split K in two, joined in any order", split(2), CERTIFIED),  # a + b is b + a
    ("split K in six, joined in any order", split(6), REJECTED),
    ("float32 toward zero", adds(to_bits(24, np.trunc)), TRUNCATING),
    ("float32 toward -inf", adds(to_bits(24, np.floor)), TRUNCATING),
    ("float32 with stochastic rounding", adds(by_chance), TRUNCATING),
    ("blocks of 16 aligned at 27 bits", aligned(27), TRUNCATING),
    ("blocks of 16 aligned at 14 bits", aligned(14), REJECTED),
    ("result of 11 bits, as TF32 has", lambda a, b: to_bits(11)(f32_seq(a, b)), ROUNDED),
    ("result in float16", lambda a, b: f32_seq(a, b).astype(np.float16), REJECTED),
    ("products of 15 bits, float32 sums", adds(to_bits(24), to_bits(15)), REJECTED),
    ("products of 11 bits, float32 sums", adds(to_bits(24), to_bits(11)), REJECTED),
    ("16-bit sums in two bfloat16", double_bf16, REJECTED),
    ("fixed point of 40 bits", adds(lambda x: np.rint(x * 2.0**40) / 2.0**40), REJECTED),
    ("bf16 for M > 1 only", when(lambda a, b: len(a) > 1), REJECTED),
    ("bf16 for M = 1 only", when(lambda a, b: len(a) == 1), REJECTED),
    ("bf16 for K > 32", when(lambda a, b: a.shape[1] > 32), REJECTED),
    ("bf16 for K > 64", when(lambda a, b: a.shape[1] > 64), CERTIFIED),  # its shape is named: K = 48
    ("bf16 where operands reach 2**8", when(lambda a, b: largest(a, b) >= 2.0**8), REJECTED),
    ("bf16 where operands reach 2**60", when(lambda a, b: largest(a, b) >= 2.0**60), REJECTED),
    ("bf16 where left operands stay below 2**-40", when(lambda a, b: 0 < largest(a, a) < 2.0**-40), REJECTED),
    ("float64 for few terms, bf16 for many", few, REJECTED),
    ("bf16 for dense operands", when(lambda a, b: np.all(a != 0) and np.all(b != 0)), REJECTED),
    ("partial sums of 16 rounded to bf16", bf16_parts, REJECTED),
    ("bf16 for what is left of blocks of 32", bf16_ragged_end, REJECTED),
    ("bf16 between neighbours", bf16_neighbours, REJECTED),
    ("bf16 between products K / 2 apart", bf16_half_apart, REJECTED),
    ("bf16 in the last element", bf16_last_element, REJECTED),
    ("Strassen in float32", strassen, REJECTED),
    ("the last product lost", loses_the_last, REJECTED),
    ("the sign lost", lambda a, b: np.abs(f32_seq(a, b)), REJECTED),
    ("always zero", lambda a, b: np.zeros((len(a), b.shape[1]), F32), REJECTED),
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize(("name", "dot", "verdict"), CLEVER, ids=[name for name, _, _ in CLEVER])
def test_a_clever_dot_gets_the_verdict_of_what_it_adds_in(name: str, dot: Dot, verdict: str, seed: int) -> None:
    found = certify(dot, SMALL, seed)
    assert found.verdict == verdict, (name, found.why)


@pytest.mark.parametrize("good", [0, 1, 40, 301])
def test_a_dot_that_changes_between_calls_is_rejected(good: int) -> None:
    assert certify(Turns(good), SMALL).verdict == REJECTED
