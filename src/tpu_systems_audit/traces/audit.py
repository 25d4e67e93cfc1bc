"""The audit of a trace: which files, what the rules find in each, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from tpu_systems_audit.traces.files import about_files, find_run
from tpu_systems_audit.traces.recording import Recording, TraceFile, read
from tpu_systems_audit.traces.rules import ERROR, NOTE, PS_PER_US, WARNING, Finding, findings
from tpu_systems_audit.traces.steps import stepping

CLEAN, NOT_CLEAN, REHEARSAL = "clean", "not-clean", "rehearsal"


@dataclass(frozen=True)
class Step:
    """A step, from the start of the profile."""

    start_us: float
    duration_us: float


@dataclass(frozen=True)
class Audit:
    """The verdict on a trace of one host or more; steps are those of the device that has most, on the first host."""

    verdict: str
    platform: str
    device_kind: str | None
    devices: tuple[str, ...]
    step_source: str
    steps: tuple[Step, ...]
    median_step_us: float | None
    findings: tuple[Finding, ...]
    files: tuple[TraceFile, ...]
    run: str
    passed_over: tuple[str, ...]
    versions: dict[str, str]


def audit(path: Path, hosts: int | None = None) -> Audit:
    """Audit a trace file, or the newest run below a folder, with every host's file in it.

    Args:
        path: a ``*.xplane.pb``, or the folder that was given to the profiler.
        hosts: how many hosts must have recorded; without it, as many as did.

    Raises:
        InputError: when there is no trace, or a file is not a whole XSpace.
    """
    run = find_run(path)
    recordings = [read(file) for file in run.files]
    steps = [stepping(recording) for recording in recordings]
    found = [
        replace(finding, file=recording.file.name)
        for recording, each in zip(recordings, steps, strict=True)
        for finding in findings(recording, each)
    ]
    found += about_files(run, hosts)
    kept = sorted(found, key=lambda finding: (ERROR, WARNING, NOTE).index(finding.severity))
    runs = steps[0].longest
    first = recordings[0]
    return Audit(
        verdict=_verdict(recordings, kept),
        platform=first.platform,
        device_kind=next((device.kind for device in first.devices if device.kind), None),
        devices=tuple(device.name for recording in recordings for device in recording.devices),
        step_source=steps[0].source,
        steps=tuple(Step(run.start_ps / PS_PER_US, run.duration_ps / PS_PER_US) for run in runs),
        median_step_us=median(run.duration_ps for run in runs) / PS_PER_US if runs else None,
        findings=tuple(kept),
        files=tuple(recording.file for recording in recordings),
        run=run.name,
        passed_over=run.passed_over,
        versions=first.versions,
    )


def _verdict(recordings: Sequence[Recording], found: Sequence[Finding]) -> str:
    if any(finding.severity == ERROR for finding in found):
        return NOT_CLEAN
    return CLEAN if all(recording.platform == "tpu" for recording in recordings) else REHEARSAL
