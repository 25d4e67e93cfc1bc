"""A document as text for a person: tables, then what to know."""

from collections.abc import Callable, Sequence

Document = dict


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out rows under a head, the first column to the left and the others to the right.

    >>> table(["chip", "HBM"], [["v5e", "16"], ["tpu7x", "192"]])
    ['chip   HBM', 'v5e     16', 'tpu7x  192']
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(_padded(row, widths)).rstrip() for row in (head, *rows)]


def _padded(row: Sequence[str], widths: list[int]) -> list[str]:
    others = zip(row[1:], widths[1:], strict=True)
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in others)]


def figure(value: float | None, digits: int = 2) -> str:
    """Write a number with thousands separators, or a dash for one that does not exist.

    >>> figure(1234.5), figure(None)
    ('1,234.50', '–')
    """
    return "–" if value is None else f"{value:,.{digits}f}"


def _generations(document: Document) -> list[str]:
    head = ["generation", "HBM GiB", "usable/device", "devices", "GB/s", "bf16", "int8", "fp8", "ridge bf16", "largest"]
    rows = [
        [
            entry["name"],
            str(entry["hbm_gib"]),
            figure(entry["usable_hbm_gib_per_device"]),
            str(entry["devices_per_chip"]),
            figure(entry["hbm_gb_per_s"], 0),
            *(figure(entry["peak_tflops"][dtype], 0) for dtype in ("bf16", "int8", "fp8")),
            figure(entry["ridge_flop_per_byte"]["bf16"], 1),
            entry["slices"][-1]["accelerator_type"],
        ]
        for entry in document["generations"]
    ]
    lines = table(head, rows)
    if len(rows) == 1:
        lines += _one_generation(document["generations"][0])
    return [*lines, "", "Per chip; peaks in TFLOP/s (int8: TOP/s), ridge in FLOP/byte. Sources: --json."]


def _one_generation(entry: Document) -> list[str]:
    shown = entry["slices"][:16]
    head = ("accelerator_type", "topology", "chips", "hosts", "devices")
    rows = [[str(each[key]) for key in head] for each in shown]
    more = len(entry["slices"]) - len(shown)
    return [
        "",
        *table(["slice", *head[1:]], rows),
        *([f"and {more} more, see --json"] if more else []),
        *dict.fromkeys(s["note"] for s in shown if s["note"]),
        f"ordered through {entry['ordered_through']}",
    ]


def _roofline(document: Document) -> list[str]:
    side = "below" if document["bound"] == "hbm" else "at or above"
    name = {"hbm": "HBM bandwidth", "compute": "compute"}[document["bound"]]
    return [
        f"{document['generation']} {document['dtype']}: {name}-bound",
        f"intensity {figure(document['intensity_flop_per_byte'])} FLOP/byte is {side} the ridge point, "
        f"{figure(document['ridge_flop_per_byte'])} FLOP/byte",
        f"attainable {figure(document['attainable_tflops'])} TFLOP/s, {document['fraction_of_peak']:.1%} of peak",
    ]


def _model(document: Document) -> list[str]:
    model = document["model"]
    name = model["name"] or "a bare count"
    return [
        f"{name}: {model['parameters']:,} parameters",
        *(f"default taken: {taken}" for taken in model["defaults"]),
        *(f"note: {note}" for note in model["notes"]),
    ]


def _memory_train(document: Document) -> list[str]:
    gib = 2**30
    rows = [[name.replace("_", " "), f"{size:,}", figure(size / gib)] for name, size in document["bytes"].items()]
    rows += [[f"{kind} state", f"{document[f'{kind}_bytes']:,}", figure(document[f"{kind}_gib"])] for kind in _STATES]
    return [
        *_model(document),
        f"policy {document['policy']}, optimizer {document['optimizer']}",
        "",
        *table(["", "bytes", "GiB"], rows),
        "",
        "Resident lives between steps (weights, optimizer); peak is what a step needs at once, before activations.",
    ]


_STATES = ("resident", "peak")


def _memory_serve(document: Document) -> list[str]:
    names = ["weights", "weights_scale", "kv_cache", "kv_scale", "total"]
    rows = [[n.replace("_", " "), f"{document[f'{n}_bytes']:,}", figure(document[f"{n}_gib"])] for n in names]
    return [
        *_model(document),
        f"{document['batch']:,} sequences of {document['context']:,} tokens, weights {document['weights_dtype']}, "
        f"cache {document['kv_dtype']}",
        "",
        *table(["", "bytes", "GiB"], rows),
        "",
        f"The first token takes {document['kv_bytes_per_token']:,} bytes of cache.",
    ]


def _plan(document: Document) -> list[str]:
    head = ["on", "GiB", "min chips", "slice", "topology", "chips", "GiB/chip", "of HBM", "fits"]
    if "decode_floor_ms" in document["plans"][0]:
        head.append("decode floor")
    rows = [_plan_row(entry) for entry in document["plans"]]
    lines = [*_model(document), _asked(document), "", *table(head, rows)]
    said = {entry["generation"]: _said(entry, document["model"]["positions"]) for entry in document["plans"]}
    first = next(iter(said.values()))
    for_all = [line for line in first if len(said) > 1 and all(line in own for own in said.values())]
    for name, own in said.items():
        apart = [line for line in own if line not in for_all]
        if apart:
            lines += ["", *(f"{name}: {line}" if len(said) > 1 else line for line in apart)]
    return [*lines, *([""] if for_all else []), *for_all]


def _said(entry: Document, positions: int | None) -> list[str]:
    return [*_filling(entry, positions), *entry["notes"], *(f"would help: {line}" for line in entry["advice"])]


_ASKED = (
    "policy", "optimizer", "sequence", "batch_per_chip", "remat", "context", "batch", "weights_dtype", "kv_dtype",
)  # fmt: skip


def _asked(document: Document) -> str:
    asked = [f"{name.replace('_', ' ')} {document[name]}" for name in _ASKED if name in document]
    return f"{', '.join(asked)}; budget {document['budget']:.0%} of nominal HBM, basis {document['plans'][0]['basis']}"


def _plan_row(entry: Document) -> list[str]:
    where = entry["slice"] or {"accelerator_type": "none", "topology": "–", "chips": "–"}
    share = entry["fraction_of_hbm"]
    return [
        entry["generation"],
        figure(entry["required_gib"]),
        f"{entry['min_chips']:,}",
        where["accelerator_type"],
        where["topology"],
        str(where["chips"]),
        figure(entry["gib_per_chip"]),
        "–" if share is None else f"{share:.1%}",
        "yes" if entry["fits"] else f"short {figure(entry['short_gib'])} GiB",
        *([_floor(entry["decode_floor_ms"])] if "decode_floor_ms" in entry else []),
    ]


def _floor(floor_ms: float | None) -> str:
    return "–" if floor_ms is None else f"{figure(floor_ms)} ms"


def _filling(entry: Document, positions: int | None) -> list[str]:
    """What fills one chip, and for a slice asked about, what would still go in."""
    lines = []
    if entry["slice"]:
        chips = entry["slice"]["chips"]
        parts = [f"{name.replace('_', ' ')} {figure(size / chips)}" for name, size in entry["parts_gib"].items()]
        if entry.get("activation_gib_per_chip") is not None:
            parts.append(f"activations {figure(entry['activation_gib_per_chip'])} (estimate)")
            parts.append(f"margin {figure(entry['margin_gib'])}")
        usable = figure(entry["usable_hbm_gib_per_chip"])
        lines.append(f"a chip holds, in GiB: {', '.join(parts)}; usable {usable}")
    if "headroom_gib" in entry:
        lines.append(f"headroom inside the budget: {figure(entry['headroom_gib'])} GiB over the slice")
    for name in (name for name in entry if name.startswith("largest_")):
        of_tokens = positions is not None and name in ("largest_context", "largest_sequence")
        model = f" by memory, {positions:,} by the model" if of_tokens else ""
        lines.append(f"{name.replace('_', ' ')}: {entry[name]:,}{model}")
    return lines


RENDERERS: dict[str, Callable[[Document], list[str]]] = {
    "generations": _generations,
    "roofline": _roofline,
    "memory train": _memory_train,
    "memory serve": _memory_serve,
    "plan train": _plan,
    "plan serve": _plan,
}
