"""How long the sizing commands take beside a Python that does nothing, interleaved in one run.

``python benchmarks/startup.py [--rounds N] [--output FILE]`` prints a table and writes it as JSON.
The bound is the one the project promises: twice ``python -c pass``, plus 60 ms.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from machine import arguments, save

COMMANDS = (
    "--version",
    "generations",
    "roofline --on v5e --intensity 170",
    "memory train 7e9",
    "memory serve llama-3-8b --context 8192 --batch 32",
    "plan train 7e9",
    "plan train llama-3-8b",
    "plan serve llama-3-8b --context 8192 --batch 32 --on v5e",
)
ALLOWANCE_MS = 60


def main() -> None:
    """Measure and report."""
    args = arguments(__file__, __doc__, rounds=25)
    nothing = [sys.executable, "-c", "pass"]
    runs = {"python -c pass": nothing} | {
        f"tpu-audit {command}": [sys.executable, "-m", "tpu_systems_audit.cli", *command.split()]
        for command in COMMANDS
    }
    times_ms = measure(runs, args.rounds)
    medians = {name: statistics.median(times) for name, times in times_ms.items()}
    base_ms = medians.pop("python -c pass")
    bound_ms = 2 * base_ms + ALLOWANCE_MS
    rows = [
        {"command": name, "median_ms": median, "ratio": median / base_ms, "within": median <= bound_ms}
        for name, median in medians.items()
    ]
    for row in rows:
        print(f"{row['command']:64} {row['median_ms']:7.1f} ms  {row['ratio']:5.2f} ×  within {row['within']}")
    print(f"python -c pass takes {base_ms:.1f} ms; the bound is {bound_ms:.1f} ms")
    save(args.output, rounds=args.rounds, pass_ms=base_ms, allowance_ms=ALLOWANCE_MS, bound_ms=bound_ms, rows=rows)


def measure(runs: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Run every command once in each round, so that a busy moment of the machine meets all of them."""
    times_ms: dict[str, list[float]] = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as compiled:
        # Compiled once, as an installed package is.
        env = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(rounds + 1):
            for name, command in runs.items():
                start = time.perf_counter()
                subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
                if turn:  # the first round compiles
                    times_ms[name].append(1000 * (time.perf_counter() - start))
            print(f"\rround {turn} of {rounds}", end="\n" if turn == rounds else "", file=sys.stderr, flush=True)
    return times_ms


if __name__ == "__main__":
    main()
