"""The rules of a clean trace, R1 to R9: each finding with its evidence and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tpu_systems_audit.traces.device import Run
from tpu_systems_audit.traces.host import LONG_PS, HostEvent
from tpu_systems_audit.traces.names import FRAME
from tpu_systems_audit.traces.recording import Recording
from tpu_systems_audit.traces.steps import FEWEST, Stepping

ERROR, WARNING, NOTE = "error", "warning", "note"
PS_PER_US, PS_PER_MS, PS_PER_S = 10**6, 10**9, 10**12

BLOCK_STEPS = 10  # R4: how many median steps a blocking event lasts at least, and never under LONG_PS
CLOCK_SLACK_PS = 5 * PS_PER_MS  # host and device clocks differ
LEAD_IN_PS, LEAD_IN_SPANS = PS_PER_S, 20  # R5
MOST_SPREAD, MOST_START_SPREAD = 1.10, 1.5  # R7: longest over median, of durations and from start to start
SHOWN = 3


@dataclass(frozen=True)
class Evidence:
    """An event that a finding rests on, and where it stands."""

    event: str
    thread: str
    start_us: float
    duration_us: float


@dataclass(frozen=True)
class Finding:
    """What one rule found in one file: ``error`` fails the trace, ``warning`` and ``note`` do not."""

    code: str
    severity: str
    message: str
    evidence: tuple[Evidence, ...]
    fix: str
    file: str = ""


def findings(recording: Recording, steps: Stepping) -> list[Finding]:
    """Apply the rules to one host's recording.

    Args:
        recording: of one host.
        steps: its steps.
    """
    rules = (_tracer_off, _platform, _unsteady, _host_block, _lead_in, _few, _uneven, _incomplete, _programs)
    return [found for rule in rules for found in rule(recording, steps)]


def _tracer_off(recording: Recording, _: Stepping) -> Iterator[Finding]:
    level, recorded = recording.tracer_level, recording.host.recorded
    fix = "trace with host_tracer_level 1 or 2"
    if level == 0:
        yield _finding("tracer-off", ERROR, "the host tracer was off (level 0): a compile would not show", fix)
    elif level is None and not recorded:
        yield _finding("tracer-off", ERROR, "no profile options and no host event: a compile would not show", fix)
    elif level is None:
        yield _finding("tracer-off", WARNING, "no profile options: the host tracer's level is unknown", fix)
    elif not recorded:
        yield _finding("tracer-off", WARNING, f"the host tracer was at level {level} and recorded nothing", fix)


def _platform(recording: Recording, _: Stepping) -> Iterator[Finding]:
    platform = recording.platform
    if platform in ("cpu", "gpu"):
        message = f"recorded on a {platform.upper()}: a rehearsal, whatever else it shows"
        yield _finding("platform", NOTE, message, "trace on a TPU for a result that counts")
    if platform == "unknown" and recording.host.tpu_runtime:
        message = "the host ran the TPU runtime, and no device recorded anything"
        yield _finding("incomplete", ERROR, message, "trace again; the profiler must reach the TPU of every host")
    elif platform == "unknown":
        message = "nothing ran: no device, and no operation of the CPU executor"
        yield _finding("incomplete", ERROR, message, "block_until_ready on the last result before the trace stops")


def _unsteady(recording: Recording, steps: Stepping) -> Iterator[Finding]:
    last_ps = steps.last_ps if steps.longest else None
    words = {
        "compile": ("compiled", "run the step once with the same shapes and block_until_ready before the trace"),
        "cache-load": ("loaded from a cache", "run the step once and block_until_ready before the trace"),
        "lowering": ("traced or lowered by JAX", "run the step once with the same shapes before the trace"),
    }
    for kind, (did, fix) in words.items():
        found = recording.host.unsteady.get(kind, [])
        early = [event for event in found if last_ps is None or event.start_ps < last_ps]
        late = [event for event in found if event not in early] if len(early) < len(found) else []
        if early:
            severity = WARNING if kind == "lowering" else ERROR
            message = f"a program was {did} before the last step ended ({_events(early)})"
            yield _finding(kind, severity, message, fix, _longest(early))
        if late:
            message = f"a program was {did} after the last step ({_events(late)}); no step is touched"
            yield _finding(kind, WARNING, message, "stop the trace right after the last step", _longest(late))


def _host_block(recording: Recording, steps: Stepping) -> Iterator[Finding]:
    if not steps.longest:
        return
    least = max(LONG_PS, BLOCK_STEPS * median(run.duration_ps for run in steps.longest))
    latest = steps.first_ps + CLOCK_SLACK_PS
    found = [
        event
        for event in recording.host.long
        if event.duration_ps >= least
        and event.end_ps <= latest
        and (not event.name.startswith(FRAME) or event.thread in recording.host.dispatching)
    ]
    if found:
        message = f"the host was busy for {_ms(max(event.duration_ps for event in found))} before the first step"
        yield _finding("host-block", ERROR, message, "start the trace after this work", _longest(found))


def _lead_in(recording: Recording, steps: Stepping) -> Iterator[Finding]:
    if not steps.longest:
        return
    first, span = steps.first_ps, steps.last_ps - steps.first_ps
    if first >= LEAD_IN_PS and first >= LEAD_IN_SPANS * span:
        message = f"the first step starts {_ms(first)} into the profile, and all steps together take {_ms(span)}"
        fix = "warm up before the trace, start it right before the first step"
        yield _finding("lead-in", ERROR, message, fix, [_run(steps.longest[0], _place(steps))])


def _few(_: Recording, steps: Stepping) -> Iterator[Finding]:
    count = len(steps.longest)
    if count < FEWEST:
        message = f"{count or 'no'} step{'' if count == 1 else 's'}; fewer than {FEWEST} show no rhythm"
        yield _finding("steps", ERROR, message, "trace five steps, and block_until_ready before it stops")


def _uneven(recording: Recording, steps: Stepping) -> Iterator[Finding]:
    severity = ERROR if recording.devices and steps.source != "annotations" else WARNING
    for place, runs in steps.steps.items():
        if len(runs) < FEWEST:
            continue
        fix = "give every step the same shapes and have its input ready; trace again"
        if told := _spread([run.duration_ps for run in runs], MOST_SPREAD, "step"):
            slowest = max(runs, key=lambda run: run.duration_ps)
            yield _finding("uneven", severity, f"{place}: {told}", fix, [_run(slowest, place)])
        gaps = [after.start_ps - before.start_ps for before, after in pairwise(runs)]
        if steps.source != "calls" and (told := _spread(gaps, MOST_START_SPREAD, "time from start to start")):
            before = runs[gaps.index(max(gaps))]
            yield _finding("uneven", severity, f"{place}: {told}", fix, [_run(before, place)])


def _spread(durations: Sequence[int], most: float, what: str) -> str:
    """Say that durations are uneven, and the first apart when the rest are even; empty when they are even."""
    middle, longest = median(durations), max(durations)
    if longest <= most * middle:
        return ""
    rest = durations[1:]
    if longest == durations[0] and max(rest) <= most * median(rest):
        return f"the first {what} takes {_ms(longest)}, {_ratio(longest, middle)} the median; the others are even"
    return f"the longest {what} takes {_ms(longest)}, {_ratio(longest, middle)} the median"


def _incomplete(recording: Recording, steps: Stepping) -> Iterator[Finding]:
    fix = "block_until_ready on the last result before the trace stops, and trace again"
    for told in recording.errors:
        yield _finding("incomplete", ERROR, f"the profiler reports an error: {told[:120]!r}", "trace again")
    for told in recording.warnings:
        yield _finding("incomplete", WARNING, f"the profiler warns: {told[:120]!r}", "see what it asks for")
    most = len(steps.longest)
    from_devices = steps.source in ("Steps line", "programs")
    for device in recording.devices:
        count = len(steps.steps.get(device.name, ()))
        if device.dropped:
            message = f"{device.name}: the profiler dropped trace buffers"
            yield _finding("incomplete", ERROR, message, "trace fewer steps")
        if not device.busy or (from_devices and not count):
            yield _finding("incomplete", ERROR, f"{device.name}: no step, while others have {most}", fix)
        elif from_devices and count < most:
            yield _finding("incomplete", ERROR, f"{device.name}: {count} steps, while others have {most}", fix)
    if from_devices and most < steps.annotated:
        message = f"the host annotates {steps.annotated} steps, the devices ran {most}"
        yield _finding("incomplete", ERROR, message, fix)
    numbers = sorted({device.number for device in recording.devices if device.platform == "tpu"})
    if numbers and (numbers[-1] - numbers[0] >= len(numbers) or numbers[0] % len(numbers)):
        missing = f"devices {', '.join(map(str, numbers))} recorded, and a number between is missing"
        yield _finding("incomplete", ERROR, missing, "trace again; every device of the host must record")


def _programs(_: Recording, steps: Stepping) -> Iterator[Finding]:
    for place, mixes in steps.mixes.items():
        names = sorted({name for mix in mixes for name, _ in mix})
        if len(names) > 1 and len(set(mixes)) > 1:
            message = f"{place}: the steps run different programs ({', '.join(names[:SHOWN])})"
            yield _finding("programs", ERROR, message, "trace one kind of step, with the same shapes throughout")


def _finding(code: str, severity: str, message: str, fix: str, evidence: Iterable[Evidence] = ()) -> Finding:
    return Finding(code, severity, message, tuple(evidence), fix)


def _longest(found: Sequence[HostEvent]) -> list[Evidence]:
    longest = sorted(found, key=lambda event: -event.duration_ps)[:SHOWN]
    return [
        Evidence(event.name, event.thread[2], event.start_ps / PS_PER_US, event.duration_ps / PS_PER_US)
        for event in longest
    ]


def _run(run: Run, place: str) -> Evidence:
    return Evidence(run.name, place, run.start_ps / PS_PER_US, run.duration_ps / PS_PER_US)


def _place(steps: Stepping) -> str:
    return next(place for place, runs in steps.steps.items() if runs and runs[0].start_ps == steps.first_ps)


def _events(found: Sequence[HostEvent]) -> str:
    longest = max(event.duration_ps for event in found)
    return f"{len(found)} event{'s' if len(found) > 1 else ''}, the longest {_ms(longest)}"


def _ms(duration_ps: float) -> str:
    return f"{duration_ps / PS_PER_MS:,.2f} ms"


def _ratio(longest: float, middle: float) -> str:
    return f"{longest / middle:.2f} times" if middle else "while zero is"
