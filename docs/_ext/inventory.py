"""Inventories for links to other documentation, from a few lines of text, so that no build asks the network."""

import zlib
from pathlib import Path


def compile_inventory(source: Path, target: Path) -> None:
    """Write the inventory that Sphinx reads from the list that people read: a name, its role, its page on each line."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(inventory(source.stem, source.read_text(encoding="utf-8")))


def inventory(project: str, names: str) -> bytes:
    """Write *names* in version 2 of Sphinx's format.

    >>> inventory("python", "int py:class library/functions.html").splitlines()[1]
    b'# Project: python'
    """
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    lines = [f"{name} {role} 1 {page} -\n" for name, role, page in map(str.split, names.splitlines())]
    return head.encode() + zlib.compress("".join(lines).encode(), 9)
