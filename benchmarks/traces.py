"""``trace audit`` beside XProf's overview, JAX's ProfileData and SHA-256, on large traces; and how it grows with size.

``python benchmarks/traces.py [--output FILE]`` prints the result and writes it as JSON. Every measurement is a process
of its own on a fresh link to the file, so that nobody reads what another kept; the subjects take turns.
What is timed is the work, not the imports; the peak is that of the whole process.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the writer of traces, which the tests use too

from machine import arguments, save

MB = 10**6
FRAMES = 2 * 10**6
# What the audit must reach: at most this many times the other's time, and of its peak.
BOUNDS = {
    "operations": {"xprof": (1 / 25, 1 / 10), "profile_data": (1 / 5, None), "sha256": (3, None)},
    "frames": {"xprof": (1 / 6, None), "profile_data": (1.25, None)},
}
MOST_PEAK_MB = 100
GROWTH_MB = (1, 10, 100, 1000)


def main() -> None:
    """Measure and report."""
    if sys.argv[1:2] == ["--one"]:
        return _one(sys.argv[2], Path(sys.argv[3]))
    args = arguments(__file__, __doc__, rounds=3)
    from big_traces import frames, operations

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        operations(folder / "operations.xplane.pb", 100)
        frames(folder / "frames.xplane.pb", 100, FRAMES)
        traces = {kind: _compared(folder / f"{kind}.xplane.pb", BOUNDS[kind], args.rounds) for kind in BOUNDS}
        growth = [row for size in GROWTH_MB for row in _grown(folder, size, args.rounds)]
    versions = {package: version(package) for package in ("jax", "xprof")}
    largest = max(row["peak_mb"] for row in growth)
    within = all(row["within"] for rows in traces.values() for row in rows) and largest <= MOST_PEAK_MB
    save(args.output, rounds=args.rounds, versions=versions, traces=traces, growth=growth, most_peak_mb=MOST_PEAK_MB,
         within=within)  # fmt: skip
    return None


def _compared(path: Path, bounds: dict, rounds: int) -> list[dict]:
    """Measure every subject in turn, *rounds* times; the median of each beside the audit's."""
    subjects = ("audit", *SUBJECTS.keys() - {"audit"})
    taken: dict[str, list[tuple[float, float]]] = {subject: [] for subject in subjects}
    for _ in range(rounds):
        for subject in subjects:
            taken[subject].append(_measured(subject, path))
    rows = []
    ours = {key: statistics.median(pair[at] for pair in taken["audit"]) for at, key in enumerate(("s", "peak_mb"))}
    for subject in subjects:
        seconds, peak_mb = (statistics.median(pair[at] for pair in taken[subject]) for at in (0, 1))
        time_bound, peak_bound = bounds.get(subject, (None, None))
        within = ours["peak_mb"] <= MOST_PEAK_MB
        within &= time_bound is None or ours["s"] <= time_bound * seconds
        within &= peak_bound is None or ours["peak_mb"] <= peak_bound * peak_mb
        rows.append({"subject": subject, "seconds": seconds, "peak_mb": peak_mb, "times_audit": seconds / ours["s"],
                     "peak_times_audit": peak_mb / ours["peak_mb"], "time_bound": time_bound,
                     "peak_bound": peak_bound, "within": within})  # fmt: skip
        print(f"{path.name} {subject}: {seconds:.3f} s, {peak_mb:.0f} MB", flush=True)
    return rows


def _grown(folder: Path, megabytes: int, rounds: int) -> Iterator[dict]:
    """Measure the audit alone on traces of one size, of either kind."""
    from big_traces import frames, operations

    for kind in BOUNDS:
        path = folder / f"grown-{kind}.xplane.pb"
        if kind == "operations":
            operations(path, megabytes)
        else:
            frames(path, megabytes, megabytes * FRAMES // 100)
        taken = [_measured("audit", path) for _ in range(rounds)]
        seconds, peak_mb = (statistics.median(pair[at] for pair in taken) for at in (0, 1))
        print(f"{megabytes} MB of {kind}: {seconds:.3f} s, {peak_mb:.0f} MB", flush=True)
        yield {"kind": kind, "bytes": path.stat().st_size, "seconds": seconds, "peak_mb": peak_mb}
        path.unlink()


def _measured(subject: str, path: Path) -> tuple[float, float]:
    with _fresh(path) as link:
        command = [sys.executable, __file__, "--one", subject, str(link)]
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["peak_mb"]


@contextmanager
def _fresh(path: Path) -> Iterator[Path]:
    """A link in a folder of its own: what XProf keeps beside a trace is gone with it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        link = Path(folder, "host.xplane.pb")
        os.link(path, link)
        yield link


def _one(subject: str, path: Path) -> None:
    work = SUBJECTS[subject]()
    start = time.perf_counter()
    work(path)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak_mb": _peak_bytes() / MB}))


def _peak_bytes() -> int:
    """The peak of this process alone: on Linux, what getrusage says began with the size of the parent."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _audit() -> Callable[[Path], object]:
    from tpu_systems_audit.traces import audit

    return audit


def _sha256() -> Callable[[Path], object]:
    import hashlib

    def digest(path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return digest


def _profile_data() -> Callable[[Path], object]:
    """Open it and name every line: the least that one can ask."""
    from jax.profiler import ProfileData

    return lambda path: [line.name for plane in ProfileData.from_file(str(path)).planes for line in plane.lines]


def _xprof() -> Callable[[Path], object]:
    from xprof.convert import raw_to_tool_data

    return lambda path: raw_to_tool_data.xspace_to_tool_data([str(path)], "overview_page", {})


SUBJECTS = {"audit": _audit, "sha256": _sha256, "profile_data": _profile_data, "xprof": _xprof}

if __name__ == "__main__":
    main()
