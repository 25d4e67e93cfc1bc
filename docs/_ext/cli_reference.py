"""The ``cli-reference`` directive: the command line's own parser, written out as sections of a page."""

import argparse
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata


def markdown(parser: argparse.ArgumentParser, level: int = 2) -> str:
    r"""Write a section for each command of *parser* that runs something.

    >>> parser = argparse.ArgumentParser(prog="tool")
    >>> run = parser.add_subparsers().add_parser("run", description="Run it.", add_help=False)
    >>> _ = run.add_argument("--on", metavar="GEN", required=True, help="a | b")
    >>> print(markdown(parser))
    ## tool run
    <BLANKLINE>
    Run it.
    <BLANKLINE>
    ```text
    tool run --on GEN
    ```
    <BLANKLINE>
    | argument | meaning |
    | --- | --- |
    | `--on GEN` | a \| b |
    """
    return "\n\n".join(section(command, level) for command in commands(parser))


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers that answer something, in the order in which they were added."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below or parser.get_default("run"):
        yield parser
    for action in below:
        for child in dict.fromkeys(action.choices.values()):
            yield from commands(child)


def section(parser: argparse.ArgumentParser, level: int) -> str:
    """Write one command: what it does, how it is called, what each argument means, and which exclude each other."""
    shown = [
        action
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    rows = [f"| `{written(action)}` | {(action.help or '').replace('|', chr(92) + '|')} |" for action in shown]
    parts = [
        f"{'#' * level} {parser.prog}",
        parser.description or "",
        f"```text\n{usage(parser, shown)}\n```",
        "\n".join(["| argument | meaning |", "| --- | --- |", *rows]),
    ]
    for group in parser._mutually_exclusive_groups:
        names = " and ".join(f"`{action.option_strings[0]}`" for action in group._group_actions)
        parts.append(f"{names} exclude each other{'; one of them is needed' if group.required else ''}.")
    return "\n\n".join(parts)


def usage(parser: argparse.ArgumentParser, shown: list[argparse.Action]) -> str:
    """Write how a command is called; argparse's own wording and wrapping change with Python's version."""
    needed = [written(action) for action in shown if action.option_strings and action.required]
    given = [written(action) for action in shown if not action.option_strings]
    rest = any(action.option_strings and not action.required for action in shown)
    return " ".join([parser.prog, *given, *needed, *(["[options]"] if rest else [])])


def written(action: argparse.Action) -> str:
    """Write one argument as it is typed."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return f"[{name}…]" if action.nargs == "*" else name
    flags = ", ".join(action.option_strings)
    return flags if action.nargs == 0 else f"{flags} {name}"


class CliReference(SphinxDirective):
    """Every command of ``tpu-audit``."""

    def run(self) -> list[nodes.Node]:
        """Write the parser that the command line itself uses."""
        from tpu_systems_audit.cli import build_parser

        return self.parse_text_to_nodes(markdown(build_parser()), allow_section_headings=True)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("cli-reference", CliReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
