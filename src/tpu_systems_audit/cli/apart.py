"""A user's function is probed in a process of its own, so that it may print, exit, crash or hang."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tpu_systems_audit.cli.imports import named_function
from tpu_systems_audit.units import InputError, shown


def certified_apart(dot: str, dtype: str, shape: tuple[int, int, int], seed: int, limit_s: int) -> dict[str, Any]:
    """Certify a dot product in a process of its own, and give the fields of its certificate.

    Args:
        dot: ``module:function``; the current directory is on the path.
        dtype: ``bf16`` or ``int8``, what the operands are.
        shape: M, K, N.
        seed: draws the probes.
        limit_s: seconds that import and all calls may take together.

    Raises:
        InputError: when there is no such function, when it raises, or when its process ends or takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer, printed = Path(folder, "answer.json"), Path(folder, "printed")
        request = json.dumps([str(answer), dot, dtype, shape, seed])
        with printed.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tpu_systems_audit.cli.apart", request],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
            )
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(process)
        found = _told(answer)
        if found is None:
            raise InputError(f"--dot: {shown(dot)} {_how_it_ended(status, limit_s)}{_last_words(printed)}")
    if "refused" in found:
        raise InputError(found["refused"])
    return found


def main(request: str) -> None:
    """Answer one request in this process, into the file that it names.

    Args:
        request: JSON of the answer's file, the function's name, the dtype, the shape and the seed.
    """
    path, name, dtype, shape, seed = json.loads(request)
    from tpu_systems_audit.precision import certify, certify_int8

    try:
        dot = named_function(name, "--dot")
        found = asdict((certify if dtype == "bf16" else certify_int8)(dot, tuple(shape), seed))
    except InputError as refusal:
        found = {"refused": str(refusal)}
    Path(path).write_text(json.dumps(found), encoding="utf-8")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _told(answer: Path) -> dict[str, Any] | None:
    """What the process answered, None where it ended before it could."""
    try:
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _how_it_ended(status: int | None, limit_s: int) -> str:
    if status is None:
        return f"took longer than {limit_s} s; a product that returns, or a larger --limit, is right"
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"ended its process {how} before it answered; a function that returns the product is right"


def _last_words(printed: Path) -> str:
    """The end of what it printed, on one line."""
    with printed.open("rb") as file:
        file.seek(max(0, printed.stat().st_size - 1000))
        lines = file.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" (it printed {shown(last, 120)})" if last else ""


if __name__ == "__main__":
    main(sys.argv[1])
