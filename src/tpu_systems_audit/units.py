"""Units, the widths of dtypes, and the refusal of quantities that cannot be.

GiB is 2**30 bytes and GB is 10**9 bytes everywhere in this package.
HBM capacity is quoted in GiB and bandwidth in GB/s, as the vendor means them.
"""

import re
from fractions import Fraction

GIB = 2**30
GB = 10**9

DTYPE_BITS = {"fp32": 32, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}

LARGEST_COUNT = 10**18

_NUMBER = re.compile(r"\d+(_\d+)*(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)


class InputError(ValueError):
    """The input is wrong: one line that names it, says what is wrong and what would be right."""


def gib(size_bytes: int | Fraction) -> float:
    """Convert bytes to GiB.

    >>> gib(16 * 2**30)
    16.0
    """
    return float(Fraction(size_bytes) / GIB)


def number(text: str, name: str) -> Fraction:
    """Read a plain non-negative decimal number exactly.

    Args:
        text: digits, with an optional fraction and exponent, such as ``7e9``.
        name: what the number is, for the message.

    Raises:
        InputError: when *text* is not such a number.

    >>> number("0.8", "--budget")
    Fraction(4, 5)
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise InputError(f"{name}: {shown(text)} is not a plain number; write it like 0.8, 170 or 7e9")
    return Fraction(text.strip())


def whole(text: str, name: str, *, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """Read a whole number between *least* and *most*.

    Args:
        text: a number such as ``8192`` or ``7e9``.
        name: what the number is, for the message.
        least: the smallest value allowed.
        most: the largest value allowed.

    Raises:
        InputError: when *text* is no number, not whole, or out of range.

    >>> whole("7e9", "parameters")
    7000000000
    >>> whole("1e400", "parameters")
    Traceback (most recent call last):
    tpu_systems_audit.units.InputError: parameters: '1e400' is out of range; a whole number from 1 to 1e18 is right
    """
    top = f"{most:.0e}".replace("e+0", "e").replace("e+", "e") if most >= 10**9 else str(most)
    right = f"a whole number from {least} to {top} is right"
    if text.strip().startswith("-") and text.strip()[1:2].isdigit():
        raise InputError(f"{name}: {shown(text)} is negative; {right}")
    if not _NUMBER.fullmatch(text.strip()):
        raise InputError(f"{name}: {shown(text)} is not a number; {right}")
    value = number(text, name)
    if not least <= value <= most:
        raise InputError(f"{name}: {shown(text)} is out of range; {right}")
    if value.denominator != 1:
        raise InputError(f"{name}: {shown(text)} is not whole; {right}")
    return value.numerator


def share(value: str | float | Fraction, name: str) -> Fraction:
    """Read a share of a whole, above 0 and at most 1, exactly as it was written.

    Args:
        value: text such as ``0.8``, or a number; a float counts as its shortest decimal form.
        name: what the share is, for the message.

    Raises:
        InputError: when it is not a number above 0 and at most 1.

    >>> share(0.8, "budget")
    Fraction(4, 5)
    """
    text = str(value)
    try:
        exact = value if isinstance(value, Fraction) else number(text, name)
    except InputError:
        exact = Fraction(0)
    if not 0 < exact <= 1:
        raise InputError(f"{name}: {shown(text)} is not a share; a number above 0 and at most 1 is right, such as 0.8")
    return exact


def dtype_bits(dtype: str, name: str, allowed: tuple[str, ...] = tuple(DTYPE_BITS)) -> int:
    """Look up the bits of one value of *dtype*.

    Args:
        dtype: one of ``fp32 bf16 fp8 int8 int4``.
        name: what carries the dtype, for the message.
        allowed: the dtypes that make sense there.

    Raises:
        InputError: when *dtype* is not among *allowed*.

    >>> dtype_bits("bf16", "--dtype")
    16
    """
    if dtype not in allowed:
        raise InputError(f"{name}: {shown(dtype)} is not a dtype for this; one of {' '.join(allowed)} is right")
    return DTYPE_BITS[dtype]


def shown(text: object, width: int = 60) -> str:
    """Quote a user's own text for a one-line message, shortened and with control characters escaped."""
    quoted = repr(str(text))
    return quoted if len(quoted) <= width else f"{quoted[: width - 4]}…'"
