"""Audits and timelines of traces as text for a person."""

from collections.abc import Callable

from tpu_systems_audit.cli.report import Document, figure

WIDTH = 72
MARKS = {"step": "=", "compile": "C", "cache-load": "L", "lowering": "l", "busy": "B"}
US_PER_MS = 1000


def _audit(document: Document) -> list[str]:
    kind = document["device_kind"] or document["platform"]
    file = document["file"]
    lines = [f"{document['verdict']}: {document['path']}"]
    if document["run"]:
        older = len(document["passed_over"])
        lines.append(f"run {document['run']}" + (f", the newest of {older + 1}" if older else ""))
    lines += [
        f"{_count(document['files'], 'file')}, {file['bytes']} bytes, sha256 {file['sha256']}",
        f"{kind}, {_count(document['devices'], 'device')}, "
        f"{_count(document['steps'], 'step')} from {document['step_source']}, "
        f"median {_ms(document['median_step_us'])}",
    ]
    for finding in document["findings"]:
        lines += ["", f"{finding['severity']} {finding['code']}: {finding['message']}"]
        lines += [
            f"  {each['event']} on {each['thread'] or 'a thread without a name'}, "
            f"{_ms(each['duration_us'])} from {_ms(each['start_us'])} on"
            for each in finding["evidence"]
        ]
        lines.append(f"  fix: {finding['fix']}")
    return lines


def _show(document: Document) -> list[str]:
    lines: list[str] = []
    for timeline in document["timelines"]:
        lines += ["", timeline["file"]] if lines else [timeline["file"]]
        label = max((len(row["label"]) for row in timeline["rows"]), default=0) + 2
        whole = (0.0, timeline["end_us"])
        steps = (timeline["first_us"], timeline["last_us"])
        for name, (first, last) in (("the whole profile", whole), ("the steps", steps)):
            lines.append(f"{name}: {_ms(first)} to {_ms(last)}")
            for row in timeline["rows"]:
                drawn = _drawn(row["bars"], first, last)
                if drawn.strip():
                    lines.append(f"  {row['label']:{label}}|{drawn}|")
    used = {bar["kind"] for timeline in document["timelines"] for row in timeline["rows"] for bar in row["bars"]}
    lines.append(", ".join(f"{mark} {kind}" for kind, mark in MARKS.items() if kind in used))
    lines += ["", f"{document['verdict']}: {document['path']}"]
    lines += [f"{each['severity']} {each['code']}: {each['message']}" for each in document["findings"]]
    return [*lines, f"drawn in {document['svg']}"] if document["svg"] else lines


def _drawn(bars: list[Document], first: float, last: float) -> str:
    """A line of marks; every second step in another mark, so that neighbours can be told apart."""
    cells = [" "] * WIDTH
    scale = WIDTH / ((last - first) or 1.0)
    for number, bar in enumerate(bars):
        start, end = bar["start_us"], bar["start_us"] + bar["duration_us"]
        if end < first or start > last:
            continue
        low = min(WIDTH - 1, max(0, int((start - first) * scale)))
        high = max(low + 1, min(WIDTH, round((end - first) * scale)))
        mark = "-" if bar["kind"] == "step" and number % 2 else MARKS[bar["kind"]]
        cells[low:high] = [mark] * (high - low)
    return "".join(cells)


def _count(items: list[Document], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


def _ms(value_us: float | None) -> str:
    return f"{figure(None if value_us is None else value_us / US_PER_MS, 2)} ms"


RENDERERS: dict[str, Callable[[Document], list[str]]] = {
    "trace audit": _audit,
    "trace capture": _audit,
    "trace show": _show,
}
