"""Links to what a room names: annotations know the module a class stands in, the reference its room."""

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

PACKAGE = "tpu_systems_audit"


def public(target: str) -> str | None:
    """The name under which the reference shows *target*, or None where that is no other.

    >>> public("tpu_systems_audit.chips.generations.Slice")
    'tpu_systems_audit.chips.Slice'
    """
    package, *path = target.split(".")
    return ".".join([PACKAGE, path[0], *path[2:]]) if package == PACKAGE and len(path) > 2 else None


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.TextElement
) -> nodes.reference | None:
    """Find a name of the package by its room."""
    target = public(node.get("reftarget", ""))
    if target is None or node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], target, node, contnode)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
