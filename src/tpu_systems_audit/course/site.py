"""What the pages of the site call in their cells: tables, figures, and figures of speech for numbers."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from html import escape
from pathlib import Path

from tpu_systems_audit.course.plots import Plot

ROOT = Path(__file__).parents[3]  # the pages are built from a checkout
PREMISES = ROOT / "docs" / "premises.toml"
RESULTS = ROOT / "benchmarks" / "results"

_NUMBER = re.compile(r"([<>≈~]? ?[-−+]?[\d,]+(\.\d+)?([eE][-+]?\d+)?( ?[%×])?)|\d{4}-\d\d-\d\d|–|none")


@dataclass(frozen=True)
class Html:
    """A piece of a page, shown as it is when a cell ends on it."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


def say(value: int | float | Fraction | None, digits: int = 0) -> str:
    """Write a number for a sentence or a table: thousands separated, a dash for one that does not exist.

    Args:
        value: the number.
        digits: after the point.

    >>> say(Fraction(481, 2), 1), say(1638), say(None)
    ('240.5', '1,638', '–')
    """
    return "–" if value is None else f"{float(value):,.{digits}f}"


def premise(key: str) -> int | float | str:
    """Look up what a page is told rather than computes, from ``docs/premises.toml``.

    Args:
        key: a table and a name in it.

    Raises:
        KeyError: when there is no such premise.

    >>> premise("start.intensity_flop_per_byte")
    170
    """
    table, _, name = key.partition(".")
    found: dict[str, int | float | str] = _premises().get(table, {})
    if name not in found:
        raise KeyError(f"{key} is not a premise in {PREMISES.name}")
    return found[name]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, stacked: bool = False) -> Html:
    """Make a captioned table that scrolls where it is too wide; the first cell of a row names it.

    Args:
        head: the name of each column.
        rows: as many cells each as there are names; an address becomes a link.
        caption: says what the rows have in common, and in which unit.
        stacked: whether cells hold sentences, which wrap; on a narrow page a row is then a block of its own.

    >>> table(["chip", "HBM GiB"], [["v5e", "16"]], "Memory").text.count("<td")
    1
    """
    numeric = (
        [all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=True)] if rows else [False] * len(head)
    )
    kinds = [' class="number"' if each else "" for each in numeric]
    top = "".join(
        f'<th role="columnheader" scope="col"{kind}>{escape(cell)}</th>' for cell, kind in zip(head, kinds, strict=True)
    )
    body = "".join(f'<tr role="row">{_row(row, kinds, head)}</tr>' for row in rows)
    kind = "course-table course-stacked" if stacked else "course-table"
    return Html(
        f'<figure class="{kind}"><figcaption>{escape(caption)}</figcaption>'
        f'<div class="course-scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table role="table"><thead role="rowgroup"><tr role="row">{top}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div></figure>'
    )


def figure(plot: Plot, caption: str) -> Html:
    """Put a drawing into the page, with the words that stand for it where it cannot be seen.

    Args:
        plot: a drawing of this package's own making, taken as it is.
        caption: what stands under it.

    >>> figure(Plot("<svg></svg>", "A < B"), "Two letters").text.count("A &lt; B")
    1
    """
    # A region that scrolls on a narrow page must be reachable by key, like a table.
    return Html(
        f'<figure class="course-figure"><div class="course-scroll" role="img" tabindex="0" '
        f'aria-label="{escape(plot.alt)}">{plot.svg}</div><figcaption>{escape(caption)}</figcaption></figure>'
    )


@cache
def _premises() -> dict[str, dict[str, int | float | str]]:
    return tomllib.loads(PREMISES.read_text(encoding="utf-8"))


def _cell(text: str) -> str:
    return f'<a href="{escape(text)}">{escape(text)}</a>' if text.startswith("https://") else escape(text)


def _row(row: Sequence[str], kinds: Sequence[str], head: Sequence[str]) -> str:
    first, *rest = map(_cell, row)
    cells = zip(rest, kinds[1:], map(escape, head[1:]), strict=True)
    named = f'<th role="rowheader" scope="row">{first}</th>'
    return named + "".join(f'<td role="cell" data-label="{name}"{kind}>{cell}</td>' for cell, kind, name in cells)
