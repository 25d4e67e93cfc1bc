"""Stage 2: the trace. The learner's file is read as any other trace is, and must hold the step that was drawn."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from random import Random

from tpu_systems_audit.checker import Call, Returned
from tpu_systems_audit.traces import audit
from tpu_systems_audit.traces.host import HostEvent
from tpu_systems_audit.traces.recording import Recording, read
from tpu_systems_audit.traces.space import Event, Plane, Space, events, opened, stat
from tpu_systems_audit.traces.steps import stepping
from tpu_systems_audit.traces.wire import DELIMITED, fields
from tpu_systems_audit.units import InputError

SUFFIX = ".xplane.pb"
WANTED = f"the path of a *{SUFFIX}, a str or a Path"
WORK = 2e9  # floating-point operations of a step: tens of milliseconds, so that no pause of a busy machine outweighs it
UNFINISHED = 2  # operations whose record may be lost although the result is there: their thread had no time to write it


@dataclass(frozen=True)
class Drawn:
    """A step that no cache knows, and how it is to be traced; *earlier* is the call whose trace already lies there."""

    name: str
    side: int
    times: int
    factor: float
    steps: int  # 0: not given
    earlier: str = ""

    @property
    def wanted(self) -> int:
        """How many steps the trace must hold."""
        return self.steps or 5


def trace_calls(random: Random) -> list[Call]:
    """One call with the usual count in an empty folder, one with another count where an older trace lies."""
    first = drawn(random, 0)
    return [trace_call(first), trace_call(drawn(random, random.choice((4, 6, 7)), first.name))]


def drawn(random: Random, steps: int, earlier: str = "") -> Drawn:
    side = random.randrange(320, 449, 16)
    factor = random.uniform(1.95, 2.05) / side  # the values stay near one
    return Drawn(f"step_{random.getrandbits(40):010x}", side, round(WORK / (2 * side**3)), factor, steps, earlier)


def trace_call(asked: Drawn) -> Call:
    given = f", steps={asked.steps}" if asked.steps else ""
    there = "with an older trace in it" if asked.earlier else "empty"
    written = f"step, argument of shape ({asked.side}, {asked.side}), trace_dir {there}{given}"

    def lacks(back: Returned) -> str | None:
        if back.kind != "bytes" or not isinstance(back.value, bytes):
            return WANTED
        try:
            told = json.loads(back.value)
            return path_lacks(told) or calls_lacks(told, asked) or file_lacks(Path(told["path"]), asked)
        except (OSError, RuntimeError, ValueError, KeyError, TypeError):  # a path that no system takes, or no answer
            return WANTED

    return Call(astuple(asked), lacks, written)


# The file


def path_lacks(told: dict[str, str]) -> str | None:
    """Say what the path is not: one file, where the profiler wrote it, by this call."""
    if not told["path"]:
        return f"{WANTED}, not {told['kind'][:40]}"
    path, folder = Path(told["path"]).resolve(), Path(told["folder"]).resolve()
    if not path.name.endswith(SUFFIX) or not path.is_file():
        return f"the path of a *{SUFFIX} that is there, not {path.name[:60]}"
    if not path.is_relative_to(folder):
        return "a trace below trace_dir, not elsewhere"
    older = Path(told["older"]).resolve() if told["older"] else None
    if not told["kept"]:
        return "the older trace in trace_dir as it was"
    if path == older:
        return "the trace that this call wrote, not the older one"
    if path.parent.parent != folder / "plugins" / "profile":
        return "the file itself that the profiler wrote, where it wrote it, not a copy"
    if len(new := {each.resolve() for each in folder.rglob(f"*{SUFFIX}")} - {older}) > 1:
        return f"one trace with all steps in it, and no copy of it, not {len(new)} files"
    return None


def calls_lacks(told: dict[str, int], asked: Drawn) -> str | None:
    """Say what the calls of the step lacked, whatever the trace holds."""
    if told["others"]:
        return "step(argument) with the very argument that was given, each time, not a copy and not a tracer"
    if told["calls"] <= asked.wanted:
        return f"{asked.wanted} calls of step in the trace and at least one before it, not {told['calls']} in all"
    return None


# What it holds


def file_lacks(path: Path, asked: Drawn) -> str | None:
    """Say what the auditor finds, then whether the steps are those that were asked for."""
    try:
        audited, recording = audit(path), read(path)
    except InputError:
        return "a whole trace: the file cannot be read as one"
    errors = [f"{finding.code}: {finding.message}" for finding in audited.findings if finding.severity == "error"]
    if errors:
        return f"a trace in which the audit finds no error; it finds {'; '.join(errors)}"
    return steps_lack(recording, asked) or (None if recording.devices else end_lacks(path, asked))


def steps_lack(recording: Recording, asked: Drawn) -> str | None:
    """Say whether the steps are as many as asked for, each numbered and each the step that was given."""
    calls = outermost([call for call in recording.host.calls if call.name == f"PjitFunction({asked.name})"])
    marked = [event for event in recording.host.annotations if event.step is not None]
    if stepping(recording).annotated != asked.wanted or len({event.step for event in marked}) != asked.wanted:
        return f"{asked.wanted} steps in the trace, each annotated with its own step_num, not {len(marked)}"
    if len(calls) != asked.wanted:
        return f"{asked.wanted} calls of step in the trace, not {len(calls)}"
    if not all(any(event.start_ps <= call.start_ps <= event.end_ps for call in calls) for event in marked):
        return "a call of step inside the annotation of each step"
    return None


def outermost(calls: Sequence[HostEvent]) -> list[HostEvent]:
    """The calls that none before them contains: each is recorded within itself once more."""
    kept: list[HostEvent] = []
    for call in sorted(calls, key=lambda call: (call.start_ps, -call.duration_ps)):
        if not kept or call.end_ps > kept[-1].end_ps:
            kept.append(call)
    return kept


def end_lacks(path: Path, asked: Drawn) -> str | None:
    """Say whether the last step ended in the trace; of devices the audit itself counts the steps.

    Earlier steps may end after it where several run at once, and who waits for the last result did nothing wrong.
    """
    runs = operations(path, f"jit_{asked.name}")
    if len(runs) >= asked.wanted and runs[max(runs)] >= asked.times - UNFINISHED:
        return None
    return "a trace in which the last step has ended"


def operations(path: Path, program: str) -> Counter[int]:
    """Count the operations that the CPU executor recorded, by the number of the program's run."""
    found: Counter[int] = Counter()
    with opened(path) as space:
        lines = [(plane, line) for plane in space.planes if plane.name.startswith("/host:") for line in plane.lines]
        for plane, line in lines:
            for event in events(space, line):
                stats = named_stats(space, plane, event)
                if plane.stat_names.get(stats.get("hlo_module", -1)) == program:
                    found[stats.get("run_id", 0)] += 1
    return found


def named_stats(space: Space, plane: Plane, event: Event) -> dict[str, int]:
    """The whole numbers among an event's stats, by name; a text that stands elsewhere is the number of its name."""
    _, _, _, at, stop = event
    pairs = (stat(space.data, a, b) for n, kind, a, b in fields(space.data, at, stop) if n == 4 and kind == DELIMITED)
    return {plane.stat_names.get(key, ""): value for key, value in pairs if isinstance(value, int)}
