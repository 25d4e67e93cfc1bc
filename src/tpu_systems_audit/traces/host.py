"""What the host did: the events of its threads that decide whether a trace is clean, found in one pass."""

import re
from dataclasses import dataclass

import tpu_systems_audit.traces.names as names
from tpu_systems_audit.traces.space import Plane, Space, event_names, events, stat
from tpu_systems_audit.traces.wire import DELIMITED, fields, short_events

LONG_PS = 250 * 10**9  # what is shorter blocks nobody
PATTERN_BYTES = 2**18  # a smaller plane is read sooner than its pattern is built

Thread = tuple[str, int, str]  # plane, id and name of a line; lines of one id are one timeline


@dataclass(frozen=True)
class HostEvent:
    """An event of a host thread, from the start of the profile; *step* is set when it annotates a step."""

    name: str
    thread: Thread
    start_ps: int
    duration_ps: int
    step: int | None = None

    @property
    def end_ps(self) -> int:
        """When it ended."""
        return self.start_ps + self.duration_ps


@dataclass
class Host:
    """What the host's threads recorded."""

    unsteady: dict[str, list[HostEvent]]  # by kind: compile, cache-load, lowering
    annotations: list[HostEvent]
    calls: list[HostEvent]
    long: list[HostEvent]
    dispatching: set[Thread]
    operations: int = 0  # of the CPU executor
    last_operation_ps: int = 0
    tpu_runtime: bool = False
    recorded: bool = False  # anything but Python frames


def read_host(space: Space, origin_ps: int) -> Host:
    """Read all threads of the host.

    Args:
        space: the file.
        origin_ps: when the profile started, on the clock of the stamps that count from 1970.

    Raises:
        DamagedError: when an event is none.
    """
    host = Host({}, [], [], [], set())
    for plane in space.planes:
        if plane.name.startswith("/host:") and plane.name != "/host:metadata" and plane.lines:
            _read_plane(space, plane, origin_ps, host)
    return host


def _read_plane(space: Space, plane: Plane, origin_ps: int, host: Host) -> None:
    known = event_names(space, plane)
    kinds = {key: kind for key, name in known.items() if (kind := _kind(name))}
    host.recorded |= any(not name.startswith(names.FRAME) for name in known.values())
    host.tpu_runtime |= "runtime" in kinds.values()
    wanted = {key: name for key, name in plane.stat_names.items() if name in (names.STEP_NUMBER, names.OPERATION)}
    pattern: re.Pattern[bytes] | None = None
    if sum(line.stop - line.start for line in plane.lines) > PATTERN_BYTES:
        pattern = short_events(known.keys() - kinds.keys())
    for line in plane.lines:
        thread = (plane.name, line.id, line.name)
        shift_ps = line.origin_ps(origin_ps)
        executor = bool(names.CPU_EXECUTOR.fullmatch(line.name))
        for event in events(space, line, None if executor else pattern):
            key, start, duration, at, stop = event
            name, kind = known.get(key, ""), kinds.get(key)
            found = _stats(space, at, stop, wanted) if wanted and at < stop else {}
            step = found.get(names.STEP_NUMBER)
            if names.OPERATION in found or (executor and not names.CHORES.fullmatch(name)):
                host.operations += 1
                host.last_operation_ps = max(host.last_operation_ps, start - shift_ps + duration)
            if kind or step is not None or duration >= LONG_PS:
                number = step if isinstance(step, int) else None
                _keep(host, HostEvent(name, thread, start - shift_ps, duration, number), kind)


def _keep(host: Host, event: HostEvent, kind: str | None) -> None:
    if kind in names.UNSTEADY:
        host.unsteady.setdefault(kind, []).append(event)
    if kind == "call":
        host.calls.append(event)
    if event.step is not None:
        host.annotations.append(event)
    if event.step is not None or kind in ("call", "dispatch"):
        host.dispatching.add(event.thread)
    if event.duration_ps >= LONG_PS:
        host.long.append(event)


def _kind(name: str) -> str | None:
    """What makes an event of this name worth keeping."""
    if kind := names.unsteady(name):
        return kind
    if names.STEP_CALL.fullmatch(name):
        return "call"
    if names.DISPATCH.fullmatch(name):
        return "dispatch"
    return "runtime" if names.TPU_RUNTIME.fullmatch(name) else None


def _stats(space: Space, at: int, stop: int, wanted: dict[int, str]) -> dict[str, object]:
    """The stats of an event that are wanted, by name."""
    found: dict[str, object] = {}
    for number, kind, start, end in fields(space.data, at, stop):
        if number == 4 and kind == DELIMITED:
            key, value = stat(space.data, start, end)
            if key in wanted:
                found[wanted[key]] = value
    return found
