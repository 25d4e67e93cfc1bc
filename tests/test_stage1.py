"""Stage 1 of the project: right files pass on every draw, each wrong one is caught where it is wrong."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from stage1 import STAGE_1

from tpu_systems_audit.checker import run

CASES = Path(__file__).parent / "cases"
PROJECT = Path(__file__).parents[1] / "projects/tpu-systems-audit"
SOLUTION = (PROJECT / "solution/model.py").read_bytes()
WRONG = tomllib.loads((CASES / "wrong_stage1.toml").read_text(encoding="utf-8"))["case"]

# Another right way: floats throughout, a list for a pair, whole numbers where nothing else is needed.
ANOTHER = b"""
import math
BYTES = dict(zip(("fp32", "mixed-bf16", "mixed-bf16-fp32-grads", "pure-bf16"), ((12, 16), (12, 16), (12, 18), (6, 8))))
def ridge_point(peak_tflops, hbm_gb_per_s): return 1000 * peak_tflops / hbm_gb_per_s
def bound(intensity, ridge): return "hbm" if intensity < ridge else "compute"
def training_state_gib(parameters, policy): return [parameters / 2**30 * b for b in BYTES[policy]]
def kv_cache_gib(*sizes): return math.prod(sizes) / 2**29
def min_chips(required_gib, hbm_gib_per_chip, budget=0.8): return -int(-required_gib // (budget * hbm_gib_per_chip))
"""


@pytest.mark.parametrize("code", [SOLUTION, ANOTHER], ids=["solution", "another"])
@pytest.mark.parametrize("seed", range(6))
def test_a_right_file_passes_on_every_draw(code: bytes, seed: int) -> None:
    assert [(out.status, out.message) for out in run(STAGE_1, code, seed)] == [("pass", "")] * len(STAGE_1.checks)


def test_the_starter_is_not_started_and_names_the_lesson() -> None:
    found = list(run(STAGE_1, (PROJECT / "starter/model.py").read_bytes(), 1))
    assert {out.status for out in found} == {"not-started"}
    assert all("tpu-03" in out.message for out in found)


@pytest.mark.parametrize("case", WRONG, ids=[case["id"] for case in WRONG])
def test_a_wrong_file_is_caught_in_the_function_it_breaks_and_in_no_other(case: dict[str, Any]) -> None:
    code = SOLUTION + b"\n_t = training_state_gib\n" + case["code"].encode() + b"\n"
    for seed in (1, 2):
        found = {out.function: out.status for out in run(STAGE_1, code, seed)}
        wanted = {check.function: "pass" for check in STAGE_1.checks} | {case["breaks"]: case.get("status", "fail")}
        assert found == wanted


def test_every_lesson_section_that_is_named_exists() -> None:
    lesson = (PROJECT.parents[1] / "docs/lessons/tpu-03.md").read_text(encoding="utf-8")
    assert all(f"## {check.lesson.split(', ')[1].split(' (')[0]}\n" in lesson for check in STAGE_1.checks)
