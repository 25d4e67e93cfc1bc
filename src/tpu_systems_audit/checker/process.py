"""One learner's process: start it, ask it, hear its answers within a limit, and end it whatever it did.

Linux and macOS. It guards against accidents and tricks, not against malice: a process of the learner's that leaves
its session can outlive the check.
"""

import contextlib
import marshal
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tpu_systems_audit.checker.values import clean, cut

WORKER = Path(__file__).with_name("worker.py")
MOST_ANSWER_BYTES = 512 * 1024  # an answer of bytes is written in hexadecimal twice
MOST_OUTPUT_BYTES = 4096
KEPT = ("JAX_PLATFORMS", "TF_CPP_MIN_LOG_LEVEL")  # of the environment; the rest is the parent's own business
START_LIMIT_S = 60.0  # for Python itself to start, however busy the machine is

Answer = tuple[str, ...]


class Session:
    """A process that has loaded, or is loading, one learner's file.

    Args:
        process: started by `session`.
        pipes: the ends that the parent holds: requests to write, answers and output to read.
        limit_s: how long the file may load and all calls together may run, in seconds.
    """

    def __init__(self, process: subprocess.Popen[bytes], pipes: tuple[int, int, int], limit_s: float) -> None:
        self._process, self._limit_s = process, limit_s
        self._requests, self._answers, self._output = pipes
        self._pending, self._printed, self._printed_bytes = b"", b"", 0
        self._deadline = time.monotonic() + START_LIMIT_S
        self.next_answer()  # "started"; a process that did not start says so again when it is asked
        self._deadline = time.monotonic() + limit_s

    def ask(self, arguments: tuple[object, ...]) -> Answer:
        """Call the function with *arguments* and wait for its answer."""
        with contextlib.suppress(OSError):  # a process that is gone is noticed when it does not answer
            data = marshal.dumps(arguments)  # type: ignore[arg-type, unused-ignore]  # plain values, stages see to it
            os.write(self._requests, data.hex().encode() + b"\n")
        return self.next_answer()

    def next_answer(self) -> Answer:
        """Wait for the next answer, or for the end of the process or of its time; drain what it prints."""
        ended = False
        while b"\n" not in self._pending:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0:
                return "timeout", f"{self._limit_s:g}"
            if ended or len(self._pending) > MOST_ANSWER_BYTES:
                return ("ended", how) if (how := self._how_it_ended()) else ("nonsense",)
            ended = self._how_it_ended() != ""  # read once more after that: the answer may still be in the pipe
            self._receive(min(left_s, 0.02))
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            word, *texts = line.decode("ascii").split("\t")
            return word, *(bytes.fromhex(text).decode("utf-8", "replace") for text in texts)
        except ValueError:
            return ("nonsense",)

    def printed(self) -> str:
        """What the process printed: its start, with control characters escaped."""
        shown = cut(clean(self._printed.decode("utf-8", "replace").strip()), 300)
        over = self._printed_bytes > MOST_OUTPUT_BYTES
        return f"{shown} (the start of {self._printed_bytes} bytes)" if over else shown

    def _receive(self, wait_s: float) -> None:
        ready, _, _ = select.select([self._answers, self._output], [], [], wait_s)
        for source in ready:
            data = os.read(source, 65536)
            if source == self._answers:
                self._pending += data
            else:
                self._printed_bytes += len(data)
                self._printed += data[: MOST_OUTPUT_BYTES - len(self._printed)]

    def _how_it_ended(self) -> str:
        code = self._process.poll()
        if code is None:
            return ""
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


@contextlib.contextmanager
def session(
    source: bytes, functions: Sequence[str], limit_s: float, memory_bytes: int, harness: Path | None = None
) -> Iterator[Session]:
    """Start a process on a copy of a learner's file, in an empty folder; afterwards end it with all of its session.

    Args:
        source: the learner's file.
        functions: the function to call, then the others that the file should have.
        limit_s: how long the file may load and all calls together may run, in seconds.
        memory_bytes: how far its address space may grow.
        harness: a file that calls the function in the worker; None where the function takes and gives plain values.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="check-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        model, work = folder / "model.py", folder / "work"
        model.write_bytes(source)
        work.mkdir()
        process, pipes = _start([str(memory_bytes), str(model), str(harness or ""), *functions], work)
        for end in pipes:
            stack.callback(os.close, end)
        stack.callback(process.wait)
        stack.callback(_end, process.pid)
        yield Session(process, pipes, limit_s)


def _start(arguments: list[str], work: Path) -> tuple[subprocess.Popen[bytes], tuple[int, int, int]]:
    """Start the worker in the folder *work*; the parent keeps one end of each pipe: requests, answers, output."""
    (requested, requests), (answers, answered), (output, printed) = os.pipe(), os.pipe(), os.pipe()
    os.set_blocking(requests, False)  # a process that does not read must not hold its checker
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-B",
                "-W",
                "ignore:coroutine",
                str(WORKER),
                str(requested),
                str(answered),
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=(requested, answered),
            cwd=work,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(work), "TMPDIR": str(work), "LANG": "C.UTF-8"}
            | {name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,
        )
    finally:
        for end in (requested, answered, printed):
            os.close(end)
    return process, (requests, answers, output)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
