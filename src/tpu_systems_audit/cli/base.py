"""What every command of ``tpu-audit`` shares: how it is added, how it refuses, and how its answer is wrapped."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from tpu_systems_audit import __version__
from tpu_systems_audit.units import InputError, shown

TYPE_CHECKING = False  # type checkers take it for true; importing it would import typing, a tenth of the start
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

SCHEMA = 1

Document = dict[str, object]
Commands = argparse._SubParsersAction
Run = Callable[[argparse.Namespace], tuple[Document, int]]


class Parser(argparse.ArgumentParser):
    """An argument parser whose every complaint is one line."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        # Newer Pythons take -7e9 for a value, older ones for an unknown flag; only as a value can it be refused well.
        self._negative_number_matcher = re.compile(r"-[\d.]")

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise InputError(" ".join(message.split()))


def command(commands: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    """Add a command, its summary shown in the list of commands and on its own page."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=summary)
    return parser


def finish(parser: argparse.ArgumentParser, run: Run) -> None:
    """Give a command its ``--json`` and the function that answers it: a document and the exit status."""
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(run=run)


def write_new(path: Path, flag: str, text: str) -> None:
    """Write a file that is not there yet.

    Args:
        path: of the file.
        flag: what carries the path, for the message.
        text: its content.

    Raises:
        InputError: when something is there already, or it cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{flag}: {shown(path)} is there already and was kept; a new name is right") from None
    except OSError as error:
        raise InputError(f"{flag}: {shown(path)}: {error.strerror}; a file that can be written is right") from None


def document(command: str, **answer: object) -> Document:
    """Wrap an answer with the schema's number and the package's version.

    >>> document("roofline", bound="hbm")["schema"]
    1
    """
    return {"schema": SCHEMA, "version": __version__, "command": command, **answer}
