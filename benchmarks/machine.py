"""How a benchmark is asked for, where it ran, and where its result goes."""

import argparse
import datetime
import json
import os
import platform
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


def arguments(script: str, about: str | None, rounds: int) -> argparse.Namespace:
    """Read ``--rounds`` and ``--output`` of the benchmark in the file *script*."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"how often it is measured (default {rounds})")
    parser.add_argument("--output", type=Path, default=RESULTS / f"{Path(script).stem}.json")
    return parser.parse_args()


def save(output: Path, **figures: object) -> None:
    """Write a result with the date and what ran it, replacing the last one at once."""
    ran_on = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".part")
    part.write_text(json.dumps({**ran_on, **figures}, indent=1) + "\n", encoding="utf-8")
    part.replace(output)
