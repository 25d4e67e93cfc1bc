"""The trace commands: ``trace audit``, ``trace show`` and ``trace capture``; each imports what it needs when asked."""

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tpu_systems_audit.cli.base import Commands, Document, command, document, finish, write_new
from tpu_systems_audit.cli.imports import named_function, needed
from tpu_systems_audit.units import whole

if TYPE_CHECKING:
    from tpu_systems_audit.traces import Audit

MOST_HOSTS = 10**5
MOST_STEPS = 10**4


def add(commands: Commands) -> None:
    """Add the trace commands."""
    trace = command(commands, "trace", "Capture a trace of warmed steps, audit one, or draw it.")
    kinds = trace.add_subparsers(dest="kind", metavar="capture|audit|show", required=True)
    parser = command(kinds, "capture", "Warm a step, trace it, and audit the trace; a CPU's is a rehearsal.")
    parser.add_argument("directory", type=Path, metavar="DIR", help="where the profiler makes its folders")
    parser.add_argument("--step", metavar="MODULE:FUNCTION", help="gives (step, argument); default: a bf16 matmul")
    parser.add_argument("--steps", default="5", metavar="N", help="how many (default 5)")
    finish(parser, _capture)
    parser = command(kinds, "audit", "Say whether a trace is clean, and what is wrong with it, event by event.")
    parser.add_argument("path", type=Path, metavar="PATH", help="a *.xplane.pb, or the folder given to the profiler")
    parser.add_argument("--hosts", metavar="N", help="how many hosts must have recorded")
    finish(parser, _audit)
    parser = command(kinds, "show", "Draw what happened before and in the steps.")
    parser.add_argument("path", type=Path, metavar="PATH", help="a *.xplane.pb, or the folder given to the profiler")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw into a file that is not there yet")
    finish(parser, _show)


def audit_document(name: str, path: Path, found: "Audit") -> Document:
    """Describe an audit as the command line answers it.

    Args:
        name: of the command.
        path: what was audited.
        found: the audit.
    """
    answer = asdict(found)
    return document(name, path=f"{path}", file=answer["files"][0], **answer)


def _audit(args: argparse.Namespace) -> tuple[Document, int]:
    from tpu_systems_audit.traces import NOT_CLEAN, audit

    hosts = None if args.hosts is None else whole(args.hosts, "--hosts", most=MOST_HOSTS)
    found = audit(args.path, hosts)
    return audit_document("trace audit", args.path, found), int(found.verdict == NOT_CLEAN)


def _show(args: argparse.Namespace) -> tuple[Document, int]:
    from tpu_systems_audit.course import standalone, timeline_plot
    from tpu_systems_audit.traces import audit, timelines

    shown, found = timelines(args.path), audit(args.path)
    if args.svg:
        write_new(args.svg, "--svg", standalone(timeline_plot(shown[0], found.findings)))
    answer = document(
        "trace show",
        path=f"{args.path}",
        verdict=found.verdict,
        findings=[asdict(each) for each in found.findings],
        svg=f"{args.svg}" if args.svg else None,
        timelines=[asdict(each) for each in shown],
    )
    return answer, 0


def _capture(args: argparse.Namespace) -> tuple[Document, int]:
    steps = whole(args.steps, "--steps", most=MOST_STEPS)
    needed("jax")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tpu_systems_audit.traces import NOT_CLEAN, audit, capture, matmul_step

    step, argument = named_function(args.step, "--step")() if args.step else matmul_step()
    path = capture(step, argument, args.directory, steps)
    found = audit(path)
    return audit_document("trace capture", path, found), int(found.verdict == NOT_CLEAN)
