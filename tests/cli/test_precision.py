"""The precision commands: what a person types, what comes back, and the exit status."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tpu_systems_audit.cli import main

Run = Callable[..., tuple[int, str, str]]

DOTS = """
import ml_dtypes, numpy as np
def wide(a, b): return a.astype(np.float32) @ b.astype(np.float32)
def narrow(a, b): return wide(a, b).astype(ml_dtypes.bfloat16).astype(np.float32)
def whole(a, b): return a.astype(np.int32) @ b.astype(np.int32)
def wraps(a, b): return (a.astype(np.int32) @ b.astype(np.int32)).astype(np.int8)
def raises(a, b): raise RuntimeError("no such kernel")
def shapeless(a, b): return 1.0
def prints(a, b):
    print("to stdout")
    return wide(a, b)
def prints_and_raises(a, b):
    print("one", "two", sep=chr(10))
    raise RuntimeError("no such kernel")
def exits(a, b):
    import os
    print("going", flush=True)
    os._exit(0)
def crashes(a, b):
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)
def hangs(a, b):
    while True: pass
started = []
def leaves_somebody(a, b):
    import os, subprocess
    if not started:
        started.append(subprocess.Popen(["sleep", f"{os.getppid()}.321"]))
    return wide(a, b)
number = 3
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(*words: str) -> tuple[int, str, str]:
        status = main(words)
        return status, *capsys.readouterr()

    return run_


@pytest.fixture
def dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of dot products in the current directory, under a name of this test's own."""
    name = f"dots_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(DOTS, encoding="utf-8")
    (tmp_path / f"broken_{name}.py").write_text("raise OSError('no such device')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return name


def refused(run: Run, *words: str) -> str:
    status, out, err = run(*words)
    assert (status, out, err.count("\n")) == (2, "", 1), (status, out, err)
    return err


def test_the_error_summary_has_its_keys(run: Run) -> None:
    status, out, err = run("precision", "--shape", "4,32,4", "--json")
    answer = json.loads(out)
    assert (status, err, answer["shape"], answer["rehearsal"]) == (0, "", [4, 32, 4], True)
    assert set(answer["errors"]) == {"bf16", "bf16_accumulated", "int8_tensor", "int8_channel"}
    assert all({"max_abs", "rel_fro", "bound", "within_bound"} <= set(each) for each in answer["errors"].values())
    assert {"width_bits": 24, "certified": True}.items() <= answer["accumulator"].items()


def test_the_error_summary_says_that_a_cpu_rehearses(run: Run) -> None:
    status, out, _ = run("precision", "--shape", "2,16,2")
    assert status == 0
    assert "a rehearsal: this ran on no TPU" in out
    assert "None" not in out


@pytest.mark.parametrize(
    ("dot", "dtype", "verdict", "status"),
    [
        ("wide", "bf16", "certified", 0),
        ("narrow", "bf16", "f32-accumulate, output rounded", 1),
        ("whole", "int8", "exact int32", 0),
        ("wraps", "int8", "rejected", 1),
        ("shapeless", "bf16", "rejected", 1),
    ],
)
def test_a_dot_of_the_current_directory_is_probed(
    run: Run, dots: str, dot: str, dtype: str, verdict: str, status: int
) -> None:
    words = ("precision", "probe", "--dot", f"{dots}:{dot}", "--dtype", dtype, "--shape", "4,40,2")
    code, out, err = run(*words, "--json")
    answer = json.loads(out)
    assert (code, err, answer["verdict"], answer["shape"]) == (status, "", verdict, [4, 40, 2])
    assert answer["why"] or status == 0
    assert {"width_bits", "order"} <= set(answer)
    assert verdict in run(*words)[1]


@pytest.mark.parametrize(
    "words",
    [
        ("precision", "--shape", "4,32"),
        ("precision", "--shape", "4,0,4"),
        ("precision", "--shape", "4,x,4"),
        ("precision", "--shape", "99999999,2,2"),
        ("precision", "--seed", "-1"),
        ("precision", "--seed", "x"),
        ("precision", "probe"),
        ("precision", "probe", "--dot", "nothing"),
        ("precision", "probe", "--dot", "no_such_module:dot"),
        ("precision", "probe", "--dot", "json:no_such_function"),
        ("precision", "probe", "--dot", "json:dumps", "--dtype", "fp4"),
    ],
    ids=" ".join,
)
def test_a_bad_input_is_one_line_and_exit_2(run: Run, words: tuple[str, ...]) -> None:
    refused(run, *words)


def test_a_module_that_does_not_import_is_named(run: Run, dots: str) -> None:
    assert "no such device" in refused(run, "precision", "probe", "--dot", f"broken_{dots}:dot")
    assert "number" in refused(run, "precision", "probe", "--dot", f"{dots}:number")


@pytest.mark.parametrize(
    ("dot", "said"),
    [
        ("prints_and_raises", "no such kernel"),
        ("exits", "ended its process with status 0 before it answered; a function that returns"),
        ("exits", "(it printed 'going')"),
        ("crashes", "ended its process by SIGSEGV"),
        ("hangs", "took longer than 5 s"),
    ],
)
def test_a_dot_that_ends_or_hangs_its_process_is_refused_in_one_line(run: Run, dots: str, dot: str, said: str) -> None:
    words = ("precision", "probe", "--dot", f"{dots}:{dot}", "--shape", "4,40,2")
    words += ("--limit", "5") if dot == "hangs" else ()
    assert said in refused(run, *words)


def test_what_a_dot_prints_is_not_in_the_answer(run: Run, dots: str) -> None:
    status, out, err = run("precision", "probe", "--dot", f"{dots}:prints", "--shape", "2,8,2", "--json")
    assert (status, err, json.loads(out)["verdict"]) == (0, "", "certified")


def test_what_a_dot_starts_is_ended_with_it(run: Run, dots: str) -> None:
    run("precision", "probe", "--dot", f"{dots}:leaves_somebody", "--shape", "2,8,2")
    mark = f"sleep\0{os.getpid()}.321".encode()
    until = time.monotonic() + 20  # an ended process takes a moment to be gone
    while left := [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(path)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def test_the_summary_is_drawn_into_a_file_that_was_not_there(run: Run, tmp_path: Path) -> None:
    svg = tmp_path / "drift.svg"
    words = ("precision", "--shape", "2,16,2", "--svg", str(svg))
    assert run(*words)[0] == 0
    drawn = svg.read_bytes()
    assert drawn.startswith(b"<svg xmlns=") and b"prefers-color-scheme" in drawn
    assert "there already and was kept" in refused(run, *words)
    assert svg.read_bytes() == drawn


def test_a_dot_that_raises_is_refused_with_what_it_raised(run: Run, dots: str) -> None:
    assert "no such kernel" in refused(run, "precision", "probe", "--dot", f"{dots}:raises", "--shape", "4,40,2")


@pytest.mark.parametrize(
    ("package", "words"),
    [("jax", ("precision",)), ("ml_dtypes", ("precision",)), ("numpy", ("precision", "probe", "--dot", "json:dumps"))],
)  # fmt: skip
def test_a_missing_package_is_named_with_what_brings_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, package: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = refused(run, *words)
    assert package in message
    assert "pip install 'tpu-systems-audit[jax]'" in message
