"""Which steps a recording holds, and which programs each is made of."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tpu_systems_audit.traces.device import Device, Run
from tpu_systems_audit.traces.host import Host, HostEvent
from tpu_systems_audit.traces.recording import Recording

SMALLEST_SHARE = 0.05  # of a device's time; a program below it is a helper
FEWEST = 3  # fewer steps show no rhythm

Mix = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Stepping:
    """The steps of every device, or of the host alone, and what tells them apart.

    ``annotated`` counts the steps that the host's annotations name.
    """

    source: str  # Steps line, programs, annotations, calls, nothing
    steps: dict[str, tuple[Run, ...]]
    annotated: int
    mixes: dict[str, tuple[Mix, ...]]

    @property
    def longest(self) -> tuple[Run, ...]:
        """The steps of the device, or host, that has most."""
        return max(self.steps.values(), key=len, default=())

    @property
    def first_ps(self) -> int:
        """When the first step of any device starts."""
        return min(runs[0].start_ps for runs in self.steps.values() if runs)

    @property
    def last_ps(self) -> int:
        """When the last step of any device ends."""
        return max(run.end_ps for runs in self.steps.values() for run in runs)


def stepping(recording: Recording) -> Stepping:
    """Find the steps: a device's line of steps, else its programs, else the host's annotations, else its calls.

    Args:
        recording: of one host.
    """
    annotations = _most(recording.host.annotations)
    calls = _most(_outermost(recording.host.calls))
    expected = len(annotations) or (len(calls) if len(calls) >= FEWEST else 0)
    grouped = {device.name: _groups(device, expected) for device in recording.devices}
    steps = {
        device.name: device.marked or tuple(_joined(group) for group in grouped[device.name])
        for device in recording.devices
    }
    mixes = {
        device.name: tuple(_mix(group) for group in (_within(device) if device.marked else grouped[device.name]))
        for device in recording.devices
    }
    annotated = len(annotations)
    if any(steps.values()):
        marked = any(device.marked for device in recording.devices)
        return Stepping("Steps line" if marked else "programs", steps, annotated, mixes)
    if annotations:
        runs = tuple(Run(f"{event.step}", event.start_ps, event.duration_ps) for event in annotations)
        return Stepping("annotations", {"host": runs}, annotated, {})
    if calls and recording.host.operations:  # where nothing ran, a call was no step
        return Stepping("calls", {"host": _from_start_to_start(calls, recording.host)}, 0, {})
    return Stepping("nothing", {}, 0, {})


def large_runs(device: Device) -> list[Run]:
    """The runs of the programs that take at least a twentieth of the device's time.

    Args:
        device: with its runs in the order of time.
    """
    time_ps: Counter[str] = Counter()
    for run in device.runs:
        time_ps[run.name] += run.duration_ps
    least = SMALLEST_SHARE * time_ps.total()
    return [run for run in device.runs if time_ps[run.name] >= least]


def _groups(device: Device, expected: int) -> list[list[Run]]:
    """Put the runs of each step together; with one program each run is a step."""
    runs = large_runs(device)
    programs = {run.name for run in runs}
    if len(programs) < 2:
        return [[run] for run in runs]
    size = len(runs) // expected if expected and len(runs) % expected == 0 else 0
    if not expected:
        size = _period([run.name for run in runs])
    if size:
        return [runs[at : at + size] for at in range(0, len(runs), size)]
    time_ps: Counter[str] = Counter()
    for run in runs:
        time_ps[run.name] += run.duration_ps
    dominant = time_ps.most_common(1)[0][0]
    return [[run] for run in runs if run.name == dominant]


def _period(programs: Sequence[str]) -> int:
    """After how many runs the order of programs repeats, with at least three repetitions; 0 when it does not."""
    for size in range(1, len(programs) // FEWEST + 1):
        if len(programs) % size == 0 and all(name == programs[at % size] for at, name in enumerate(programs)):
            return size
    return 0


def _within(device: Device) -> list[list[Run]]:
    """The large runs inside each marked step, by their middles."""
    runs = large_runs(device)
    return [
        [run for run in runs if step.start_ps <= run.start_ps + run.duration_ps // 2 < step.end_ps]
        for step in device.marked
    ]


def _mix(group: Sequence[Run]) -> Mix:
    return tuple(sorted(Counter(run.name for run in group).items()))


def _joined(group: Sequence[Run]) -> Run:
    start = group[0].start_ps
    return Run(group[0].name, start, max(run.end_ps for run in group) - start)


def _most(found: Sequence[HostEvent]) -> list[HostEvent]:
    """The events of the thread and name that has most of them, the longest in sum when that does not decide."""
    groups: dict[tuple[object, str], list[HostEvent]] = defaultdict(list)
    for event in found:
        groups[event.thread, event.name].append(event)
    most = max(groups.values(), key=lambda group: (len(group), sum(event.duration_ps for event in group)), default=[])
    return sorted(most, key=lambda event: event.start_ps)


def _outermost(calls: Sequence[HostEvent]) -> list[HostEvent]:
    """The calls that no other call of their thread contains: each is recorded within itself once more."""
    kept, ends = [], {}  # type: tuple[list[HostEvent], dict[object, int]]
    for call in sorted(calls, key=lambda call: (call.start_ps, -call.duration_ps)):
        if call.end_ps > ends.get(call.thread, -1):
            kept.append(call)
            ends[call.thread] = call.end_ps
    return kept


def _from_start_to_start(calls: Sequence[HostEvent], host: Host) -> tuple[Run, ...]:
    """Steps of a host that only dispatches: the last one ends with the last operation."""
    last = max(calls[-1].end_ps, host.last_operation_ps)
    ends = [*(call.start_ps for call in calls[1:]), last]
    return tuple(Run(call.name, call.start_ps, end - call.start_ps) for call, end in zip(calls, ends, strict=True))
