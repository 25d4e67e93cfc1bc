"""Commands that a page shows with their real output: run while the page is built, in a copy of the clone."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tpu_systems_audit.course.site import ROOT


def shell(commands: Sequence[str], files: Mapping[str, str] | None = None, plain: bool = True) -> None:
    """Print each command after a prompt, what it prints, and its exit status where that is not 0.

    They run one after the other in a fresh copy of the learner's part of the clone, so that no reader's work copy is
    touched and none shows.

    Args:
        commands: each begins with ``python3``, which becomes the Python that runs.
        files: what to write into the copy first: a path in the clone, and its text.
        plain: whether they see the standard library alone, as a Python does with nothing installed.

    >>> shell(["python3 -c 'print(6 * 7)'"])
    $ python3 -c 'print(6 * 7)'
    42
    """
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder).resolve()
        shutil.copytree(ROOT / "projects", clone / "projects", ignore=shutil.ignore_patterns("work", "__pycache__"))
        (clone / "src").symlink_to(ROOT / "src")
        for name, text in (files or {}).items():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_text(text, encoding="utf-8")
        for command in commands:
            done = _run(command, clone, plain)
            status = f"(exit status {done.returncode})\n" if done.returncode else ""
            print(f"$ {command}\n{done.stdout}{status}", end="")


def _run(command: str, clone: Path, plain: bool) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command.replace("python3", f"'{sys.executable}'{' -S -E' if plain else ''}", 1),
        shell=True,
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
    )
