"""The command line, ``tpu-audit``: text in, one document out, as a table or as JSON.

Exit status: 0 done, 1 the answer is no, 2 the input was wrong (one line on stderr, nothing on stdout).
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from tpu_systems_audit import __version__
from tpu_systems_audit.cli.base import Document, Parser
from tpu_systems_audit.units import InputError

# The module that adds each command. Only that of the command asked for is imported: the others' rooms cost time.
FAMILIES = {
    "generations": "chips",
    "roofline": "chips",
    "memory": "sizing",
    "plan": "sizing",
    "precision": "precision",
    "trace": "traces",
    "receipt": "receipts",
}
# The module with the words for a family's documents.
REPORTS = {"chips": "report", "sizing": "report", "precision": "report_precision", "traces": "report_traces",
           "receipts": "report_receipts"}  # fmt: skip


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Build the parser; the site's reference page is made from it.

    Args:
        words: of the command line. Where they begin with a command, only its family is added; else all are.

    >>> build_parser().prog
    'tpu-audit'
    """
    parser = Parser(prog="tpu-audit", description="Size TPU memory, bound precision error and audit traces.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for family in _families(words):
        import_module(f"tpu_systems_audit.cli.{family}").add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tpu-audit`` and return its exit status.

    Args:
        argv: the arguments; those of the process when None.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        args = build_parser(words).parse_args(words)
        answer, status = args.run(args)
    except InputError as error:
        print(f"tpu-audit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    try:
        print(_json(answer) if args.json else _text(answer), flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(status)


def _families(words: Sequence[str]) -> list[str]:
    if list(words) == ["--version"]:
        return []
    return [FAMILIES[words[0]]] if words and words[0] in FAMILIES else list(dict.fromkeys(FAMILIES.values()))


# What prints an answer is imported when one is there: the start is short, and a refusal needs neither.
def _json(answer: Document) -> str:
    import json

    return json.dumps(answer, indent=1, allow_nan=False)


def _text(answer: Document) -> str:
    command = str(answer["command"])
    report = import_module(f"tpu_systems_audit.cli.{REPORTS[FAMILIES[command.split()[0]]]}")
    return "\n".join(report.RENDERERS[command](answer))
