"""The tables of the page that sets the package beside what others published."""

from html import escape

from published.comparison import GROUPS, Answer, answers, left_out, published_cases, reader_source, show
from tpu_systems_audit.course import Html, table
from tpu_systems_audit.units import GB


def compared() -> list[Answer]:
    """What a page may show: answers beside a figure that was read where it was published."""
    return [a for a in answers() if a.checked and a.published is not None and a.computed is not None]


def agreeing(group: str) -> list[Answer]:
    """The answers of a group that agree.

    Args:
        group: a name in ``published.GROUPS``.

    >>> {answer.agrees for answer in agreeing("Ridge points")}
    {True}
    """
    return [answer for answer in compared() if answer.group == group and answer.agrees]


def differing() -> list[Answer]:
    """The answers that differ, in the order of the groups."""
    order = list(GROUPS)
    return sorted((a for a in compared() if not a.agrees), key=lambda answer: order.index(answer.group))


def counts() -> Html:
    """How many agree and how many differ, by group."""
    apart = differing()
    rows = []
    for group in GROUPS:
        same, other = len(agreeing(group)), sum(1 for answer in apart if answer.group == group)
        rows.append([group, show(same + other), show(same), show(other)])
    return table(["what was asked", "published figures", "we agree", "we differ"], rows, "Published figures, by kind")


def wrong() -> Html:
    """Where a published figure is not what we get, with the reason."""
    rows = [[f"{a.source}, in {a.unit}", brief(a.published), brief(a.computed), a.note] for a in differing()]
    return table(
        ["source, and unit", "published", "we get", "why"], rows, "Published figures that we do not get", stacked=True
    )


def right() -> Html:
    """What agrees, a shut table a group."""
    return Html("".join(_shut(group) for group in GROUPS))


def excluded() -> Html:
    """What the package is not asked, with the reason."""
    rows = [
        [f"{reader_source(case['source'])}, in {case['unit']}", brief(case["published"]), left_out()[case["id"]]]
        for case in published_cases()
        if case["id"] in left_out()
    ]
    return table(
        ["source, and unit", "published", "why it is left out"],
        rows,
        "Published figures that are left out",
        stacked=True,
    )


def brief(value: float | None) -> str:
    """A number as ``show`` writes it, from a thousand million on with an exponent, so that a reason has room beside it.

    >>> brief(17_442_541_568), brief(327_680)
    ('1.7443e10', '327,680')
    """
    if value is None or abs(value) < GB:
        return show(value)
    return f"{value:.5g}".replace("e+", "e")


def _shut(group: str) -> str:
    found = agreeing(group)
    rows = [[a.source, show(a.published), show(a.computed), a.unit] for a in found]
    inside = table(["source", "published", "we get", "unit"], rows, f"{group}: where we agree")
    return (
        f'<details class="course-reveal"><summary>{escape(group)}: {len(found)} that agree</summary>'
        f"{inside.text}</details>"
    )
