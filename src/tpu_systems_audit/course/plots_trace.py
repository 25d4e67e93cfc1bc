"""The timeline of a trace as SVG: the whole profile above, the steps enlarged below."""

from collections.abc import Sequence
from html import escape
from textwrap import wrap

from tpu_systems_audit.course.plots import HUES, Plot
from tpu_systems_audit.traces import KINDS, Finding, Row, Timeline

WIDTH, LABEL, RIGHT = 420, 96, 10
LINE, BAR, HEAD = 22, 14, 34
KIND_HUES = dict(zip(KINDS, (HUES[0], HUES[4], HUES[1], HUES[6], HUES[7]), strict=True))
US_PER_MS = 1000
CHARACTERS = 68  # of a finding on one line
LEAST = 1.0  # a bar that is there can be seen


def timeline_plot(timeline: Timeline, findings: Sequence[Finding] = ()) -> Plot:
    """Draw one host's timeline, and below it what the audit found.

    Args:
        timeline: from ``timelines``.
        findings: of the audit; those of other files are left out.
    """
    parts: list[str] = []
    top = _panel(parts, timeline.rows, 0.0, timeline.end_us, 0, "the whole profile")
    inside = [
        Row(
            row.label,
            tuple(bar for bar in row.bars if bar.end_us > timeline.first_us and bar.start_us < timeline.last_us),
        )
        for row in timeline.rows
    ]
    shown = [row for row in inside if row.bars]
    height = _panel(parts, shown, timeline.first_us, timeline.last_us, top, "the steps") if shown else top
    told = [f"{each.severity} {each.code}: {each.message}" for each in findings if each.file in ("", timeline.file)]
    for line in (part for each in told for part in wrap(each, CHARACTERS, subsequent_indent="   ")):
        parts.append(f'<text x="0" y="{height + 10}" xml:space="preserve">{escape(line)}</text>')
        height += LINE
    alt = " ".join([describe(timeline), *(f"{each}." for each in told)])
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {height}" font-size="12" fill="currentColor" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )
    return Plot(svg, alt)


def describe(timeline: Timeline) -> str:
    """Say in words what the drawing shows.

    Args:
        timeline: from ``timelines``.
    """
    told = []
    for row in timeline.rows:
        total = sum(bar.duration_us for bar in row.bars) / US_PER_MS
        longest = max(row.bars, key=lambda bar: bar.duration_us)
        told.append(
            f"{row.label}: {len(row.bars)} bars from {row.bars[0].start_us / US_PER_MS:,.2f} ms on, {total:,.2f} ms, "
            f"the longest {longest.label}, {longest.duration_us / US_PER_MS:,.2f} ms"
        )
    return f"Timeline of {timeline.file}, {timeline.end_us / US_PER_MS:,.2f} ms. " + "; ".join(told) + "."


def _panel(parts: list[str], rows: list[Row] | tuple[Row, ...], first: float, last: float, top: int, name: str) -> int:
    """Draw rows against one scale from *top* on; return where the next panel starts."""
    span = (last - first) or 1.0
    scale = (WIDTH - LABEL - RIGHT) / span
    parts.append(f'<text x="0" y="{top + 14}" font-weight="600">{name}, {span / US_PER_MS:,.2f} ms</text>')
    y = top + HEAD - 8
    for row in rows:
        parts.append(f'<text x="0" y="{y + BAR - 3}">{escape(row.label)}</text>')
        parts.append(f'<path d="M{LABEL} {y + BAR + 2}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity=".25"/>')
        for bar in row.bars:
            start, end = max(bar.start_us, first), min(bar.end_us, last)
            width = max((end - start) * scale, LEAST)
            told = f"{bar.label}: {bar.duration_us / US_PER_MS:,.3f} ms from {bar.start_us / US_PER_MS:,.3f} ms on"
            parts.append(
                f'<rect x="{LABEL + (start - first) * scale:.2f}" y="{y}" width="{width:.2f}" height="{BAR}" '
                f'fill="{KIND_HUES[bar.kind]}"><title>{escape(told)}</title></rect>'
            )
        y += LINE
    parts.append(f'<text x="{LABEL}" y="{y + 10}" opacity=".75">{first / US_PER_MS:,.2f} ms</text>')
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="{y + 10}" text-anchor="end" opacity=".75">{last / US_PER_MS:,.2f} ms</text>'
    )
    return y + HEAD
