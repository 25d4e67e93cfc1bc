"""Receipts: which trace was audited, what was found, and where it ran, as a signed in-toto statement.

Formats: in-toto Statement v1 and its test-result predicate v0.1, DSSE v1.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpu_systems_audit import __version__
from tpu_systems_audit.receipts.envelope import seal
from tpu_systems_audit.traces import CLEAN, ERROR, NOT_CLEAN, REHEARSAL, WARNING, Audit, audit
from tpu_systems_audit.units import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
RULES = ("tracer-off", "compile", "cache-load", "lowering", "host-block", "lead-in", "steps", "uneven", "incomplete",
         "programs", "hosts", "stale-cache")  # fmt: skip
RESULTS = {CLEAN: "PASSED", REHEARSAL: "WARNED", NOT_CLEAN: "FAILED"}
MOST_BYTES = 2**22
# What depends on where a file lies and not on what is in it.
_PLACES = ("files", "run", "passed_over")


def statement(found: Audit, hosts: int | None, precision: dict[str, Any] | None) -> dict[str, Any]:
    """Make the statement about an audit.

    Args:
        found: the audit.
        hosts: how many hosts had to record, None when nobody said.
        precision: what ``tpu-audit precision --json`` printed on the same machine, None without it.
    """
    by = {
        severity: {each.code for each in found.findings if each.severity == severity} for severity in (ERROR, WARNING)
    }
    derived = {key: value for key, value in asdict(found).items() if key not in _PLACES}
    stale = {"stale-cache"}  # about a file beside the trace, which a receipt does not travel with
    digests = {file.name: file.sha256 for file in found.files}  # a file may be called otherwise where it is verified
    derived["findings"] = [
        {**each, "file": digests.get(each["file"], "")} for each in derived["findings"] if each["code"] not in stale
    ]
    return {
        "_type": STATEMENT,
        "subject": [{"name": file.name, "digest": {"sha256": file.sha256}} for file in found.files],
        "predicateType": PREDICATE,
        "predicate": {
            "result": RESULTS[found.verdict],
            "configuration": [],
            "passedTests": [rule for rule in RULES if rule not in by[ERROR] | by[WARNING] | stale],
            "warnedTests": [rule for rule in RULES if rule in by[WARNING] - by[ERROR] - stale],
            "failedTests": [rule for rule in RULES if rule in by[ERROR]],
            "hosts": hosts,
            "rung": rung(found),
            "tool": {"name": "tpu-audit", "version": __version__},
            "audit": json.loads(json.dumps(derived)),
            "precision": precision,
        },
    }


def rung(found: Audit) -> str:
    """The rung of the ladder that a trace stands on: ``chip``, ``rehearsal``, or ``none`` when it is not clean.

    Args:
        found: the audit.
    """
    return {CLEAN: "chip", REHEARSAL: "rehearsal", NOT_CLEAN: "none"}[found.verdict]


def create(
    trace: Path,
    output: Path,
    key: "Ed25519PrivateKey",
    hosts: int | None = None,
    precision: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Audit a trace, sign what was found, and write the receipt; return its statement.

    Args:
        trace: a ``*.xplane.pb``, or a folder with traces.
        output: a file that is not there yet.
        key: signs it.
        hosts: how many hosts must have recorded.
        precision: the error summary of the same machine.

    Raises:
        InputError: when the trace is none, the summary is not what the command prints, or the output is there.
    """
    if wrong := next(wrong_precision(precision), None):
        raise InputError(f"--precision: {wrong}; the output of tpu-audit precision --json is right")
    made = statement(audit(trace, hosts), hosts, precision)
    try:
        with output.open("xb") as file:
            file.write(seal(made, key))
    except FileExistsError:
        raise InputError(f"--output: {output} is there already; a new name is right") from None
    except OSError as error:
        raise InputError(f"--output: {output}: {error.strerror}; a file that can be written is right") from None
    return made


def read(receipt: Path) -> bytes:
    """Read a receipt's bytes.

    Args:
        receipt: the file.

    Raises:
        InputError: when it cannot be read, is empty, or is larger than any receipt.
    """
    try:
        with receipt.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{receipt}: {error.strerror or error}; a receipt is right") from None
    if not data or len(data) > MOST_BYTES:
        size = "more than any receipt" if data else "0 bytes"
        raise InputError(f"{receipt}: is {size}; a receipt is right")
    return data


def wrong_precision(precision: object) -> Iterator[str]:
    """Every way in which an error summary cannot be so.

    Args:
        precision: what ``tpu-audit precision --json`` printed, or None.
    """
    if precision is None:
        return
    errors = precision.get("errors") if isinstance(precision, dict) else None
    if not isinstance(errors, dict) or not errors:
        yield "the precision summary has no errors"
        return
    for method, error in errors.items():
        figures = [error.get(key) for key in ("max_abs", "bound", "rel_fro")] if isinstance(error, dict) else [None]
        if not all(isinstance(each, float | int) and math.isfinite(each) and each >= 0 for each in figures):
            yield f"the precision summary's figures of {method} are none"
        elif error.get("within_bound") is not True or figures[0] > figures[1]:  # type: ignore[operator]
            yield f"the precision summary's error of {method} is not within its bound"
