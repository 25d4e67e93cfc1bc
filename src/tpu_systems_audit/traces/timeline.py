"""A trace as bars on a line of time: what the host spent before and between the steps, and the steps."""

from dataclasses import dataclass
from pathlib import Path

from tpu_systems_audit.traces.files import find_run
from tpu_systems_audit.traces.recording import Recording, read
from tpu_systems_audit.traces.rules import PS_PER_US
from tpu_systems_audit.traces.steps import Stepping, stepping

KINDS = ("step", "compile", "cache-load", "lowering", "busy")
MOST_BARS = 200


@dataclass(frozen=True)
class Bar:
    """Something that took time, from the start of the profile."""

    kind: str
    label: str
    start_us: float
    duration_us: float

    @property
    def end_us(self) -> float:
        """When it ended."""
        return self.start_us + self.duration_us


@dataclass(frozen=True)
class Row:
    """A device, or the host's work of one kind."""

    label: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Timeline:
    """The rows of one host's file; the steps take the window from *first_us* to *last_us*."""

    file: str
    rows: tuple[Row, ...]
    end_us: float
    first_us: float
    last_us: float


def timelines(path: Path) -> tuple[Timeline, ...]:
    """Lay out the newest trace below a path, one timeline for each host.

    Args:
        path: a ``*.xplane.pb``, or the folder that was given to the profiler.

    Raises:
        InputError: when there is no trace.
    """
    return tuple(_timeline(read(file)) for file in find_run(path).files)


def _timeline(recording: Recording) -> Timeline:
    steps = stepping(recording)
    rows = [row for row in (*_host_rows(recording), *_step_rows(steps)) if row.bars]
    ends = [bar.end_us for row in rows for bar in row.bars]
    window = (steps.first_ps / PS_PER_US, steps.last_ps / PS_PER_US) if steps.longest else (0.0, max(ends, default=0.0))
    return Timeline(recording.file.name, tuple(rows), max(ends, default=0.0), *window)


def _host_rows(recording: Recording) -> list[Row]:
    host = recording.host
    known = {(event.name, event.start_ps) for found in host.unsteady.values() for event in found}
    events = [(kind, event) for kind, found in host.unsteady.items() for event in found]
    events += [
        ("busy", event) for event in host.long if (event.name, event.start_ps) not in known and event.step is None
    ]
    bars = [Bar(kind, event.name, event.start_ps / PS_PER_US, event.duration_ps / PS_PER_US) for kind, event in events]
    longest = sorted(bars, key=lambda bar: -bar.duration_us)[:MOST_BARS]
    return [
        Row(f"host, {kind}", tuple(sorted((bar for bar in longest if bar.kind == kind), key=lambda bar: bar.start_us)))
        for kind in KINDS
        if kind != "step"
    ]


def _step_rows(steps: Stepping) -> list[Row]:
    return [
        Row(
            place.removeprefix("/device:"),
            tuple(
                Bar("step", f"step {number}", run.start_ps / PS_PER_US, run.duration_ps / PS_PER_US)
                for number, run in enumerate(runs[:MOST_BARS])
            ),
        )
        for place, runs in steps.steps.items()
    ]
