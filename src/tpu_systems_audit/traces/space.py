"""An XSpace, the file a profiler writes (``*.xplane.pb``), opened without loading it: planes, lines, events.

The fields are those of xplane.proto of the XLA project, 2026-11.
"""

import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tpu_systems_audit.traces.file import RIGHT, mapped
from tpu_systems_audit.traces.wire import DELIMITED, EVENT_TAG, VARINT, Buffer, DamagedError, fields, text, varint
from tpu_systems_audit.units import InputError

WINDOW_BYTES = 2**22  # how much of a line is held in memory at a time
UNIX_STAMP_NS = 10**15  # a stamp above it counts from 1970, one below from the start of the profile
PS_PER_NS = 1000

Event = tuple[int, int, int, int, int]  # id of its name, start_ps, duration_ps, the span of what follows


@dataclass(frozen=True)
class Line:
    """A thread or a row of a device: its events lie in the span."""

    name: str
    id: int
    stamp_ns: int
    start: int
    stop: int

    def origin_ps(self, profile_ps: int) -> int:
        """When the profile started on this line's clock: stamps count from there, or from 1970."""
        return profile_ps if self.stamp_ns > UNIX_STAMP_NS else 0


@dataclass(frozen=True)
class Plane:
    """A device or a host: lines, and the names that their events and stats refer to by number."""

    name: str
    id: int
    lines: tuple[Line, ...]
    stat_names: dict[int, str]
    stats: dict[str, int | float | str | bytes]
    start: int
    stop: int


@dataclass(frozen=True)
class Space:
    """All that one host recorded."""

    data: Buffer
    planes: tuple[Plane, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    hostnames: tuple[str, ...]


@contextmanager
def opened(path: Path) -> Iterator[Space]:
    """Open a trace for as long as the block lasts.

    Args:
        path: the file, plain or in gzip.

    Raises:
        InputError: when it is not a whole XSpace, also when that shows only inside the block.
    """
    with mapped(path) as data:
        try:
            yield _space(data, f"{path}")
        except DamagedError as error:
            raise InputError(f"{path}: is truncated or no XSpace ({error}); {RIGHT}") from None


def _space(data: Buffer, named: str) -> Space:
    planes, said = [], {2: [], 3: [], 4: []}  # type: tuple[list[Plane], dict[int, list[str]]]
    for number, kind, at, stop in fields(data, 0, len(data)):
        if number in (1, *said) and kind != DELIMITED:
            raise DamagedError("a field has another type")
        if number == 1:
            planes.append(_plane(data, at, stop))
        elif number in said:
            said[number].append(text(data, at, stop))
    if not any(plane.name for plane in planes):
        raise InputError(f"{named}: is not an XSpace: it has no plane with a name; {RIGHT}")
    # Written last; a file that ends between two planes is a whole message and has neither.
    if not said[4] and not any(plane.name == "Task Environment" for plane in planes):
        raise InputError(f"{named}: is truncated after a plane: neither host name nor Task Environment; {RIGHT}")
    return Space(data, tuple(planes), tuple(said[2]), tuple(said[3]), tuple(said[4]))


def _plane(data: Buffer, start: int, stop: int) -> Plane:
    name, number, lines, stats = "", 0, [], []
    stat_names: dict[int, str] = {}
    for field, kind, at, end in fields(data, start, stop):
        if kind == DELIMITED:
            if field == 2:
                name = text(data, at, end)
            elif field == 3:
                lines.append(_line(data, at, end))
            elif field == 5:
                key, label = _entry(data, at, end)
                stat_names[key] = label
            elif field == 6:
                stats.append((at, end))
        elif kind == VARINT and field == 1:
            number = at
    values = dict(stat(data, at, end) for at, end in stats)
    named = {stat_names.get(key, ""): value for key, value in values.items()}
    return Plane(name, number, tuple(lines), stat_names, named, start, stop)


def _line(data: Buffer, start: int, stop: int) -> Line:
    """Read what stands before the first event."""
    name, number, stamp, at = "", 0, 0, start
    while at < stop and data[at] != EVENT_TAG:
        field, kind, value, end = next(fields(data, at, stop))
        if field == 2 and kind == DELIMITED:
            name = text(data, value, end)
        elif kind == VARINT:
            number, stamp = (value if field == 1 else number), (value if field == 3 else stamp)
        at = end
    return Line(name, number, stamp, at, stop)


def _entry(data: Buffer, start: int, stop: int) -> tuple[int, str]:
    """Read an entry of a map from numbers to names; the rest of what it holds is passed over."""
    key, label = 0, ""
    for field, kind, at, end in fields(data, start, stop):
        if field == 1 and kind == VARINT:
            key = at
        elif field == 2 and kind == DELIMITED:
            for inner, inner_kind, inner_at, inner_end in fields(data, at, end):
                if inner == 2 and inner_kind == DELIMITED:
                    label = text(data, inner_at, inner_end)
                    break
    return key, label


def stat(data: Buffer, start: int, stop: int) -> tuple[int, int | float | str | bytes]:
    """Read a stat: the number of its name, and its value; one that refers to a name gives that name's number.

    Args:
        data: the file.
        start: where the stat starts.
        stop: where it ends.
    """
    key: int = 0
    value: int | float | str | bytes = 0
    for field, kind, at, end in fields(data, start, stop):
        if field == 1 and kind == VARINT:
            key = at
        elif kind == VARINT:
            value = at
        elif kind == DELIMITED:
            value = text(data, at, end) if field == 5 else bytes(data[at:end])
    return key, value


def event_names(space: Space, plane: Plane) -> dict[int, str]:
    """The names that the events of a plane refer to by number."""
    data = space.data
    return dict(
        _entry(data, at, end)
        for field, kind, at, end in fields(data, plane.start, plane.stop)
        if field == 4 and kind == DELIMITED
    )


def events(space: Space, line: Line, skipped: re.Pattern[bytes] | None = None) -> Iterator[Event]:
    """Go through the events of a line; their starts count from the line's own origin.

    Args:
        space: the file.
        line: which line.
        skipped: from ``short_events``; what it matches is passed over.

    Raises:
        DamagedError: when an event is none.
    """
    data, at, stop = space.data, line.start, line.stop
    stamp_ps, released = line.stamp_ns * PS_PER_NS, at
    while at < stop:
        if skipped is not None:
            at = skipped.match(data, at, min(stop, released + WINDOW_BYTES)).end()  # type: ignore[union-attr]
        if at - released >= WINDOW_BYTES or at == stop:
            _release(data, released, at)
            released = at
            continue
        tag, inner = varint(data, at, stop)
        if tag != EVENT_TAG:
            at = next(fields(data, at, stop))[3]
            continue
        length, inner = varint(data, inner, stop)
        if length > stop - inner:
            raise DamagedError(f"the event at byte {at} ends after its line")
        at = inner + length
        yield _event(data, inner, at, stamp_ps)
        if at - released >= WINDOW_BYTES:
            _release(data, released, at)
            released = at


def _event(data: Buffer, at: int, stop: int, stamp_ps: int) -> Event:
    key = offset = duration = 0
    while at < stop:
        tag = data[at]
        if tag == 0x08:
            key, at = varint(data, at + 1, stop)
        elif tag == 0x10:
            offset, at = varint(data, at + 1, stop)
        elif tag == 0x18:
            duration, at = varint(data, at + 1, stop)
        else:
            break
    if offset >= 2**63:
        offset -= 2**64
    if duration >= 2**63:
        raise DamagedError(f"the event before byte {stop} has a negative duration")
    return key, stamp_ps + offset, duration, at, stop


def _release(data: Buffer, start: int, stop: int) -> None:
    """Let go of pages that were read: the file stays whole on disk, and memory small."""
    if isinstance(data, mmap.mmap) and hasattr(data, "madvise"):
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        length = (stop - first) // mmap.PAGESIZE * mmap.PAGESIZE
        if length > 0:
            data.madvise(mmap.MADV_DONTNEED, first, length)
