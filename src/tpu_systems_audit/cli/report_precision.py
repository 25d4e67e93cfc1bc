"""Documents about precision as text for a person."""

from collections.abc import Callable

from tpu_systems_audit.cli.report import Document, figure, table


def _precision(document: Document) -> list[str]:
    head = ["method", "max abs", "bound", "rel Frobenius", "bound", "within", "max abs to fp32"]
    rows = [
        [
            method,
            f"{entry['max_abs']:.3e}",
            f"{entry['bound']:.3e}",
            f"{entry['rel_fro']:.3e}",
            f"{entry['rel_fro_bound']:.3e}",
            "yes" if entry["within_bound"] else "NO",
            f"{entry['max_abs_vs_float32']:.3e}",
        ]
        for method, entry in document["errors"].items()
    ]
    accumulator = document["accumulator"]
    return [
        f"M, K, N = {_sides(document)}, standard normal, seed {document['seed']}, on {document['platform']}",
        *(["", "a rehearsal: this ran on no TPU"] if document["rehearsal"] else []),
        "",
        *table(head, rows),
        "",
        f"bf16's sums: {accumulator['verdict']}, {_bits(accumulator)}, added {accumulator['order']}",
        *([f"drawn in {document['svg']}"] if document["svg"] else []),
    ]


def _probe(document: Document) -> list[str]:
    return [
        f"{document['dot']}, {document['dtype']}, M, K, N = {_sides(document)}: {document['verdict']}",
        f"width {_bits(document)}, added {document['order']}",
        *(f"  {reason}" for reason in document["why"]),
    ]


def _bits(certificate: Document) -> str:
    return f"{figure(certificate['width_bits'], 0)} bits"


def _sides(document: Document) -> str:
    return ", ".join(map(str, document["shape"]))


RENDERERS: dict[str, Callable[[Document], list[str]]] = {
    "precision": _precision,
    "precision probe": _probe,
}
