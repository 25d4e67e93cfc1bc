"""Stage 2: precision. Expected values come from whole numbers and exactly rounded sums, with Python alone.

The trace is checked in ``stage2_trace``.
"""

import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib.util import find_spec
from math import fsum, isfinite, prod, sqrt
from pathlib import Path
from random import Random

from stage2_trace import trace_calls

from tpu_systems_audit.checker import Call, Check, Returned, Stage

Rows = list[list[float]]
Lacks = Callable[[Returned], str | None]
FORMATS = {"int8": "b", "float32": "f"}
U_F = 2.0**-24  # what one rounding to float32 changes, relative to the number
NEAR = Fraction(1, 2**16)  # a quotient by a scale one ulp off, or by a reciprocal, moves by less than this
RESCALED = 10 * U_F  # two scales that may each be an ulp off, and three roundings


def float32(value: float) -> float:
    """Round to float32, ties to even."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def bf16(value: float) -> float:
    """Round a float32 to bfloat16, its upper half, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0])


def each(change: Callable[[float], float], rows: Rows) -> Rows:
    return [[change(value) for value in row] for row in rows]


def turned(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


def product(x: Rows, w: Rows) -> Rows:
    """The matrix product; a product of two float32 is exact in a Python float, and fsum rounds once."""
    columns = turned(w)
    return [[fsum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in x]


def sent(rows: Rows, kind: str = "float32") -> tuple[str, tuple[int, int], bytes]:
    """Write an array as the harness reads it."""
    flat = [value if kind == "float32" else int(value) for row in rows for value in row]
    return kind, (len(rows), len(rows[0])), struct.pack(f"<{len(flat)}{FORMATS[kind]}", *flat)


def received(back: Returned, *wanted: tuple[str, str, tuple[int, int]]) -> tuple[list[Rows], str]:
    """Read the arrays that came back; a text says what is not as *wanted*: names, dtypes and shapes."""
    if back.kind != "bytes" or not isinstance(back.value, bytes):
        return [], " and ".join(f"{name}, an array of dtype {dtype}" for name, dtype, _ in wanted)
    lines = back.value.decode("ascii", "replace").split("\n")
    if len(lines) != len(wanted):
        return [], f"{len(wanted)} arrays, not {len(lines)}: " + ", ".join(name for name, _, _ in wanted)
    arrays: list[Rows] = []
    for line, (name, dtype, shape) in zip(lines, wanted, strict=True):
        kind, _, rest = line.partition(" ")
        dims, _, raw = rest.partition(" ")
        if kind != dtype:
            return [], f"{name} of dtype {dtype}, not {kind[:40]}"
        if dims != ",".join(map(str, shape)) + "-":
            return [], f"{name} of shape {shape}, not ({dims.strip('-')[:40]})"
        flat = struct.unpack(f"<{prod(shape)}{FORMATS[dtype]}", bytes.fromhex(raw.strip("-")))
        arrays.append([list(flat[row * shape[1] : (row + 1) * shape[1]]) for row in range(shape[0])])
    return arrays, ""


def judge(look: Callable[[list[Rows]], str | None], *wanted: tuple[str, str, tuple[int, int]]) -> Lacks:
    """Judge dtypes and shapes first, then what the arrays hold."""

    def lacks(back: Returned) -> str | None:
        try:
            arrays, wrong = received(back, *wanted)
        except (ValueError, struct.error):
            return "arrays whose bytes can be read"
        return wrong or look(arrays)

    return lacks


# quantize_int8


def scattered(random: Random, rows: int, columns: int) -> Rows:
    """Rows of very different sizes, in one of which the largest is negative, and one of zeros."""
    made = []
    for row in range(rows):
        size = 10.0 ** (3 * row - 4)
        made.append([float32(size * random.uniform(-1, 1)) for _ in range(columns)])
        made[-1][random.randrange(columns)] = float32(size * (-1.5 if row % 2 else 1.5))
    made.insert(random.randrange(rows + 1), [0.0] * columns)
    return made


def halves(random: Random, columns: int) -> Rows:
    """Rows whose scale is a power of two, so that the quotients k + 1/2 are exact ties."""
    made = []
    for _ in range(2):
        row = [random.randint(-120, 119) + 0.5 for _ in range(columns - 3)] + [0.5, -1.5, -127.0]
        random.shuffle(row)
        size = 2.0 ** random.randint(-20, 20)
        made.append([value * size for value in row])
    return made


def quantize_calls(random: Random) -> list[Call]:
    calls = []
    for axis in (1, 0, None):
        for x in (scattered(random, 4, 13), halves(random, 36)):
            given = turned(x) if axis == 0 else x
            calls.append(Call((sent(given), axis), codes_judge(given, axis), written(given, f"axis={axis}")))
    zeros = [[0.0] * 5 for _ in range(3)]
    calls.append(Call((sent(zeros), None), codes_judge(zeros, None), "zeros of shape (3, 5), axis=None"))
    for value in ("nan", "inf", "-inf"):
        x = scattered(random, 3, 7)
        random.choice(x)[random.randrange(7)] = float(value)
        axis = random.choice((0, 1, None))
        calls.append(Call((sent(x), axis), refused, written(x, f"axis={axis}, one value of x is {value}")))
    return calls


def written(x: Rows, rest: str) -> str:
    return f"x of shape ({len(x)}, {len(x[0])}), {rest}"


def refused(back: Returned) -> str | None:
    return None if back.value is True else "a ValueError: a NaN or an infinity has no scale"


def codes_judge(x: Rows, axis: int | None) -> Lacks:
    """Judge codes by the scale that came with them."""
    rows, columns = len(x), len(x[0])
    shape = {0: (1, columns), 1: (rows, 1), None: (1, 1)}[axis]

    def look(arrays: list[Rows]) -> str | None:
        codes, scales = arrays
        groups = grouped(x, axis)
        flat = [value for row in scales for value in row]
        for group, scale in zip(groups, flat, strict=True):
            if not any(group) and scale != 1:
                return "a scale of 1 where all values are zero"
            if any(group) and not one_ulp(scale, max(map(abs, group)) / 127):
                return "a scale that takes the largest absolute value of each group to 127, in float32"
        for group, scale, given in zip(groups, flat, grouped(codes, axis), strict=True):
            for value, code in zip(group, given, strict=True):
                if abs(code) > 127:
                    return "codes from -127 to 127, as many below zero as above"
                if not nearest(Fraction(value) / Fraction(scale), int(code)):
                    return "the whole number nearest to x / scale for each code, the even one of two as near"
        return None

    return judge(look, ("codes", "int8", (rows, columns)), ("scale", "float32", shape))


def grouped(x: Rows, axis: int | None) -> Rows:
    """The values that share a scale, group by group."""
    return {0: turned, 1: lambda rows: rows, None: lambda rows: [[value for row in rows for value in row]]}[axis](x)


def one_ulp(scale: float, exact: float) -> bool:
    """Whether a float32 is the rounded one or a neighbour; a compiler divides by multiplying with a reciprocal."""
    bits = [struct.unpack("<i", struct.pack("<f", value))[0] for value in (scale, exact)]
    return abs(bits[0] - bits[1]) <= 1


def nearest(quotient: Fraction, code: int) -> bool:
    """Whether a code is the rounded quotient; close to a tie, but not on it, both neighbours are."""
    off = abs(abs(quotient - code) - Fraction(1, 2))
    return code == round(quotient) or (0 < off < NEAR and abs(quotient - code) < 1)


# int8_matmul


def coded(random: Random, codes: Rows, size: float) -> Rows:
    """Values that quantize per row to *codes*, with quotients well away from ties."""
    made = []
    for row in codes:
        scale = size * 10.0 ** random.uniform(-3, 3)
        made.append(
            [float32(scale * (c if abs(c) in (0, 127) else c + random.uniform(-0.45, 0.45))) for c in row],
        )
    return made


def code_rows(random: Random, rows: int, columns: int) -> Rows:
    """Codes whose first row is zero, and of which each other one reaches -127 or 127."""
    codes = [[float(random.randint(-126, 126)) for _ in range(columns)] for _ in range(rows)]
    codes[0] = [0.0] * columns
    for row in codes[1:]:
        row[random.randrange(columns)] = random.choice((-127.0, 127.0))
    return codes


def int8_calls(random: Random) -> list[Call]:
    calls = []
    for rows, depth, columns in ((4, 50, 6), (7, 3, 2)):
        x_codes, w_codes = code_rows(random, rows, depth), code_rows(random, columns, depth)
        x, w = coded(random, x_codes, 1.0), coded(random, w_codes, 0.05)
        judged = int8_judge(int8_product(x, x_codes, w, w_codes), RESCALED)
        calls.append(Call((sent(x), sent(turned(w))), judged, both(x, turned(w))))
    return [*calls, long_call(random)]


def int8_product(x: Rows, x_codes: Rows, w: Rows, w_codes: Rows) -> Rows:
    """The product that the codes and scales of rows of x and of columns of w make."""
    scales = [[max(map(abs, row)) / 127 for row in rows] for rows in (x, w)]
    whole = product(x_codes, turned(w_codes))
    return [[c * a * b for c, b in zip(row, scales[1], strict=True)] for row, a in zip(whole, scales[0], strict=True)]


def long_call(random: Random) -> Call:
    """Sums above 2**24, which float32 additions miss and int32 ones do not; scales of 1 leave nothing else to round."""
    depth, times = 500, 130
    x, w = ([[float(random.randint(64, 127)) for _ in range(depth)] for _ in range(rows)] for rows in (3, 4))
    for row in x + w:
        row[random.randrange(depth)] = 127.0
    exact = each(lambda value: float32(value * times), product(x, turned(w)))
    arguments = ((*sent(x, "int8"), (1, times)), (*sent(turned(w), "int8"), (times, 1)))  # a request holds 30 KiB
    told = f"x of shape (3, {depth * times}), w of shape ({depth * times}, 4), whole numbers from 64 to 127"
    return Call(arguments, int8_judge(exact, 0.0), told)


def both(x: Rows, w: Rows) -> str:
    return f"x of shape ({len(x)}, {len(x[0])}), w of shape ({len(w)}, {len(w[0])})"


def int8_judge(exact: Rows, relative: float) -> Lacks:
    expected = (
        "the int32 sums of the products of the codes, x quantized by rows and w by columns, times both scales"
        if relative
        else "sums that are exact in int32 and rounded once: at this length neither int8, int16 nor float32 holds them"
    )
    return within(exact, each(lambda value: relative * abs(value), exact), expected)


def within(exact: Rows, slack: Rows, expected: str) -> Lacks:
    """Judge one float32 array, element by element."""

    def look(arrays: list[Rows]) -> str | None:
        lines = zip(arrays[0], exact, slack, strict=True)
        triples = (triple for three in lines for triple in zip(*three, strict=True))
        return None if all(abs(got - want) <= most for got, want, most in triples) else expected

    return judge(look, ("the product", "float32", (len(exact), len(exact[0]))))


# bf16_matmul


def whole_rows(random: Random, rows: int, columns: int, most: int) -> Rows:
    """Whole numbers from most/2 up, of either sign, plus what rounding to bf16 takes away: ties, and less than ties."""
    half = most / 512  # half the distance of two bf16 numbers of this size
    made = []
    for _ in range(rows):
        off = [random.choice((half, -half, random.uniform(-0.9, 0.9) * half)) for _ in range(columns)]
        made.append([random.choice((-1, 1)) * float32(random.randint(most // 2 + 1, most - 2) + d) for d in off])
    return made


def sized(random: Random, rows: Rows) -> Rows:
    """Each row times a power of two, which no rounding to bf16 or float32 notices, and float16 does."""
    return [[value * size for value in row] for row in rows for size in [2.0 ** random.randint(-40, 40)]]


def bf16_calls(random: Random) -> list[Call]:
    calls = []
    # At most 250 products of at most 2**16 each: every float32 sum, in whatever order, is exact.
    for rows, depth, columns in ((3, 250, 5), (5, 9, 2), (1, 1, 4)):
        x, w = (sized(random, whole_rows(random, count, depth, 256)) for count in (rows, columns))
        calls.append(bf16_call(x, turned(w), exact=True))
    x, w = ([[float32(random.gauss(0, 1)) for _ in range(350)] for _ in range(rows)] for rows in (4, 3))
    return [*calls, bf16_call(x, turned(w), exact=False)]


def bf16_call(x: Rows, w: Rows, exact: bool) -> Call:
    """The product of the rounded operands; additions in another order may differ by (K - 1) u S."""
    x_near, w_near = each(bf16, x), each(bf16, w)
    additions = 0 if exact else len(w) - 1
    slack = each(lambda size: additions * U_F * size, product(each(abs, x_near), each(abs, w_near)))
    expected = "the product of both operands rounded to bf16, ties to even, with every sum in float32 and kept there"
    return Call((sent(x), sent(w)), within(product(x_near, w_near), slack, expected), both(x, w))


# error_summary


def clear_of_ties(random: Random, rows: int, columns: int) -> tuple[Rows, Rows]:
    """Whole numbers plus what bf16 takes away, and their codes per row, none of them near a tie."""
    made, codes = [], []
    for _ in range(rows):
        row = whole_rows(random, 1, columns, 128)[0]
        row[random.randrange(columns)] = random.choice((-1, 1)) * (127 + 3 / 16)
        scale = float32(max(map(abs, row)) / 127)
        for index, value in enumerate(row):
            while abs(abs(value / scale) % 1 - 0.5) < 0.01:
                value = whole_rows(random, 1, 1, 128)[0][0]
            row[index] = value
        made.append(row)
        codes.append([float(round(value / scale)) for value in row])
    return made, codes


def summary_calls(random: Random) -> list[Call]:
    calls = []
    for rows, depth, columns in ((3, 200, 4), (5, 20, 2)):
        (x, x_codes), (w, w_codes) = (clear_of_ties(random, count, depth) for count in (rows, columns))
        for sign in (1.0, -1.0):  # the largest error is negative in one of both
            x, x_codes = (each(lambda value, sign=sign: sign * value, part) for part in (x, x_codes))
            exact = product(x, turned(w))
            products = {
                "bf16": (product(each(bf16, x), each(bf16, turned(w))), 0.0),
                "int8": (int8_product(x, x_codes, w, w_codes), RESCALED),
            }
            calls.append(Call((sent(x), sent(turned(w))), summary_judge(exact, products), both(x, turned(w))))
    return calls


MEASURES = {
    "max_abs": "the largest absolute difference from the exact product of the unrounded inputs, in float64",
    "rel_fro": "the Frobenius norm of the difference over that of the exact product, in float64",
}


def summary_judge(exact: Rows, products: dict[str, tuple[Rows, float]]) -> Lacks:
    """Judge four numbers; a product may be off by a share of itself, and its errors by as much."""
    wanted = {}
    for name, (got, share) in products.items():
        pairs = [pair for lines in zip(got, exact, strict=True) for pair in zip(*lines, strict=True)]
        off, made, true = [one - want for one, want in pairs], [one for one, _ in pairs], [want for _, want in pairs]
        wanted[name, "max_abs"] = max(map(abs, off)), share * max(map(abs, made))
        wanted[name, "rel_fro"] = norm(off) / norm(true), share * norm(made) / norm(true)

    def lacks(back: Returned) -> str | None:
        flat = back.value if back.kind == "tuple" and isinstance(back.value, tuple) else ()
        told = {flat[at : at + 2]: flat[at + 2] for at in range(0, len(flat) - 2, 3)}
        if set(told) != set(wanted):
            return '{"bf16": {"max_abs", "rel_fro"}, "int8": {"max_abs", "rel_fro"}}, each a number'
        for (name, measure), (want, slack) in wanted.items():
            if not near(told[name, measure], want, slack):
                return f"{name}, {measure}: {MEASURES[measure]}"
        return None

    return lacks


def norm(values: Sequence[float]) -> float:
    return sqrt(fsum(value**2 for value in values))


def near(value: object, want: float, slack: float) -> bool:
    """Whether a number is *want* but for the slack, and for being summed in float64 in another way."""
    return isinstance(value, float) and isfinite(value) and abs(value - want) <= slack + 1e-8 * want


def missing(packages: Sequence[str] = ("jax", "numpy", "ml_dtypes")) -> str:
    """Say which packages are not here, and which command has them."""
    absent = [name for name in packages if find_spec(name) is None]
    command = "python3 noxfile.py -s check -- --impl FILE"
    return f"it needs {', '.join(absent)}; `{command}` has them" if absent else ""


def lesson(section: str) -> str:
    """Name a section of the lesson, and where it stands in the site and in the repository."""
    return f"tpu-06, {section} (docs/lessons/tpu-06.md)"


STAGE_2 = Stage(
    2,
    (
        Check(
            "quantize_int8", quantize_calls,
            "divide by the scale, round as rint does, and only then make int8; keep the reduced axis with length 1",
            lesson("Quantize to INT8"),
        ),
        Check(
            "int8_matmul", int8_calls,
            "ask for preferred_element_type=int32, and rescale after the sum: rows by one scale, columns by the other",
            lesson("Quantize to INT8"),
        ),
        Check(
            "bf16_matmul", bf16_calls,
            "round the operands, not the result: preferred_element_type says what is summed in and what comes back",
            lesson("Round to BF16"),
        ),
        Check(
            "error_summary", summary_calls,
            "make the reference from the inputs as they came, converted to float64 before the product",
            lesson("Bound the error"),
        ),
        Check(
            "capture_warmed_trace", trace_calls,
            "four things in order: warm up, wait, number the steps, wait; what is new in the folder is the file",
            lesson("Capture a warmed trace"),
        ),
    ),
    missing=missing(),
    limit_s=60.0,
    memory_bytes=8 * 2**30,
    harness=Path(__file__).with_name("harness2.py"),
)  # fmt: skip
