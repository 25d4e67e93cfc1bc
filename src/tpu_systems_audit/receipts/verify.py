"""Checking a receipt: its signature, and every figure against a new audit of the trace."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpu_systems_audit.receipts.envelope import InvalidError, unseal
from tpu_systems_audit.receipts.statement import read, statement, wrong_precision
from tpu_systems_audit.traces import SUFFIXES, audit, find_run
from tpu_systems_audit.units import InputError

DIGEST_SHOWN = 12
MOST_SHOWN = 60


@dataclass(frozen=True)
class Verification:
    """Whether a receipt holds, why not, who signed it and the rung that its trace stands on."""

    valid: bool
    reasons: tuple[str, ...]
    signer: str | None
    rung: str | None


def verify(receipt: Path, trace: Path, signer: str | None = None) -> Verification:
    """Check the signature, audit the trace again, and compare every figure.

    Args:
        receipt: the file.
        trace: what it is about; its bytes decide, not its name.
        signer: the fingerprint of the key that must have signed; None to be told which one did.

    Raises:
        InputError: when the receipt cannot be read, or the trace is none.
    """
    try:
        opened = unseal(read(receipt))
    except InvalidError as error:
        return Verification(False, (f"{error}",), None, None)
    reasons = list(_wrong_statement(opened.payload, trace))
    if signer is not None and signer != opened.signer:
        reasons.append(f"signed by {opened.signer}, not by {signer}")
    standing = None if reasons else opened.payload["predicate"]["rung"]
    return Verification(not reasons, tuple(reasons), opened.signer, standing)


@dataclass(frozen=True)
class Attached:
    """A receipt under ``docs/receipts`` with its trace, and what verifying it says now."""

    receipt: Path
    trace: Path
    found: Verification


def attach(receipt: Path, trace: Path, folder: Path) -> tuple[Path, ...]:
    """Put a receipt that holds, and its trace, where the site finds them; return the files, the receipt first.

    Each file appears whole or not at all, the receipt last: whenever this is interrupted, what is there holds.

    Args:
        receipt: the file.
        trace: what it is about.
        folder: ``docs/receipts``.

    Raises:
        InputError: when it does not hold, or another file has its name.
    """
    found = verify(receipt, trace)
    if not found.valid:
        raise InputError(f"{receipt}: does not hold: {found.reasons[0]}; a valid receipt is right")
    stem = hashlib.sha256(read(receipt)).hexdigest()[:DIGEST_SHOWN]
    goes = folder / f"{stem}.json"
    places = {}
    for number, file in enumerate(find_run(trace).files):  # numbered as wide as they sort: the order of hosts stays
        suffix = next((suffix for suffix in SUFFIXES if file.name.endswith(suffix)), SUFFIXES[0])
        places[folder / stem / f"{number:05}{suffix}"] = file
    places[goes] = receipt
    for place, source in places.items():
        if place.exists() and place.read_bytes() != source.read_bytes():
            raise InputError(f"{place}: is there already and another file; move it away first")
    for place, source in places.items():
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            _copy_whole(source, place)
    return goes, *(place for place in places if place != goes)


def attached(folder: Path) -> tuple[Attached, ...]:
    """Verify every receipt that was attached.

    Args:
        folder: ``docs/receipts``.

    Raises:
        InputError: when a trace is not where ``attach`` put it.
    """
    found = []
    for receipt in sorted(folder.glob("*.json")):
        trace = receipt.with_suffix("")
        found.append(Attached(receipt, trace, verify(receipt, trace)))
    return tuple(found)


def _copy_whole(source: Path, place: Path) -> None:
    """Copy under a name of its own first, then take the place in one step."""
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".attaching-", delete=False) as file:
        unfinished = Path(file.name)
        try:
            with source.open("rb") as whole:
                shutil.copyfileobj(whole, file)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            unfinished.unlink()
            raise
    unfinished.chmod(0o644)
    unfinished.replace(place)


def _wrong_statement(claimed: dict[str, Any], trace: Path) -> Iterator[str]:
    """Every way in which a statement differs from what the trace says now."""
    predicate = claimed.get("predicate")
    if not isinstance(predicate, dict):
        yield "the statement has no predicate"
        return
    hosts, precision = predicate.get("hosts"), predicate.get("precision")
    if not (hosts is None or (type(hosts) is int and hosts > 0)):
        yield "hosts is not a number of hosts"
        return
    true = statement(audit(trace, hosts), hosts, precision)
    digests = [_digests(each.get("subject")) for each in (claimed, true)]
    if digests[0] is None or digests[0] != digests[1]:
        yield "the trace is not the one that was signed: its SHA-256 differs"
        return
    true["subject"] = claimed["subject"] if _named(claimed["subject"]) else true["subject"]
    true["predicate"]["tool"] = predicate.get("tool")  # who audited then; what it found is compared
    for place, was, now in _differences(claimed, true, ""):
        yield f"{place} says {_short(was)}, the trace says {_short(now)}"
    if not _is_tool(predicate.get("tool")):
        yield "tool is not a name and a version"
    yield from wrong_precision(precision)


_ABSENT = object()


def _differences(claimed: object, true: object, place: str) -> Iterator[tuple[str, object, object]]:
    """Where two documents differ, the smallest parts."""
    if isinstance(claimed, dict) and isinstance(true, dict):
        for key in sorted(claimed.keys() | true.keys()):
            inner = f"{place}.{key}" if place else key
            yield from _differences(claimed.get(key, _ABSENT), true.get(key, _ABSENT), inner)
    elif type(claimed) is not type(true) or claimed != true:
        yield place, claimed, true


def _short(value: object) -> str:
    text = "nothing" if value is _ABSENT else json.dumps(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _digests(subject: object) -> list[str] | None:
    """The digests of a subject in order, None when it is none."""
    try:
        return [each["digest"]["sha256"] for each in subject]  # type: ignore[attr-defined]
    except (TypeError, KeyError):
        return None


def _named(subject: list[dict[str, Any]]) -> bool:
    """Whether it says name and digest of each file and nothing more; the name is who captured's own."""
    return all(
        each.keys() == {"name", "digest"} and isinstance(each["name"], str) and each["digest"].keys() == {"sha256"}
        for each in subject
    )


def _is_tool(tool: object) -> bool:
    return (
        isinstance(tool, dict) and tool.keys() == {"name", "version"} and all(isinstance(v, str) for v in tool.values())
    )
