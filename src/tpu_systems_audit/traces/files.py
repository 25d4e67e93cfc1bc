"""Which files make a trace: the newest run below a folder, a file per host; and which of XProf's are stale."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tpu_systems_audit.traces.file import RIGHT
from tpu_systems_audit.traces.rules import ERROR, WARNING, Finding
from tpu_systems_audit.units import InputError

SUFFIXES = (".xplane.pb", ".xplane.pb.gz")  # the plain one counts where a host has both
UNREADABLE = ".xplane.riegeli"
KEPT_BY_XPROF = "*.op_stats*.pb"
STAMP = "%Y_%m_%d_%H_%M_%S"
SAME_CAPTURE = timedelta(seconds=60)  # hosts name their folders by their own clocks


@dataclass(frozen=True)
class TraceRun:
    """One capture: its files, and what else lies below the same folder.

    ``elsewhere`` are files of other hosts whose folders are named almost the same time.
    """

    name: str
    files: tuple[Path, ...]
    passed_over: tuple[str, ...] = ()
    elsewhere: tuple[Path, ...] = ()


def find_run(path: Path) -> TraceRun:
    """Find the newest capture, by name: the times of copied files lie.

    Args:
        path: a trace file, or a folder with traces in it or below.

    Raises:
        InputError: when there is none.
    """
    if not path.is_dir():
        if path.name.endswith(UNREADABLE):
            raise InputError(f"{path}: is riegeli, which continuous profiling writes, not an XSpace; {RIGHT}")
        return TraceRun("", (path,))
    runs: dict[Path, dict[str, Path]] = {}
    for suffix in SUFFIXES:
        for file in sorted(path.rglob(f"*{suffix}")):
            if file.is_file():
                real = file.resolve()
                runs.setdefault(real.parent, {}).setdefault(real.name.removesuffix(suffix), real)
    if not runs:
        riegeli = any(path.rglob(f"*{UNREADABLE}"))
        holds = "only riegeli files, which continuous profiling writes" if riegeli else "no *.xplane.pb"
        raise InputError(f"{path}: holds {holds}; the folder that was given to the profiler is right")
    order = sorted(runs, key=lambda folder: folder.name)
    newest = order[-1]
    hosts = runs[newest]
    elsewhere = [
        file
        for folder in order[:-1]
        if _same_capture(folder.name, newest.name)
        for host, file in runs[folder].items()
        if host not in hosts
    ]
    return TraceRun(
        newest.name,
        tuple(hosts[host] for host in sorted(hosts)),
        tuple(folder.name for folder in order[:-1]),
        tuple(elsewhere),
    )


def about_files(run: TraceRun, hosts: int | None) -> list[Finding]:
    """Say which hosts are missing (R10), and which of XProf's own files are older than the trace.

    Args:
        run: from ``find_run``.
        hosts: how many hosts must have recorded, None when that is not known.
    """
    return [*_missing(run, hosts), *_stale(run)]


def _missing(run: TraceRun, hosts: int | None) -> Iterator[Finding]:
    count = len(run.files)
    others = "; ".join(f"{file.parent.name}/{file.name}" for file in run.elsewhere)
    fix = f"copy {others} into this run's folder" if others else "bring the *.xplane.pb of every host into one folder"
    if hosts is not None and count < hosts:
        message = f"{count} of {hosts} hosts recorded" + (f"; elsewhere: {others}" if others else "")
        yield Finding("hosts", ERROR, message, (), fix)
    elif others and hosts is None:
        message = f"a run of almost the same time holds other hosts: {others}"
        yield Finding("hosts", WARNING, message, (), fix)


def _stale(run: TraceRun) -> Iterator[Finding]:
    if not run.name:
        return
    newest = max(file.stat().st_mtime for file in run.files)
    for kept in sorted(run.files[0].parent.glob(KEPT_BY_XPROF)):
        if kept.stat().st_mtime < newest:
            message = f"{kept.name} is older than the trace: XProf goes on showing what it has kept"
            yield Finding("stale-cache", WARNING, message, (), f"delete {kept.name} before opening XProf")


def _same_capture(name: str, other: str) -> bool:
    try:
        return abs(datetime.strptime(name, STAMP) - datetime.strptime(other, STAMP)) <= SAME_CAPTURE
    except ValueError:
        return False
