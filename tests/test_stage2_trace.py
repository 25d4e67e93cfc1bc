"""The trace of stage 2: right files pass on every draw, each wrong one is caught for what is wrong with it."""

import json
import marshal
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from stage2 import STAGE_2

from tpu_systems_audit.checker import Returned, run
from tpu_systems_audit.checker.values import decode
from tpu_systems_audit.checker.worker import encode

NAME = "capture_warmed_trace"
STAGE = replace(STAGE_2, checks=tuple(check for check in STAGE_2.checks if check.function == NAME))
(CHECK,) = STAGE.checks
PROJECT = Path(__file__).parents[1] / "projects/tpu-systems-audit"
SOLUTION = (PROJECT / "solution/model.py").read_bytes()
WRONG = tomllib.loads((Path(__file__).parent / "cases/wrong_stage2_trace.toml").read_text(encoding="utf-8"))["case"]
IN_PROCESSES = ("no-warm-up", "no-wait-at-the-end", "oldest-trace-returned", "sleeps-instead-of-steps")

# What the wrong ones are written with.
TOOLS = b"""
import shutil
import time
from pathlib import Path
import jax
import jax.numpy as jnp
import numpy as np
_right = capture_warmed_trace
def _files(folder): return set(Path(folder).rglob("*.xplane.pb"))
def _warm(step, argument): jax.block_until_ready(step(argument))
def _steps(step, argument, numbers, wait=range(99)):
    for count, number in enumerate(numbers):
        with jax.profiler.StepTraceAnnotation("step", step_num=number):
            result = step(argument)
            if count in wait: result.block_until_ready()
    return result
"""

# Other right ways: by hand, waiting once at the end, the newest file as text; and all results at once, with options.
BY_HAND = b"""
import glob
import os
import jax

def capture_warmed_trace(step, argument, trace_dir, steps=5):
    for _ in range(3):
        result = step(argument)
    result.block_until_ready()
    jax.profiler.start_trace(trace_dir)
    try:
        for number in range(10, 10 + steps):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                result = step(argument)
        result.block_until_ready()
    finally:
        jax.profiler.stop_trace()
    return max(glob.glob(trace_dir + "/**/*.xplane.pb", recursive=True), key=os.path.getmtime)
"""
BY_OPTIONS = b"""
import jax
from pathlib import Path

def capture_warmed_trace(step, argument, trace_dir, steps=5):
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = 1
    options.python_tracer_level = 0
    jax.block_until_ready(step(argument))
    with jax.profiler.trace(Path(trace_dir), profiler_options=options):
        results = []
        for number in range(steps):
            with jax.profiler.StepTraceAnnotation("step", step_num=number):
                results.append(step(argument))
        jax.block_until_ready(results)
    return sorted(Path(trace_dir).glob("plugins/profile/*/*.xplane.pb"))[-1]
"""
RIGHT = {"solution": SOLUTION, "by-hand": BY_HAND, "by-options": BY_OPTIONS}


@pytest.fixture
def status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, int], str]:
    """What the engine would say, without a process: the harness, the pipe's encoding and the judge are the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "model", ModuleType("model"))
    call = harness().prepare(NAME)

    def say(code: bytes, seed: int) -> str:
        names = vars(sys.modules["model"])
        exec(compile(code, "model.py", "exec"), names)
        for each in CHECK.calls(Random(f"{seed} {NAME}")):
            answer = encode(call(names[NAME], *marshal.loads(marshal.dumps(each.arguments))))
            if lacking := each.lacks(decode(answer)):
                return f"fail: {lacking}"
        return "pass"

    return say


def harness() -> Any:
    assert STAGE.harness is not None
    spec = spec_from_file_location("harness2", STAGE.harness)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slow_or_not(case: dict[str, Any]) -> Any:
    return pytest.param(case, id=case["id"], marks=[pytest.mark.slow] if case.get("slow") else [])


@pytest.mark.parametrize("code", RIGHT.values(), ids=RIGHT)
def test_a_right_file_passes(status: Callable[[bytes, int], str], code: bytes) -> None:
    assert status(code, 1) == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("code", RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize("seed", range(10, 14))
def test_a_right_file_passes_on_every_draw_in_a_process(code: bytes, seed: int) -> None:
    assert [(out.status, out.message) for out in run(STAGE, code, seed)] == [("pass", "")]


@pytest.mark.parametrize("case", [slow_or_not(case) for case in WRONG])
def test_a_wrong_file_is_caught_for_what_is_wrong(status: Callable[[bytes, int], str], case: dict[str, Any]) -> None:
    said = status(SOLUTION + TOOLS + case["code"].encode(), 1)
    assert said.startswith("fail: ")
    assert any(text in said for text in case["says"].split("|"))


def test_a_wrong_file_changes_no_other_function() -> None:
    for case in WRONG:
        names: dict[str, object] = {}
        exec(case["code"], names)
        assert names.keys() - {"__builtins__"} == {NAME}, case["id"]


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_PROCESSES)
def test_a_wrong_file_is_caught_in_a_process_too(name: str) -> None:
    case = next(case for case in WRONG if case["id"] == name)
    (outcome,) = run(STAGE, SOLUTION + TOOLS + case["code"].encode(), 4)
    assert outcome.status == "fail"
    assert [line.split()[0] for line in outcome.message.splitlines()] == ["called", "expected", "hint", "lesson"]
    assert any(text in outcome.message for text in case["says"].split("|"))


@pytest.mark.parametrize("path", ["nul\0.xplane.pb", "long" * 2000 + ".xplane.pb"])
def test_what_is_no_answer_is_a_failure_and_not_a_crash(path: str) -> None:
    told = json.dumps({"path": path, "kind": "str", "folder": "/", "older": "", "kept": True}).encode()
    for call in CHECK.calls(Random(1)):
        for back in (Returned("none", None, "None"), Returned("bytes", b"[]", ""), Returned("bytes", told, "")):
            assert call.lacks(back).startswith("the path of a *.xplane.pb")
