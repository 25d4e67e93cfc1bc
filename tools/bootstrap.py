"""Bring a private nox and uv to a machine that has nothing but Python, and run nox there."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "nox.txt"
HOME = ROOT / ".nox" / "bootstrap"


def run_nox(arguments: list[str]) -> NoReturn:
    """Run nox with *arguments* from the private environment, made on first use, and exit with its status.

    Args:
        arguments: what would follow ``nox`` on a command line.
    """
    try:
        python = ready()
        sys.exit(subprocess.call([python, "-m", "nox", "-f", ROOT / "noxfile.py", *arguments]))
    except KeyboardInterrupt:
        sys.exit(130)


def ready() -> Path:
    """Make the private environment where it is missing or older than its lock, and return its Python."""
    python = HOME / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = HOME / "installed"
    wanted = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    print("Setting up nox and uv in .nox/bootstrap, once …", file=sys.stderr, flush=True)
    shutil.rmtree(HOME, ignore_errors=True)
    step(
        [sys.executable, "-m", "venv", HOME],
        "Python's venv module does not work here; install it first, such as with: apt-get install python3-venv",
    )
    step(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", LOCK],
        "nox and uv could not be installed with pip; is a package index reachable?",
    )
    stamp.write_text(wanted)
    return python


def step(command: list[str | Path], advice: str) -> None:
    """Run one step of the set-up; where it fails, show what it said and stop with one line of advice."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(done.stdout.rstrip(), file=sys.stderr)
        sys.exit(f"noxfile.py: {advice}")
