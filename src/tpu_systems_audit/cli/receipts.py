"""The receipt commands: ``create``, ``verify``, ``show`` and ``attach``; each imports what it needs when asked."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tpu_systems_audit.cli.base import Commands, Document, command, document, finish
from tpu_systems_audit.cli.imports import needed
from tpu_systems_audit.units import InputError, whole

MOST_HOSTS = 10**5


def add(commands: Commands) -> None:
    """Add the receipt commands."""
    receipt = command(commands, "receipt", "Sign what the audit of a trace found, or check such a receipt.")
    kinds = receipt.add_subparsers(dest="kind", metavar="create|verify|show|attach", required=True)
    parser = command(kinds, "create", "Audit a trace and sign what was found.")
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a *.xplane.pb, or the folder given to the profiler")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="a file that is not there yet")
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="the signing key (default: one of your own, made once)"
    )
    parser.add_argument("--precision", type=Path, metavar="FILE", help="what tpu-audit precision --json printed here")
    parser.add_argument("--hosts", metavar="N", help="how many hosts must have recorded")
    finish(parser, _create)
    parser = command(kinds, "verify", "Check the signature, audit the trace again, compare every figure.")
    _add_pair(parser)
    parser.add_argument("--signer", metavar="FINGERPRINT", help="the key that must have signed it")
    finish(parser, _verify)
    parser = command(kinds, "show", "Print what a receipt claims; only verify checks it.")
    parser.add_argument("receipt", type=Path, metavar="RECEIPT", help="a file that receipt create wrote")
    finish(parser, _show)
    parser = command(kinds, "attach", "Put a receipt that holds, and its trace, under docs/receipts.")
    _add_pair(parser)
    parser.add_argument(
        "--docs", type=Path, default=Path("docs"), metavar="DIR", help="the site's sources (default docs)"
    )
    finish(parser, _attach)


def _add_pair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("receipt", type=Path, metavar="RECEIPT", help="a file that receipt create wrote")
    parser.add_argument("--trace", type=Path, required=True, metavar="TRACE", help="the trace that it is about")


def _create(args: argparse.Namespace) -> tuple[Document, int]:
    hosts = None if args.hosts is None else whole(args.hosts, "--hosts", most=MOST_HOSTS)
    precision = _json(args.precision) if args.precision else None
    needed("cryptography", "receipt")
    from tpu_systems_audit.receipts import create, fingerprint, key_path, signing_key

    key = signing_key(args.key or key_path())
    made = create(args.trace, args.output, key, hosts, precision)
    signer = fingerprint(key.public_key().public_bytes_raw())
    return document("receipt create", receipt=f"{args.output}", signer=signer, statement=made), 0


def _verify(args: argparse.Namespace) -> tuple[Document, int]:
    needed("cryptography", "receipt")
    from tpu_systems_audit.receipts import verify

    found = verify(args.receipt, args.trace, args.signer)
    return document("receipt verify", receipt=f"{args.receipt}", **asdict(found)), int(not found.valid)


def _show(args: argparse.Namespace) -> tuple[Document, int]:
    needed("cryptography", "receipt")
    from tpu_systems_audit.receipts import InvalidError, read, unseal

    try:
        opened = unseal(read(args.receipt))
    except InvalidError as error:
        raise InputError(f"{args.receipt}: {error}; a receipt is right") from None
    return document("receipt show", receipt=f"{args.receipt}", signer=opened.signer, statement=opened.payload), 0


def _attach(args: argparse.Namespace) -> tuple[Document, int]:
    needed("cryptography", "receipt")
    from tpu_systems_audit.receipts import attach

    files = attach(args.receipt, args.trace, args.docs / "receipts")
    return document("receipt attach", files=[f"{file}" for file in files]), 0


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"--precision: {path}: {error.strerror}; a file that can be read is right") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"--precision: {path} is not JSON; the output of tpu-audit precision --json is right")
    return found
