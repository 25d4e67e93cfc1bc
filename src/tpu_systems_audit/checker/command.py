"""The command line of every project's ``check.py``: which stages, which file, and how it is told."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from tpu_systems_audit.checker.run import Outcome, Stage, new_seed, run
from tpu_systems_audit.units import InputError, shown, whole

SCHEMA = 1
WATCH_S = 0.5
COLOURS = {"pass": "32", "fail": "31", "error": "31", "timeout": "31", "memory": "31", "not-started": "33"}


def main(project: Path, stages: Sequence[Stage], arguments: Sequence[str]) -> int:
    """Carry out one call of a ``check.py`` and return its exit status: 0 all passed, 1 not, 2 nothing could be checked.

    Args:
        project: the folder with ``starter/model.py``; the work copy is its ``work/model.py``.
        stages: all stages of the project, in order.
        arguments: the command line without the program's name.
    """
    try:
        options = _parser(project, stages).parse_args(arguments)
        if options.start:
            return _start(project / "starter" / "model.py", options.impl)
        chosen = _chosen(stages, options.stage)
        if options.list:
            return _list(chosen)
        seed = new_seed() if options.seed is None else whole(options.seed, "--seed", least=0)
        if options.watch:
            return _watch(chosen, options.impl, options.seed and seed)
        return (_as_json if options.json else _as_text)(chosen, options.impl, seed)
    except InputError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"check.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(" ".join(message.split()))


def _parser(project: Path, stages: Sequence[Stage]) -> argparse.ArgumentParser:
    parser = _Parser(prog="check.py", description="Check your model.py, function by function.", allow_abbrev=False)
    numbers = [str(stage.number) for stage in stages]
    parser.add_argument("--stage", choices=[*numbers, "all"], default="all", help="which stage to check (default: all)")
    parser.add_argument(
        "--impl", type=Path, default=_near(project / "work" / "model.py"), metavar="FILE",
        help="the file to check (default: the work copy, %(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", help="draw the same inputs again")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--start", action="store_true", help="make the work copy; one that is there is kept")
    how.add_argument("--list", action="store_true", help="name the checks")
    how.add_argument("--watch", action="store_true", help="check again whenever the file is saved, until Ctrl-C")
    how.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    return parser


def _near(path: Path) -> Path:
    """Write a path from the current folder when it lies below."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _chosen(stages: Sequence[Stage], number: str) -> list[Stage]:
    """The stages asked for; one that cannot run is refused when it alone was asked for."""
    if number == "all":
        return list(stages)
    stage = next(stage for stage in stages if str(stage.number) == number)
    if stage.missing:
        raise InputError(f"--stage {number}: {stage.missing}")
    return [stage]


def _start(starter: Path, impl: Path) -> int:
    """Copy the starter, unless there is something already."""
    impl.parent.mkdir(parents=True, exist_ok=True)
    try:
        with starter.open("rb") as source, impl.open("xb") as target:
            shutil.copyfileobj(source, target)
    except FileExistsError:
        print(f"{impl} is there already and was kept")
        return 0
    print(f"{impl} is your work copy; write in it, then check it")
    return 0


def _list(stages: Iterable[Stage]) -> int:
    for stage in stages:
        for check in stage.checks:
            print(f"stage {stage.number}  {check.function:24} {check.lesson}")
        if stage.missing:
            print(f"stage {stage.number}  skipped: {stage.missing}")
    return 0


def _source(impl: Path) -> bytes:
    if not impl.exists():
        raise InputError(f"--impl: {shown(impl)} does not exist; --start makes the work copy")
    if not impl.is_file():
        raise InputError(f"--impl: {shown(impl)} is not a file; a Python file such as work/model.py is right")
    return impl.read_bytes()


def _as_json(stages: Sequence[Stage], impl: Path, seed: int) -> int:
    source, told, status = _source(impl), [], 0
    for stage in stages:
        outcomes = [] if stage.missing else list(run(stage, source, seed))
        told.append(_stage_entry(stage, outcomes))
        status |= _status(outcomes)
    print(json.dumps({"schema": SCHEMA, "seed": seed, "stages": told, "exit": status}, indent=2))
    return status


def _stage_entry(stage: Stage, outcomes: list[Outcome]) -> dict[str, Any]:
    if stage.missing:
        return {"stage": stage.number, "status": "skipped", "message": stage.missing, "checks": []}
    each = [{"function": out.function, "status": out.status, "message": out.message} for out in outcomes]
    kinds = {out.status for out in outcomes}
    status = kinds.pop() if len(kinds) == 1 else "fail"
    return {"stage": stage.number, "status": status, "checks": each}


def _status(outcomes: Iterable[Outcome]) -> int:
    return int(any(outcome.status != "pass" for outcome in outcomes))


def _as_text(stages: Sequence[Stage], impl: Path, seed: int) -> int:
    source, status = _source(impl), 0
    print(f"{impl}, seed {seed}")
    for stage in stages:
        if stage.missing:
            print(f"stage {stage.number}: skipped: {stage.missing}")
            continue
        outcomes = []
        for outcome in run(stage, source, seed):
            outcomes.append(outcome)
            _tell(outcome, sys.stdout)
        passed = sum(outcome.status == "pass" for outcome in outcomes)
        print(f"stage {stage.number}: {passed} of {len(outcomes)} passed", flush=True)
        status |= _status(outcomes)
    return status


def _tell(outcome: Outcome, stream: TextIO) -> None:
    """Show one outcome as soon as it is known, coloured on a terminal that takes it."""
    colour = COLOURS[outcome.status] if stream.isatty() and not os.environ.get("NO_COLOR") else ""
    status = f"{outcome.status:12}"
    print(f"  \x1b[{colour}m{status}\x1b[0m" if colour else f"  {status}", outcome.function, file=stream, flush=True)
    for line in outcome.message.splitlines():
        print(f"      {line}", file=stream, flush=True)


def _watch(stages: Sequence[Stage], impl: Path, seed: int | None) -> int:
    """Check whenever the content changes; reading it beats file events, which network folders do not send."""
    status, seen = 0, None
    try:
        while True:
            source = impl.read_bytes() if impl.is_file() else seen  # an editor may be replacing it just now
            if source is None or source != seen:
                seen = source
                status = _as_text(stages, impl, new_seed() if seed is None else seed)
                print("watching; Ctrl-C ends", flush=True)
            time.sleep(WATCH_S)
    except KeyboardInterrupt:
        print()
        return status
