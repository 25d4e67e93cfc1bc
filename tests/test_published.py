"""What others published is what the package computes, or is known to be wrong and says why."""

from typing import Any

import pytest
from published.comparison import (
    GROUPS,
    ROUTES,
    Answer,
    agree,
    answers,
    compute,
    derived,
    exact_cases,
    left_out,
    published_cases,
    reasons,
)
from published.exact import BY_KIND, PRINTED, solve

BY_ID = {case["id"]: case for case in (*exact_cases(), *published_cases())}
COMPUTED = [answer for answer in answers() if answer.computed is not None]


def ids(cases: list[dict[str, Any]]) -> list[str]:
    return [case["id"] for case in cases]


def test_no_case_is_there_twice() -> None:
    assert len(BY_ID) == len(exact_cases()) + len(published_cases()) == len(answers())


def test_every_published_case_is_either_computed_or_left_out() -> None:
    assert sorted([*ROUTES, *left_out()]) == sorted(ids(published_cases()))


def test_every_kind_of_exact_case_is_computed_and_none_is_idle() -> None:
    assert set(BY_KIND) == {case["kind"] for case in exact_cases()}
    assert set(PRINTED) <= set(ids(exact_cases()))


def test_nothing_is_left_out_without_a_reason() -> None:
    assert left_out()
    assert all(len(reason.split()) > 3 for reason in left_out().values())


@pytest.mark.parametrize("case", exact_cases(), ids=lambda case: case["id"])
def test_exact_cases_are_reproduced_in_every_part(case: dict[str, Any]) -> None:
    solved, exact = solve(case), case["exact"]
    found = solved if isinstance(solved, dict) else {"answer": solved}
    expected = exact if isinstance(exact, dict) else {"answer": exact}

    assert set(found) == set(expected)
    for part, value in expected.items():
        if isinstance(value, str):
            assert found[part] == value
        else:
            assert float(found[part]) == pytest.approx(value, rel=1e-9, abs=0), part


@pytest.mark.parametrize("case", [c for c in published_cases() if c["id"] in ROUTES], ids=lambda case: case["id"])
def test_published_cases_are_reproduced(case: dict[str, Any]) -> None:
    expected = derived()[case["id"]]["exact"] if case["id"] in derived() else case["computed"]

    assert compute(case) == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("answer", COMPUTED, ids=lambda answer: answer.id)
def test_agreement_is_what_the_case_says(answer: Answer) -> None:
    case = BY_ID[answer.id]

    assert answer.agrees == derived().get(answer.id, case)["agrees"]


@pytest.mark.parametrize("answer", [a for a in COMPUTED if not a.agrees], ids=lambda answer: answer.id)
def test_whoever_is_said_to_be_wrong_is_told_why(answer: Answer) -> None:
    assert answer.published is not None
    assert len(answer.note.split()) > 3


@pytest.mark.parametrize("case", derived().values(), ids=lambda case: case["id"])
def test_a_derivation_is_there_only_where_the_case_falls_short(case: dict[str, Any]) -> None:
    assert case["id"] in ROUTES
    assert case["why"]
    assert case["exact"] != pytest.approx(BY_ID[case["id"]]["computed"], rel=1e-6, abs=0)


def test_a_reason_belongs_to_one_case() -> None:
    assert set(reasons()) <= set(BY_ID)
    assert not set(derived()) & set(left_out())


@pytest.mark.parametrize(
    ("published", "computed", "expected"),
    [
        (240.5, 240.537, True),
        (240.5, 240.56, False),  # would be printed as 240.6
        (10, 10.42, True),
        (486, 479.9, False),
        (4.19e10, 4.294967296e10, False),
        (1.84e10, 18385207296, True),
        (None, 1.0, True),
    ],
)
def test_a_figure_agrees_in_all_the_digits_it_is_given_with(
    published: float | None, computed: float, expected: bool
) -> None:
    assert agree({"published": published}, computed) is expected


def test_a_tolerance_is_a_share_of_the_right_answer() -> None:
    assert agree({"published": 101, "rel_tol": 0.01}, 100)
    assert not agree({"published": 102, "rel_tol": 0.01}, 100)


def test_every_answer_has_a_heading_and_a_source_free_of_archive_keys() -> None:
    assert {answer.group for answer in answers()} == set(GROUPS)
    assert not [answer.source for answer in answers() if "stored" in answer.source or "file " in answer.source]
