"""Check a learner's functions: call each in a process of its own, and judge what comes back.

The parent owns inputs, expected values and comparison; the learner's process only evaluates.
This is the engine of every project's ``check.py``; it knows no course content.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tpu_systems_audit.checker.process import Answer, Session, session
from tpu_systems_audit.checker.values import Returned, clean, decode


@dataclass(frozen=True)
class Call:
    """One call: its arguments, and a judge that names the property a value lacks, or None when it lacks none.

    The judge runs while the learner's folder is there. *written* tells the call where its arguments are too long to.
    """

    arguments: tuple[object, ...]
    lacks: Callable[[Returned], str | None]
    written: str = ""


@dataclass(frozen=True)
class Check:
    """All calls of one function, drawn anew from a seed, with one hint and the lesson section for who fails."""

    function: str
    calls: Callable[[Random], Sequence[Call]]
    hint: str
    lesson: str


@dataclass(frozen=True)
class Stage:
    """Checks that belong together; *missing* says why they cannot run here, empty when they can.

    *harness* is a file whose ``prepare(name)`` gives what calls the learner's function in its own process.
    """

    number: int
    checks: tuple[Check, ...]
    missing: str = ""
    limit_s: float = 5.0
    memory_bytes: int = 2**29
    harness: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """How one check ended: ``pass fail error timeout memory not-started``, and why."""

    function: str
    status: str
    message: str = ""


def new_seed() -> int:
    """Draw a seed for a run that was not given one."""
    return secrets.randbelow(10**9)


def run(stage: Stage, source: bytes, seed: int) -> Iterator[Outcome]:
    """Run every check of a stage on a learner's file, two at a time; outcomes come in the order of the checks.

    Args:
        stage: what to check, within which limits.
        source: the learner's file.
        seed: from which the inputs are drawn; the same seed draws the same inputs.
    """
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(lambda check: _outcome(stage, check, source, seed), stage.checks)


def _outcome(stage: Stage, check: Check, source: bytes, seed: int) -> Outcome:
    calls = check.calls(Random(f"{seed} {check.function}"))
    names = [check.function, *(other.function for other in stage.checks if other is not check)]
    with session(source, names, stage.limit_s, stage.memory_bytes, stage.harness) as process:
        status, told = _converse(process, check, calls)
        printed = process.printed()
    if printed and status != "pass":
        told += f"\nprinted    {printed}"
    return Outcome(check.function, status, told)


def _converse(process: Session, check: Check, calls: Sequence[Call]) -> tuple[str, str]:
    """Make the calls one after the other, until one goes wrong."""
    answer = process.next_answer()
    if answer != ("ready",):
        return _trouble(answer, check, "when model.py was loaded")
    for call in calls:
        written = f"{check.function}({call.written or ', '.join(map(repr, call.arguments))})"
        answer = process.ask(call.arguments)
        value = _value(answer)
        if value is None:
            return _trouble(answer, check, f"in {written}")
        lacking = call.lacks(value)
        if lacking:
            told = {"called": written, "came back": value.shown, "expected": lacking}
            told |= {"hint": check.hint, "lesson": check.lesson}
            return "fail", "\n".join(f"{name:10} {text}" for name, text in told.items() if text)
    return "pass", ""


def _value(answer: Answer) -> Returned | None:
    match answer:
        case ("value", text):
            try:
                return decode(text)
            except (ValueError, OverflowError):
                return None
    return None


def _trouble(answer: Answer, check: Check, where: str) -> tuple[str, str]:
    """Turn an answer that is no value into a status and a message."""
    name = check.function
    match answer:
        case ("todo", _, text, _):
            return "not-started", clean(text)
        case ("missing", "all"):
            return "error", "model.py has none of the functions; copy them from starter/model.py"
        case ("missing", _):
            return "error", f"model.py has no function {name}; starter/model.py shows how it begins"
        case ("uncallable",):
            return "error", f"{name} is not a function; write def {name}(…)"
        case ("memory",):
            return "memory", f"it needed more than its memory limit {where}"
        case ("timeout", limit_s):
            return (
                "timeout",
                f"it took longer than {limit_s} s {where}; is there a loop that never ends?",
            )
        case ("ended", how):
            return "error", f"its process {how} {where}, before it answered"
        case ("raised", kind, text, line):
            at = f" at line {line} of model.py" if line else ""
            return "error", f"{clean(kind)}{at}, {where}: {clean(text)}{ADVICE.get(kind, '')}"
    return "error", f"what came back {where} is not an answer"


ADVICE = {
    "EOFError": "; model.py reads from the keyboard, and a check has none",
    "SystemExit": "; model.py exits, let it return instead",
}
