"""The trace commands: what a person types, what comes back, and the exit status."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.traces.test_audit import LIBTPU, put
from tests.traces.trace_writer import build
from tpu_systems_audit.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(*words: str) -> tuple[int, str, str]:
        status = main(words)
        return status, *capsys.readouterr()

    return run_


def refused(run: Run, *words: str) -> str:
    status, out, err = run(*words)
    assert (status, out, err.count("\n")) == (2, "", 1), (status, out, err)
    return err


@pytest.mark.parametrize(
    "words",
    [
        ("trace",),
        ("trace", "audit"),
        ("trace", "audit", "no/such/trace"),
        ("trace", "audit", "no/such/trace", "--hosts", "0"),
        ("trace", "audit", "no/such/trace", "--hosts", "many"),
        ("trace", "show", "no/such/trace"),
        ("trace", "capture", "traces", "--steps", "0"),
    ],
    ids=" ".join,
)
def test_a_bad_input_is_one_line_and_exit_2(run: Run, words: tuple[str, ...]) -> None:
    refused(run, *words)


def test_a_capture_without_jax_names_what_brings_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    assert "pip install 'tpu-systems-audit[jax]'" in refused(run, "trace", "capture", "traces")


@pytest.fixture
def traces(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name in ("seed", "clean-raw", "no-device-plane"):
        found[name] = tmp_path / f"{name}.xplane.pb"
        found[name].write_bytes(build(LIBTPU[name]))
    return found


@pytest.mark.parametrize(
    ("name", "verdict", "status"),
    [("seed", "not-clean", 1), ("clean-raw", "clean", 0), ("no-device-plane", "rehearsal", 0)],
)
def test_an_audit_exits_1_only_when_the_trace_is_not_clean(
    run: Run, traces: dict[str, Path], name: str, verdict: str, status: int
) -> None:
    code, out, err = run("trace", "audit", str(traces[name]), "--json")
    answer = json.loads(out)
    assert (code, err, answer["verdict"]) == (status, "", verdict)
    assert {"platform", "devices", "steps", "median_step_us", "findings", "file"} <= set(answer)
    assert set(answer["file"]) >= {"sha256", "bytes"}
    assert all({"code", "severity", "message", "evidence", "fix"} <= set(each) for each in answer["findings"])
    assert all(set(each) == {"start_us", "duration_us"} for each in answer["steps"])
    assert run("trace", "audit", str(traces[name]))[1].startswith(verdict)


def test_the_text_of_an_audit_names_the_run_and_how_many_were_passed_over(run: Run, tmp_path: Path) -> None:
    put(tmp_path, "2026_01_01_00_00_00", "a")
    put(tmp_path, "2026_01_02_00_00_00", "a")
    assert "run 2026_01_02_00_00_00, the newest of 2" in run("trace", "audit", str(tmp_path))[1]


def test_a_timeline_is_drawn_in_text_and_in_a_file_that_was_not_there(
    run: Run, traces: dict[str, Path], tmp_path: Path
) -> None:
    svg = tmp_path / "seed.svg"
    status, out, _ = run("trace", "show", str(traces["seed"]), "--svg", str(svg))
    assert status == 0
    assert "host, compile" in out
    assert "C compile" in out
    assert "not-clean: " in out and "error compile: a program was compiled" in out
    drawn = svg.read_text(encoding="utf-8")
    assert drawn.startswith("<svg xmlns=")
    assert "prefers-color-scheme" in drawn
    assert "error compile: a program was compiled" in drawn
    assert "there already" in refused(run, "trace", "show", str(traces["seed"]), "--svg", str(svg))
    assert svg.read_text(encoding="utf-8") == drawn


def test_a_captured_trace_is_a_rehearsal_here_and_has_its_steps(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("trace", "capture", str(tmp_path), "--steps", "4", "--json")
    answer = json.loads(out)
    errors = [each for each in answer["findings"] if each["severity"] == "error"]
    assert (code, answer["verdict"], len(answer["steps"]), errors) == (0, "rehearsal", 4, [])


def test_a_step_of_the_readers_own_is_captured(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = f"steps_{abs(hash(tmp_path))}"
    source = "import jax\ndef make(): return jax.jit(lambda x: (x @ x).sum()), jax.numpy.ones((256, 256))\n"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    status, out, _ = run("trace", "capture", "traces", "--step", f"{name}:make")
    assert (status, out.split(":")[0]) == (0, "rehearsal")


def test_an_unwarmed_trace_is_not_clean(tmp_path: Path) -> None:
    import jax

    from tpu_systems_audit.traces import audit

    with jax.profiler.trace(str(tmp_path)):
        for number in range(5):
            with jax.profiler.StepTraceAnnotation("step", step_num=number):
                jax.block_until_ready(jax.jit(lambda x: x @ x + 17)(jax.numpy.ones((131, 131))))
    found = audit(tmp_path)
    assert found.verdict == "not-clean"
    assert "compile" in {each.code for each in found.findings if each.severity == "error"}
