"""What each device did: its steps and the runs of its programs."""

from dataclasses import dataclass, replace

import tpu_systems_audit.traces.names as names
from tpu_systems_audit.traces.space import Line, Plane, Space, event_names, events


@dataclass(frozen=True)
class Run:
    """One run of a program, or one step, on a device, from the start of the profile."""

    name: str
    start_ps: int
    duration_ps: int

    @property
    def end_ps(self) -> int:
        """When it ended."""
        return self.start_ps + self.duration_ps


@dataclass(frozen=True)
class Device:
    """A device's own recording; *busy* when it holds any event."""

    name: str
    platform: str  # tpu or gpu
    number: int
    kind: str | None
    marked: tuple[Run, ...]  # the steps that its own line of steps marks
    runs: tuple[Run, ...]  # of programs
    busy: bool
    dropped: bool


def read_devices(space: Space, origin_ps: int) -> tuple[Device, ...]:
    """Read the devices of a space in the order of their numbers; only their steps and programs are decoded.

    Args:
        space: the file.
        origin_ps: when the profile started, on the clock of the stamps that count from 1970.

    Raises:
        DamagedError: when an event is none.
    """
    found = []
    for plane in space.planes:
        for platform, pattern in (("tpu", names.TENSOR_CORE), ("gpu", names.GPU)):
            if match := pattern.fullmatch(plane.name):
                found.append(_device(space, plane, platform, int(match[1]), origin_ps))
    repeated = {device.name for device in found if sum(other.name == device.name for other in found) > 1}
    ids = iter(
        plane.id for plane in space.planes if names.TENSOR_CORE.fullmatch(plane.name) or names.GPU.fullmatch(plane.name)
    )
    found = [
        replace(device, name=f"{device.name} (id {number})") if device.name in repeated else device
        for device, number in zip(found, ids, strict=True)
    ]
    return tuple(sorted(found, key=lambda device: (device.platform, device.number)))


def _device(space: Space, plane: Plane, platform: str, number: int, origin_ps: int) -> Device:
    known = event_names(space, plane)
    kind = plane.stats.get("device_type_string")
    marked = _runs(space, known, [line for line in plane.lines if line.name in names.STEP_LINES], origin_ps)
    runs = _runs(space, known, [line for line in plane.lines if line.name == names.PROGRAM_LINE], origin_ps)
    return Device(
        name=plane.name,
        platform=platform,
        number=number,
        kind=kind if isinstance(kind, str) else None,
        marked=marked,
        runs=runs,
        busy=any(line.start < line.stop for line in plane.lines),
        dropped=any(names.DROPPED in name for name in known.values()),
    )


def _runs(space: Space, known: dict[int, str], lines: list[Line], origin_ps: int) -> tuple[Run, ...]:
    """The events of lines that are one timeline, in the order of time."""
    return tuple(
        sorted(
            (
                Run(known.get(key, ""), start - line.origin_ps(origin_ps), duration)
                for line in lines
                for key, start, duration, _, _ in events(space, line)
            ),
            key=lambda run: (run.start_ps, run.duration_ps),
        )
    )
