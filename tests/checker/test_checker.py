"""The checker survives whatever a learner's file does, is not fooled by it, and leaves nothing behind."""

import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage1 import STAGE_1

from tpu_systems_audit.checker import Outcome, run
from tpu_systems_audit.checker.values import MOST_SHOWN, clean, decode
from tpu_systems_audit.checker.worker import encode

CASES = Path(__file__).parents[1] / "cases"
SOLUTION = Path(__file__).parents[2] / "projects/tpu-systems-audit/solution/model.py"
QUICK = replace(STAGE_1, limit_s=3.0, memory_bytes=2**28)
SPOIL_THEMSELVES = ("patches-math", "patches-builtins")  # the solution's other functions use what these replace
HOSTILE = [case for name in ("hostile", "hostile_more")
           for case in tomllib.loads((CASES / f"{name}.toml").read_text(encoding="utf-8"))["case"]]  # fmt: skip


def source(case: dict[str, Any]) -> bytes:
    code = bytes.fromhex(case["code_hex"]) if "code_hex" in case else case["code"].encode()
    return SOLUTION.read_bytes() + b"\n" + code if case["base"] == "solution" else code


def outcomes(code: bytes) -> dict[str, Outcome]:
    return {outcome.function: outcome for outcome in run(QUICK, code, seed=1)}


def among(expected: Any) -> list[Any]:
    return expected if isinstance(expected, list) else [expected]


def living(folder: Path) -> list[str]:
    """Processes that work below *folder*, where the system tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str((entry / "cwd").readlink()).startswith(str(folder)):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("case", HOSTILE, ids=[case["id"] for case in HOSTILE])
def test_a_hostile_file_gets_its_verdict_and_leaves_nothing_behind(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = outcomes(source(case))
    touched = case.get("touches", list(found))
    told = {name: (out.status, out.message) for name, out in found.items()}
    assert all(found[name].status in among(case["expect"]) for name in touched), told
    if case["id"] not in SPOIL_THEMSELVES:
        assert all(found[name].status == "pass" for name in found if name not in touched), told
    assert any(out.status != "pass" for out in found.values()) in [bool(code) for code in among(case["exit"])]
    assert list(tmp_path.iterdir()) == [] and living(tmp_path) == []
    assert not any(character < " " for out in found.values() for character in out.message if character != "\n")
    assert not any("Traceback" in out.message or "worker.py" in out.message for out in found.values())


SAID = {
    "def ridge_point(:\n": ("ridge_point", "line 1 of model.py"),
    "": ("ridge_point", "starter/model.py"),
    "input('ready? ')\n": ("bound", "keyboard"),
    "import sys\nsys.exit(3)\n": ("bound", "let it return"),
    "import os\nos._exit(0)\n": ("bound", "ended with status 0"),
    "bound = 1\n": ("bound", "not a function"),
    "def bound(i, r): pass\n": ("bound", "did you forget return?"),
    "def bound(i, r): return 'hbm' * 10**7\n": ("bound", "(30000000 characters)"),
    "def bound(i, r): return 10**10000\n": ("bound", "a whole number of 33220 bits"),
    "def bound(i, r): 1 / 0\n": ("bound", "ZeroDivisionError at line 1 of model.py"),
    "def bound(i, r): raise NotImplementedError('read lesson tpu-03')\n": ("bound", "read lesson tpu-03"),
    "while True: pass\n": ("bound", "longer than 3 s when model.py was loaded"),
    "def bound(i, r):\n    while True: pass\n": ("bound", "longer than 3 s in bound("),
    "def bound(i, r):\n    print('ab\\x1b[2J')\n    return 1\n": ("bound", "printed    ab\\x1b[2J"),
    "def bound(i, r):\n    print('x' * 9999)\n    return 1\n": ("bound", "(the start of 10000 bytes)"),
}


@pytest.mark.parametrize("code", SAID, ids=[code[:24] for code in SAID])
def test_a_message_says_what_happened_and_where(code: str) -> None:
    function, said = SAID[code]
    assert said in outcomes(code.encode())[function].message


def test_a_failure_shows_call_value_property_hint_and_lesson_and_not_the_answer() -> None:
    told = outcomes(SOLUTION.read_bytes() + b"\ndef ridge_point(p, b): return p / b\n")["ridge_point"].message
    lines = dict(line.split(maxsplit=1) for line in told.replace("came back", "came-back").splitlines())
    assert list(lines) == ["called", "came-back", "expected", "hint", "lesson"]
    called, peak, rate = lines["called"].replace("(", " ").replace(",", " ").replace(")", "").split()
    assert called == "ridge_point" and f"{float(peak) * 1000 / float(rate):.4}" not in told
    assert "tpu-03" in lines["lesson"]


def test_the_same_seed_draws_the_same_inputs_and_another_draws_others() -> None:
    code = SOLUTION.read_bytes() + b"\ndef ridge_point(p, b): return 0\n"
    first, again, other = (next(iter(run(QUICK, code, seed))).message for seed in (5, 5, 6))
    assert first == again != other


def test_a_learner_process_has_no_way_back_to_the_package() -> None:
    code = b"import sys\ndef bound(i, r): return ' '.join(name for name in sys.modules if 'tpu' in name) or 'none'\n"
    assert "'none'" in outcomes(code)["bound"].message


@pytest.mark.parametrize("value", [0, -1, 2**70, True, False, None, 0.1, -0.0, float("inf"), "hbm", "", (1, 2.5), ()])
def test_a_value_survives_the_pipe(value: object) -> None:
    back = decode(encode(value))
    assert back.value == value and repr(back.value) == repr(value)


@pytest.mark.parametrize("text", ["", "x", "b2", "i", "izz", "f", "nope", "s3", "s3:6", "t(", "t(x)", "o6"])
def test_what_is_no_encoded_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)


def test_a_long_value_is_shown_shortened_and_control_characters_are_escaped() -> None:
    assert len(decode(encode("x" * 300)).shown) == MOST_SHOWN + 1
    assert clean("\x1b[1m\r\n\t\x7f") == "\\x1b[1m\\r ⏎ \\t\\x7f"
