"""Stage 1: sizes. Expected values come from exact fractions here, never from the package or from a learner."""

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from random import Random

from tpu_systems_audit.checker import Call, Check, Returned, Stage

GIB = 2**30
CLOSE = Fraction(1, 10**9)  # a handful of float roundings, and far below any unit mistaken for another

# Bytes per parameter under AdamW: what lives between steps, and what a step needs at once.
STATE_BYTES = {"fp32": (12, 16), "mixed-bf16": (12, 16), "mixed-bf16-fp32-grads": (12, 18), "pure-bf16": (6, 8)}


def close(value: object, exact: Fraction) -> bool:
    """Whether a number, never a bool, is *exact* but for rounding."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return False
    return abs(Fraction(value) - exact) <= CLOSE * abs(exact)


def number(exact: Fraction, expected: str) -> Callable[[Returned], str | None]:
    """Judge a number."""
    return lambda back: None if close(back.value, exact) else expected


def ridge_calls(random: Random) -> list[Call]:
    pairs = [(random.uniform(40, 5000), random.uniform(300, 8000)) for _ in range(4)]
    pairs += [
        (random.randint(40, 5000), random.randint(300, 8000)),
        (random.randint(4, 90), random.randint(2000, 9000)),
    ]
    expected = "FLOP/byte: the intensity at which the time for the arithmetic equals the time for the bytes"
    return [
        Call((peak, rate), number(Fraction(peak) * 10**12 / (Fraction(rate) * 10**9), expected)) for peak, rate in pairs
    ]


def bound_calls(random: Random) -> list[Call]:
    ridge = random.randint(50, 800) + random.choice((0.25, 0.5, 0.75))
    small = random.randint(1, 40) / 64  # a ridge point below 1 catches who compares rounded numbers
    cases = [(ridge, ridge, "compute"), (ridge - 2**-20, ridge, "hbm"), (ridge + 2**-20, ridge, "compute")]
    cases += [
        (ridge / 8, ridge, "hbm"),
        (ridge * 8, ridge, "compute"),
        (small, 2 * small, "hbm"),
        (small, small / 2, "compute"),
    ]
    random.shuffle(cases)
    expected = 'the text "compute" where the arithmetic takes at least as long as the bytes, else the text "hbm"'
    return [
        Call((intensity, ridge), lambda back, want=want: None if (back.kind, back.value) == ("str", want) else expected)
        for intensity, ridge, want in cases
    ]


def state_calls(random: Random) -> list[Call]:
    policies = [*STATE_BYTES, *STATE_BYTES]
    random.shuffle(policies)
    counts = [random.randint(10**6, 10**9), *(random.randint(10**9, 10**12) for _ in policies[1:])]
    return [Call((count, policy), state_judge(count, policy)) for count, policy in zip(counts, policies, strict=True)]


def state_judge(count: int, policy: str) -> Callable[[Returned], str | None]:
    """Judge a pair; says which half is off, and which part of the state to look at."""
    resident, peak = (Fraction(count * size, GIB) for size in STATE_BYTES[policy])

    def lacks(back: Returned) -> str | None:
        if back.kind != "tuple" or len(back.value) != 2:
            return "two numbers, (resident, peak), in GiB"
        if not close(back.value[0], resident):
            return "resident, the first: the GiB that live between steps, weights as they are kept plus both moments"
        if not close(back.value[1], peak):
            return "peak, the second: resident plus the gradients, plus a working copy where weights are kept wider"
        return None

    return lacks


def cache_calls(random: Random) -> list[Call]:
    shapes = [
        (random.randint(2, 130), random.randint(2, 64), random.choice((64, 80, 96, 128, 192)),
         random.randint(3, 200_000), random.randint(2, 300), size)
        for size in (1, 2, 4)
    ]  # fmt: skip
    shapes.append((random.randint(2, 130), 1, 128, random.randint(3, 2000), 1, 2))  # one head, one sequence
    expected = "GiB: a key and a value of head_dim numbers for every layer, KV head, token and sequence"
    return [Call(shape, number(product(shape), expected)) for shape in shapes]


def product(shape: tuple[int, ...]) -> Fraction:
    """Both K and V, in GiB."""
    size = Fraction(2, GIB)
    for each in shape:
        size *= each
    return size


def chip_calls(random: Random) -> list[Call]:
    hbm = random.choice((16, 32, 96, 192))
    full = random.randint(2, 60)
    # Budgets and sizes that binary floats hold exactly, so that exactly full is exactly full.
    cases: list[tuple[tuple[float, ...], int]] = []
    for budget in (0.5, 0.75, 1):
        room = hbm * Fraction(budget)
        cases += [((float(room * full), hbm, budget), full)]
        cases += [((float(room * full) + 2**-10, hbm, budget), full + 1)]
        cases += [((float(room * full) - 2**-10, hbm, budget), full)]
    part = Fraction(hbm * random.randint(1, 9), 16)  # well inside one chip
    cases.append(((float(part / 2), hbm, 0.875), 1))
    for _ in range(3):  # the default budget, far from its boundary
        chips = random.randint(1, 500)
        required = float(hbm * Fraction(4, 5) * (chips - Fraction(random.randint(3, 7), 10)))
        cases += [((required, hbm), chips), ((required, hbm, 0.8), chips)]
    random.shuffle(cases)
    return [Call(arguments, chips_judge(chips)) for arguments, chips in cases]


def chips_judge(chips: int) -> Callable[[Returned], str | None]:
    """Judge a count of chips; a float or a bool is none."""

    def lacks(back: Returned) -> str | None:
        if back.kind != "int":
            return "a whole number, of type int"
        if back.value < chips:
            return "enough chips: none may be filled above budget × hbm_gib_per_chip"
        if back.value > chips:
            return "no chip more than needed: one fewer would already hold it within the budget"
        return None

    return lacks


def lesson(section: str) -> str:
    """Name a section of the lesson, and where it stands in the site and in the repository."""
    return f"tpu-03, {section} (docs/lessons/tpu-03.md)"


STAGE_1 = Stage(
    1,
    (
        Check(
            "ridge_point", ridge_calls,
            "write both rates with their powers of ten: TFLOP/s is 10**12, GB/s is 10**9, never a power of two",
            lesson("Ridge points"),
        ),
        Check(
            "bound", bound_calls,
            "compare the two intensities as they come, unrounded, and decide what holds when they are equal",
            lesson("Ridge points"),
        ),
        Check(
            "training_state_gib", state_calls,
            "add up bytes per parameter: weights, two moments, gradients, and in the mixed policies a 2-byte copy",
            lesson("Training state"),
        ),
        Check(
            "kv_cache_gib", cache_calls,
            "count values first, K and V both, then bytes, then divide once by 2**30",
            lesson("KV cache"),
        ),
        Check(
            "min_chips", chip_calls,
            "divide by what one chip may hold, budget × HBM, and round up; exactly full is full, not over",
            lesson("Chips and slices"),
        ),
    ),
)  # fmt: skip
