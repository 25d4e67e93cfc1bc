"""Protocol-buffer messages read where they lie: no copy, no schema compiler, nothing read that is not asked for."""

import re
from collections.abc import Iterable, Iterator
from mmap import mmap

Buffer = bytes | mmap

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
EVENT_TAG = 0x22  # field 4 of a line, length-delimited


class DamagedError(ValueError):
    """What should be a message is none."""


def varint(data: Buffer, at: int, stop: int) -> tuple[int, int]:
    r"""Read a whole number of seven bits a byte, the lowest first; return it and where the next byte stands.

    Args:
        data: the bytes.
        at: where the number starts.
        stop: where its message ends.

    Raises:
        DamagedError: when it does not end in time.

    >>> varint(b"\xac\x02", 0, 2)
    (300, 2)
    """
    value = shift = 0
    for here in range(at, min(stop, at + LONGEST_VARINT)):
        byte = data[here]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, here + 1
        shift += 7
    raise DamagedError(f"a number at byte {at} does not end")


def fields(data: Buffer, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    r"""Go through the fields of a message: number, wire type, start of its bytes (of a varint: its value), end.

    Args:
        data: the bytes.
        at: where the message starts.
        stop: where it ends.

    Raises:
        DamagedError: when a field is impossible or longer than the message.

    >>> list(fields(b"\x08\x05\x12\x02hi", 0, 6))
    [(1, 0, 5, 2), (2, 2, 4, 6)]
    """
    while at < stop:
        here = at
        tag, at = varint(data, at, stop)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise DamagedError(f"no field at byte {here}")
        if kind == VARINT:
            value, at = varint(data, at, stop)
            yield number, kind, value, at
            continue
        if kind == DELIMITED:
            length, at = varint(data, at, stop)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise DamagedError(f"no field at byte {here}")
        if length > stop - at:
            raise DamagedError(f"the field at byte {here} ends after its message")
        yield number, kind, at, at + length
        at += length


def text(data: Buffer, at: int, stop: int) -> str:
    """Read a span as text; what is no UTF-8 is replaced."""
    return data[at:stop].decode("utf-8", "replace")


def short_events(skipped: Iterable[int]) -> re.Pattern[bytes]:
    r"""Build the pattern of a run of events that are of no interest: of given names, bare, and shorter than 2^35 ps.

    An event is ``22 LENGTH 08 ID 10 OFFSET 18 DURATION``, then its stats. With the length and the size of the id known,
    an offset of at least ``length - id - 8`` bytes with ``18`` after it leaves five for the duration, and no room for a
    stat with a value. So each length is one alternative of fixed size, and a regular expression goes through a million
    events while Python reads a hundred thousand. What it does not match is read in full, so a miss costs time only.

    Args:
        skipped: the ids of their names.

    >>> short_events([1]).match(b"\x22\x09\x08\x01\x10\x80\x80\x01\x18\x80\x01").end()
    11
    """
    ids = _ids(skipped)
    lengths = []
    for length in (15, 16, 14, 13, 17, 12, 18, 11, 10, 9, 8, 7, 6):
        forms = []
        for size, form in ids.items():
            least = max(1, length - size - 8)  # bytes of the offset
            rest = length - 2 - size
            if rest > least + 1:
                forms.append(form + rb"\x10(?=[\x80-\xff]{%d,}+[\x00-\x7f]\x18).{%d}" % (least - 1, rest))
        if forms:
            lengths.append(rb"\x%02x\x08(?:%s)" % (length, b"|".join(forms)))
    return re.compile(rb"(?s)(?:\x22(?:%s))*+" % (b"|".join(lengths) or b"(?!)"))


def _ids(skipped: Iterable[int]) -> dict[int, bytes]:
    """For each size of an id in bytes, the pattern of those given; ids whose later bytes admit the same first share."""
    firsts: dict[bytes, set[int]] = {}
    for number in skipped:
        if 0 < number < 2**21:
            low, high, top = number & 127, number >> 7 & 127, number >> 14
            rest = bytes([high | 128, top]) if top else bytes([high]) if high else b""
            firsts.setdefault(rest, set()).add(low | 128 if rest else low)
    shared: dict[tuple[int, frozenset[int]], list[bytes]] = {}
    for rest, first in firsts.items():
        shared.setdefault((len(rest) + 1, frozenset(first)), []).append(rest)
    forms: dict[int, list[bytes]] = {}
    for (size, first_bytes), rests in shared.items():
        later = b"(?:%s)" % b"|".join(b"".join(rb"\x%02x" % byte for byte in rest) for rest in rests)
        if size == 2:
            later = _one_of(rest[0] for rest in rests)
        forms.setdefault(size, []).append(_one_of(first_bytes) + (later if size > 1 else b""))
    return {size: b"(?:%s)" % b"|".join(each) for size, each in sorted(forms.items(), reverse=True)}


def _one_of(values: Iterable[int]) -> bytes:
    return b"[%s]" % b"".join(rb"\x%02x" % value for value in sorted(values))
