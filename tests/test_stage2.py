"""Stage 2 of the project: right files pass on every draw, each wrong one is caught where it is wrong."""

import marshal
import sys
import tomllib
import warnings
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from stage2 import STAGE_2 as WHOLE
from stage2 import missing

from tpu_systems_audit.checker import Check, run
from tpu_systems_audit.checker.values import decode
from tpu_systems_audit.checker.worker import encode

# The trace has tests of its own, in test_stage2_trace.py.
STAGE_2 = replace(WHOLE, checks=tuple(check for check in WHOLE.checks if check.function != "capture_warmed_trace"))
CASES = Path(__file__).parent / "cases"
PROJECT = Path(__file__).parents[1] / "projects/tpu-systems-audit"
SOLUTION = (PROJECT / "solution/model.py").read_bytes()
WRONG = tomllib.loads((CASES / "wrong_stage2.toml").read_text(encoding="utf-8"))["case"]
IN_PROCESSES = ("quantize-floors", "int8-wraps-in-int8", "bf16-result-type-missing", "summary-rel-fro-squared")
A_REQUEST = 65536  # bytes that a pipe holds

# What the wrong ones are written with.
TOOLS = b"""
import jax
import jax.numpy as jnp
import numpy as np
_q = quantize_int8
def _dot(x, w, dtype): return jax.lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=dtype)
def _e(x, w, exact=None, largest=lambda off: np.abs(off).max(),
       fro=lambda off, exact: np.linalg.norm(off) / np.linalg.norm(exact)):
    exact = x.astype(np.float64) @ w.astype(np.float64) if exact is None else exact
    off = {"bf16": np.asarray(bf16_matmul(x, w)) - exact, "int8": np.asarray(int8_matmul(x, w)) - exact}
    return {name: {"max_abs": float(largest(o)), "rel_fro": float(fro(o, exact))} for name, o in off.items()}
"""

# Another right way: JAX throughout, compiled, so that a scale may be an ulp off; sums of its own for the errors.
IN_JAX = b"""
import jax
import jax.numpy as jnp
import numpy as np
from functools import partial

@partial(jax.jit, static_argnums=1)
def compiled(x, axis):
    scale = jnp.max(jnp.abs(x), axis=axis, keepdims=True) / 127
    scale = jnp.where(scale == 0, 1, scale)
    return jnp.clip(jnp.round(x * (1 / scale)), -127, 127).astype(jnp.int8), scale

def quantize_int8(x, axis, checked=True):
    if checked and not bool(jnp.isfinite(x).all()): raise ValueError("not finite")
    return compiled(jnp.asarray(x), axis)

@jax.jit
def int8_matmul(x, w):
    (x, a), (w, b) = quantize_int8(x, 1, checked=False), quantize_int8(w, 0, checked=False)
    return jnp.einsum("ik,kj->ij", x, w, preferred_element_type=jnp.int32) * a * b

@jax.jit
def bf16_matmul(x, w):
    return jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32)

def error_summary(x, w):
    exact = np.einsum("ik,kj->ij", np.float64(x), np.float64(w))
    near = [np.float32(np.asarray(x).astype(jnp.bfloat16)), np.float32(np.asarray(w).astype(jnp.bfloat16))]
    def both(got):
        off = np.float64(got) - exact
        return {"rel_fro": np.sqrt((off**2).sum() / (exact**2).sum()), "max_abs": np.max(np.abs(off))}
    return {"int8": both(int8_matmul(x, w)), "bf16": both(near[0][:, ::-1] @ near[1][::-1])}
"""

# And one in NumPy alone, in wider numbers where that changes nothing.
IN_NUMPY = b"""
import ml_dtypes
import numpy as np

def quantize_int8(x, axis):
    largest = np.max(np.abs(x), axis=axis, keepdims=True)
    if not np.all(largest < np.inf): raise ValueError("not finite")
    scale = np.float32(np.where(largest > 0, largest.astype(np.float64) / 127, 1))
    return np.round(x.astype(np.float64) / scale).astype(np.int8), scale

def int8_matmul(x, w):
    x, a = quantize_int8(x, axis=1)
    w, b = quantize_int8(w, axis=0)
    return (a.astype(np.float64) * (x.astype(np.int32) @ w.astype(np.int32)) * b).astype(np.float32)

def bf16_matmul(x, w):
    x, w = (np.float32(each.astype(ml_dtypes.bfloat16)) for each in (x, w))
    return sum(np.outer(x[:, k], w[k]) for k in range(len(w)))

def error_summary(x, w):
    exact = x.astype(float) @ w.astype(float)
    result = {}
    for name, got in zip(("bf16", "int8"), (bf16_matmul(x, w), int8_matmul(x, w))):
        off = got - exact
        result[name] = dict(max_abs=abs(off).max(), rel_fro=(off**2).sum()**.5 / (exact**2).sum()**.5)
    return result
"""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An empty module, where the harness looks for the learner's."""
    module = ModuleType("model")
    monkeypatch.setitem(sys.modules, "model", module)
    return module


def status(model: ModuleType, code: bytes, check: Check, seed: int) -> str:
    """What the engine would say, without a process: the harness, the pipe's encoding and the judge are the same."""
    vars(model).clear()
    exec(compile(code, "model.py", "exec"), vars(model))
    call = harness().prepare(check.function)
    function = vars(model)[check.function]
    for each in check.calls(Random(f"{seed} {check.function}")):
        try:
            answer = encode(call(function, *marshal.loads(marshal.dumps(each.arguments))))
        except Exception as error:
            return f"error: {error!r}"
        lacking = each.lacks(decode(answer))
        if lacking:
            return f"fail: {lacking}"
    return "pass"


def statuses(model: ModuleType, code: bytes, seed: int) -> dict[str, str]:
    with warnings.catch_warnings(action="ignore"):
        return {check.function: status(model, code, check, seed) for check in STAGE_2.checks}


def harness() -> Any:
    assert STAGE_2.harness is not None
    spec = spec_from_file_location("harness2", STAGE_2.harness)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("code", [SOLUTION, IN_JAX, IN_NUMPY], ids=["solution", "in-jax", "in-numpy"])
def test_a_right_file_passes(code: bytes) -> None:
    assert [(out.status, out.message) for out in run(STAGE_2, code, 1)] == [("pass", "")] * len(STAGE_2.checks)


@pytest.mark.parametrize("code", [SOLUTION, IN_JAX, IN_NUMPY], ids=["solution", "in-jax", "in-numpy"])
@pytest.mark.parametrize("seed", range(10, 16))
def test_a_right_file_passes_on_every_draw(model: ModuleType, code: bytes, seed: int) -> None:
    assert set(statuses(model, code, seed).values()) == {"pass"}


def test_the_starter_is_not_started_and_names_the_lesson() -> None:
    found = list(run(WHOLE, (PROJECT / "starter/model.py").read_bytes(), 1))
    assert {out.status for out in found} == {"not-started"}
    assert all(out.message == f"read lesson {check.lesson.split(' (')[0]}" for out, check in
               zip(found, WHOLE.checks, strict=True))  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=[case["id"] for case in WRONG])
def test_a_wrong_file_is_caught_in_the_function_it_breaks_and_in_no_other(
    model: ModuleType, case: dict[str, str]
) -> None:
    for seed in (1, 2, 3):
        found = statuses(model, SOLUTION + TOOLS + case["code"].encode(), seed)
        assert found.pop(case["breaks"]).startswith("fail: ")
        assert set(found.values()) == {"pass"}, found


@pytest.mark.parametrize("name", IN_PROCESSES)
def test_a_wrong_file_is_caught_in_a_process_too(name: str) -> None:
    case = next(case for case in WRONG if case["id"] == name)
    only = replace(STAGE_2, checks=tuple(check for check in STAGE_2.checks if check.function == case["breaks"]))
    (outcome,) = run(only, SOLUTION + TOOLS + case["code"].encode(), 4)
    assert outcome.status == "fail"
    assert [line.split()[0] for line in outcome.message.splitlines() if line.split()[0] != "came"] == [
        "called", "expected", "hint", "lesson",
    ]  # fmt: skip


@pytest.mark.parametrize("code", ["def {}(*a): return None", "def {}(*a): return 'x'", "def {}(*a): return (1, [2])"])
@pytest.mark.parametrize("check", STAGE_2.checks, ids=lambda check: check.function)
def test_what_is_no_array_is_a_failure_and_not_a_crash(model: ModuleType, code: str, check: Check) -> None:
    assert status(model, code.format(check.function).encode(), check, 1).startswith("fail: ")


def test_every_request_fits_a_pipe_that_nobody_reads_yet() -> None:
    for check in STAGE_2.checks:
        for seed in range(5):
            for call in check.calls(Random(seed)):
                assert 2 * len(marshal.dumps(call.arguments)) < A_REQUEST


def test_what_is_missing_is_named_with_the_command_that_has_it() -> None:
    assert missing() == ""
    assert missing(("json", "no_such_package")).startswith("it needs no_such_package; `python3 noxfile.py -s check")


def test_every_lesson_section_that_is_named_exists() -> None:
    page = (PROJECT.parents[1] / "docs/lessons/tpu-06.md").read_text(encoding="utf-8")
    assert all(f"## {check.lesson.split(', ')[1].split(' (')[0]}\n" in page for check in WHOLE.checks)
