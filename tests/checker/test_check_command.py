"""The learner's command, as it is typed: ``python3 projects/tpu-systems-audit/tests/check.py``."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "projects/tpu-systems-audit"
CHECK = "projects/tpu-systems-audit/tests/check.py"
SOLUTION = "projects/tpu-systems-audit/solution/model.py"
STARTER = "projects/tpu-systems-audit/starter/model.py"


def check(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run it with a bare Python: no site packages, none of this environment's variables."""
    script = str(ROOT / CHECK) if cwd != ROOT else CHECK
    return subprocess.run([sys.executable, "-S", script, *arguments], cwd=cwd, env={}, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what a learner's clone holds, to write in."""
    for part in ("projects/tpu-systems-audit", "src/tpu_systems_audit"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "work"))
    return tmp_path


def test_the_solution_passes_stage_1_and_the_starter_is_not_started() -> None:
    passed, starter = check("--stage", "1", "--impl", SOLUTION), check("--stage", "1", "--impl", STARTER)
    assert (passed.returncode, starter.returncode) == (0, 1)
    assert "stage 1: 5 of 5 passed" in passed.stdout and "stage 1: 0 of 5 passed" in starter.stdout
    assert passed.stderr == starter.stderr == ""
    assert "\x1b" not in passed.stdout + starter.stdout


def test_the_line_of_the_study_guide_works_as_written() -> None:
    line = f"python3 {CHECK} --stage all --impl {STARTER}"
    assert STARTER in (ROOT / "docs/phase-21.md").read_text(encoding="utf-8")
    result = check(*line.split()[2:])
    assert result.returncode == 1 and "stage 2: skipped: " in result.stdout and "not-started" in result.stdout


def test_json_is_one_document_with_each_stage_and_check() -> None:
    result = check("--stage", "all", "--impl", SOLUTION, "--json", "--seed", "7")
    document = json.loads(result.stdout)
    assert (document["schema"], document["seed"], document["exit"], result.returncode) == (1, 7, 0, 0)
    assert [stage["stage"] for stage in document["stages"]] == [1, 2]
    assert [stage["status"] for stage in document["stages"]] == ["pass", "skipped"]
    first = document["stages"][0]["checks"][0]
    assert first == {"function": "ridge_point", "status": "pass", "message": ""}


def test_json_of_a_file_not_started_says_so_and_exits_1() -> None:
    result = check("--stage", "1", "--impl", STARTER, "--json")
    document = json.loads(result.stdout)
    assert document["exit"] == result.returncode == 1
    assert {entry["status"] for entry in document["stages"][0]["checks"]} == {"not-started"}


def test_a_run_says_its_seed_and_takes_it_again() -> None:
    first = check("--stage", "1", "--impl", STARTER).stdout.splitlines()[0]
    seed = first.rpartition(" ")[2]
    assert check("--stage", "1", "--impl", STARTER, "--seed", seed).stdout.splitlines()[0] == first


def test_list_names_every_check_and_its_lesson() -> None:
    result = check("--list")
    assert result.returncode == 0
    assert [line.split()[2] for line in result.stdout.splitlines() if line.startswith("stage 1")] == [
        "ridge_point", "bound", "training_state_gib", "kv_cache_gib", "min_chips",
    ]  # fmt: skip


def test_start_makes_the_work_copy_once_and_never_overwrites(project: Path) -> None:
    command = [sys.executable, CHECK, "--start"]
    work = project / "projects/tpu-systems-audit/work/model.py"
    assert subprocess.run(command, cwd=project, capture_output=True).returncode == 0
    assert work.read_bytes() == (PROJECT / "starter/model.py").read_bytes()
    work.write_text("mine")
    again = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert (again.returncode, work.read_text()) == (0, "mine") and "kept" in again.stdout


def test_checking_leaves_the_clone_as_it_was(project: Path) -> None:
    before = sorted(project.rglob("*"))
    subprocess.run([sys.executable, CHECK, "--stage", "1", "--impl", STARTER], cwd=project, capture_output=True)
    assert sorted(project.rglob("*")) == before


def test_it_runs_from_any_folder() -> None:
    assert check("--stage", "1", "--impl", str(ROOT / SOLUTION), cwd=Path("/")).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--stage", "2", "--impl", SOLUTION],
        ["--stage", "9"],
        ["--stage"],
        ["--impl", "no/such/model.py"],
        ["--impl", "src"],
        ["--impl", SOLUTION, "--seed", "x"],
        ["--impl", SOLUTION, "--seed", "-1"],
        ["--impl", SOLUTION, "--seed", "1.5"],
        ["--list", "--watch"],
        ["--unknown"],
        ["extra"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_checked_is_said_in_one_line(arguments: list[str]) -> None:
    result = check(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("check.py: ") and result.stderr.count("\n") == 1


def test_watch_checks_again_when_the_file_changes_and_ends_on_interrupt(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    shutil.copy(ROOT / STARTER, model)
    command = [sys.executable, "-u", CHECK, "--stage", "1", "--watch", "--impl", str(model)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        read = iter(process.stdout.readline, "")
        assert any("0 of 5 passed" in line for line in read)
        assert any("watching" in line for line in read)
        model.write_bytes((ROOT / SOLUTION).read_bytes())
        assert any("5 of 5 passed" in line for line in read)
        assert any("watching" in line for line in read)
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_a_terminal_that_wants_them(environment: dict[str, str], coloured: bool) -> None:
    leader, follower = os.openpty()
    command = [sys.executable, CHECK, "--stage", "1", "--impl", STARTER]
    with subprocess.Popen(command, cwd=ROOT, stdout=follower, env=environment):
        os.close(follower)
        told = b""
        while chunk := _read(leader):
            told += chunk
    os.close(leader)
    assert (b"\x1b[33m" in told) == coloured


def _read(end: int) -> bytes:
    try:
        return os.read(end, 4096)
    except OSError:  # the other end is closed
        return b""
