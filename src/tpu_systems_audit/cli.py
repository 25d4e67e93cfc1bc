"""The command line, ``tpu-audit``: text in, one document out, as a table or as JSON.

Exit status: 0 done, 1 the answer is no, 2 the input was wrong (one line on stderr, nothing on stdout).
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from tpu_systems_audit import __version__, cli_sizing
from tpu_systems_audit.cli_base import Parser
from tpu_systems_audit.report import text
from tpu_systems_audit.units import InputError


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; the site's reference page is made from it.

    >>> build_parser().prog
    'tpu-audit'
    """
    parser = Parser(prog="tpu-audit", description="Size TPU memory and find what bounds a kernel.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    cli_sizing.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``tpu-audit`` and return its exit status.

    Args:
        argv: the arguments; those of the process when None.
    """
    try:
        args = build_parser().parse_args(argv)
        answer, status = args.run(args)
    except InputError as error:
        print(f"tpu-audit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    try:
        print(json.dumps(answer, indent=1, allow_nan=False) if args.json else text(answer), flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
