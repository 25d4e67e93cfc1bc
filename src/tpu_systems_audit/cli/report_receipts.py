"""Receipts as text for a person."""

from collections.abc import Callable

from tpu_systems_audit.cli.report import Document


def _statement(document: Document) -> list[str]:
    claimed = document["statement"]
    predicate = claimed.get("predicate", {})
    subject = [f"  {each['name']}, sha256 {each['digest']['sha256']}" for each in claimed.get("subject", [])]
    return [
        f"{document['receipt']}: {predicate.get('result')}, rung {predicate.get('rung')}",
        *subject,
        f"signed by {document['signer']}",
        *(f"  failed {rule}" for rule in predicate.get("failedTests", [])),
        *(f"  warned {rule}" for rule in predicate.get("warnedTests", [])),
    ]


def _verify(document: Document) -> list[str]:
    valid = "valid" if document["valid"] else "NOT VALID"
    lines = [f"{document['receipt']}: {valid}", *(f"  {reason}" for reason in document["reasons"])]
    if document["signer"]:
        lines.append(f"signed by {document['signer']}, who vouches for it; a signature cannot say that a TPU made it")
    if document["rung"]:
        lines.append(f"rung: {document['rung']}")
    return lines


def _attach(document: Document) -> list[str]:
    return [f"attached {file}" for file in document["files"]]


RENDERERS: dict[str, Callable[[Document], list[str]]] = {
    "receipt create": _statement,
    "receipt show": _statement,
    "receipt verify": _verify,
    "receipt attach": _attach,
}
