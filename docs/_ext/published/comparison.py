"""Every case with the published figure and ours, and whether they agree."""

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from math import floor, log10
from pathlib import Path
from typing import Any

from published.exact import printed
from published.inputs import Number
from published.models import MODELS
from published.rates import RATES
from published.states import STATES

CASES = Path(__file__).parents[3] / "tests" / "cases"

ROUTES = RATES | MODELS | STATES

GROUPS = {
    "Ridge points": ("ridge",),
    "Rooflines": ("roofline", "matmul", "decode_floor"),
    "Parameters and weights": ("params", "weights"),
    "KV caches": ("kv_cache", "kv_per_token", "kv_cache_shape"),
    "Training states": ("train_state", "note"),
    "Chips": ("min_chips", "plan"),
    "Slices and capacity": ("slice",),
}

MOST_DIGITS = 12  # two floats of one number may differ in the digits beyond


@dataclass(frozen=True)
class Answer:
    """One published figure beside ours; None where nothing was published, or the package is not asked."""

    id: str
    source: str
    kind: str
    published: float | None
    unit: str
    computed: float | None
    agrees: bool
    note: str
    checked: bool = True

    @property
    def group(self) -> str:
        """The heading under which a reader looks for it."""
        if self.unit in ("params", "parameters"):
            return "Parameters and weights"
        return next(group for group, kinds in GROUPS.items() if self.kind in kinds)


@cache
def exact_cases() -> list[dict[str, Any]]:
    """The cases of ``answers.json``, whose exact answers are known."""
    cases: list[dict[str, Any]] = json.loads((CASES / "answers.json").read_text(encoding="utf-8"))
    return cases


def published_cases() -> list[dict[str, Any]]:
    """The cases of ``published.toml``, each with the tolerance of its source's rounding."""
    return _toml("published")["case"]


def left_out() -> dict[str, str]:
    """The ids that the package is not asked, with the reason."""
    return {case["id"]: case["reason"] for case in _toml("left_out")["case"]}


def derived() -> dict[str, dict[str, Any]]:
    """Answers derived on paper where ``computed`` of a case falls short, by id."""
    return {case["id"]: case for case in _toml("derived")["case"]}


@cache
def reasons() -> dict[str, str]:
    """Why a case is left out, why ours was derived anew, or why a source differs where its own note does not say."""
    told = {case["id"]: case["why"] for case in (*_toml("derived")["case"], *_toml("derived")["reason"])}
    return told | left_out()


def compute(case: dict[str, Any]) -> float | None:
    """Answer a case by calls of the package; None for one that is left out.

    Args:
        case: of ``exact_cases`` or ``published_cases``.

    >>> compute({"id": "sb-roof-03", "rel_tol": 0.01,
    ...          "inputs": {"flops_bf16_per_s": 1.97e14, "hbm_bytes_per_s": 8.2e11}})
    240.2439024390244
    """
    if "rel_tol" not in case:
        return float(printed(case))
    route = ROUTES.get(case["id"])
    return None if route is None else float(route(case["inputs"]))


def agree(case: dict[str, Any], computed: float) -> bool:
    """Whether the published figure is *computed*, within its tolerance, or else in all the digits it is given with.

    >>> agree({"published": 240.5}, 240.537), agree({"published": 240}, 223.6)
    (True, False)
    """
    value = case["published"]
    if value is None:
        return True
    if "rel_tol" in case:
        return bool(abs(value - computed) <= case["rel_tol"] * abs(computed))
    digits = min(_digits(value), MOST_DIGITS)
    return float(f"{computed:.{digits - 1}e}") == float(f"{value:.{digits - 1}e}")


@cache
def answers() -> list[Answer]:
    """Every case with what the package answers, in the order of the files."""
    return [_answer(case) for case in (*exact_cases(), *published_cases())]


def reader_source(text: str) -> str:
    """The name of a source without the keys of the archive in which it was read.

    >>> reader_source("stored notes (file 123), fp8"), reader_source("a book (stored mirror 456), Question 1")
    ('notes, fp8', 'a book, Question 1')
    """
    return re.sub(r"^stored | \((stored|file)\b[^)]*\)", "", text)


def show(value: Number | None) -> str:
    """A number with at least five digits, none of them added.

    >>> show(0.00101), show(240.53724), show(41.9e9), show(6.7)
    ('0.00101', '240.54', '41,900,000,000', '6.7')
    """
    if value is None:
        return "–"
    number = float(value)
    if number == int(number):
        return f"{int(number):,}"
    decimals = max(1, 4 - floor(log10(abs(number))))
    return f"{number:,.{decimals}f}".rstrip("0").rstrip(".")


@cache
def _toml(name: str) -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((CASES / f"{name}.toml").read_text(encoding="utf-8"))


def _answer(case: dict[str, Any]) -> Answer:
    computed = compute(case)
    return Answer(
        id=case["id"],
        source=reader_source(case["source"]),
        kind=case["kind"],
        published=case["published"],
        unit=case["unit"],
        computed=computed,
        agrees=case["agrees"] if computed is None else agree(case, computed),
        note=reasons().get(case["id"], case.get("note", "")),
        checked=case.get("certainty") != "memory",
    )


def _digits(value: float) -> int:
    """Significant digits with which a number is written; zeros at its end may be rounding."""
    return max(1, len(str(value).partition("e")[0].replace(".", "").strip("0")))
