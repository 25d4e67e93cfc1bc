"""The package has floors: a module imports its own or a lower one, and sizing runs on the standard library alone."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGE = "tpu_systems_audit"

# A star stands for the parts of a module that was split.
FLOORS = {
    0: ("__init__",),  # the version; imports nothing
    1: ("units", "generations", "transformer", "shapes", "config", "families", "optimizers"),
    2: ("roofline", "memory", "activations", "checker*", "precision", "trace*"),
    3: ("plan", "capacity", "receipt", "proof", "explain"),
    4: ("report", "documents", "plots", "stage", "portfolio"),
    5: ("cli", "cli_base", "cli_sizing", "site"),
}

# These start in milliseconds under a bare Python, and so must whatever they import.
SIZING = (*FLOORS[1], "roofline", "memory", "activations", "checker*", "plan", "capacity", "explain",
          "documents", "report", "cli_base", "cli_sizing")  # fmt: skip


def sources() -> dict[str, str]:
    """The text of every module, by its name within the package."""
    top = SRC / PACKAGE
    return {
        ".".join(path.relative_to(top).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in sorted(top.rglob("*.py"))
    }


def floor(module: str) -> int | None:
    """The floor on which *module* stands, None where it has none."""
    found = [level for level, names in FLOORS.items() if any(fnmatchcase(module, name) for name in names)]
    return found[0] if len(found) == 1 else None


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that *tree* imports anywhere, in full; of the package, each name that may be a module of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, (PACKAGE if node.level else "", node.module)))
            yield from (f"{base}.{name.name}" for name in node.names) if base == PACKAGE else (base,)


def inner(source: str, modules: frozenset[str]) -> set[str]:
    """The modules of the package that *source* imports; ``__init__`` for what only the package itself holds."""
    within = (
        name.removeprefix(f"{PACKAGE}.") for name in imported(ast.parse(source)) if f"{name}.".startswith(f"{PACKAGE}.")
    )
    return {name if name in modules else "__init__" for name in within}


def outer(tree: ast.AST) -> set[str]:
    """What *tree* imports that is neither the package nor the standard library."""
    tops = {name.partition(".")[0] for name in imported(tree)}
    return tops - {PACKAGE} - sys.stdlib_module_names


def at_import(source: str) -> ast.Module:
    """The part of a module that runs when it is imported: no function body, nothing that only a type checker reads."""

    class Stripped(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                return None
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                return node.orelse
            return self.generic_visit(node)

    tree = Stripped().visit(ast.parse(source))
    assert isinstance(tree, ast.Module)
    return tree


def too_high(module: str, others: set[str]) -> set[str]:
    """Of *others*, those on a floor above that of *module*."""
    own = floor(module)
    assert own is not None
    return {other for other in others if (floor(other) or 0) > own}


SOURCES = sources()
GRAPH = {module: inner(text, frozenset(SOURCES)) for module, text in SOURCES.items()}


def closure(names: tuple[str, ...]) -> set[str]:
    """The modules that match *names*, and all of the package that they import."""
    found: set[str] = set()
    waiting = [module for module in GRAPH if any(fnmatchcase(module, name) for name in names)]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += GRAPH[module]
    return found


@pytest.mark.parametrize("module", GRAPH)
def test_every_module_has_a_floor(module: str) -> None:
    assert floor(module) is not None, f"say in FLOORS where {module} stands"


@pytest.mark.parametrize("module", GRAPH)
def test_a_module_imports_its_own_floor_or_a_lower_one(module: str) -> None:
    assert too_high(module, GRAPH[module]) == set()


def test_no_module_imports_itself_over_others() -> None:
    tuple(TopologicalSorter(GRAPH).static_order())


@pytest.mark.parametrize("module", sorted(closure(SIZING)))
def test_sizing_uses_only_the_standard_library(module: str) -> None:
    assert outer(ast.parse(SOURCES[module])) == set()


def test_plots_import_matplotlib_only_when_they_draw() -> None:
    assert outer(ast.parse(SOURCES["plots"])) == {"matplotlib"}
    assert outer(at_import(SOURCES["plots"])) == set()


LOADS = f"""
import sys
sys.path.insert(0, {str(SRC)!r})
before = set(sys.modules)
import {PACKAGE}.cli
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""


@pytest.mark.parametrize("flags", [("-S", "-E"), ("-E",)], ids=["bare", "with packages"])
def test_the_command_line_starts_without_any_package(flags: tuple[str, ...]) -> None:
    """Bare, a package cannot be imported; with them, none may be tried either."""
    done = subprocess.run([sys.executable, *flags, "-c", LOADS], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert PACKAGE in loaded
    assert loaded - {PACKAGE} <= sys.stdlib_module_names
    assert loaded.isdisjoint({"numpy", "jax", "matplotlib"})


# The rules themselves find what they are for


def test_an_import_from_above_is_found_wherever_it_stands() -> None:
    modules = frozenset({"units", "plan", "report"})
    for source in (
        "import tpu_systems_audit.report",
        "from tpu_systems_audit import report",
        "from tpu_systems_audit.report import text",
        "from . import report",
        "from .report import text",
        "def late():\n    from tpu_systems_audit.report import text",
    ):
        assert inner(source, modules) == {"report"}
        assert too_high("plan", inner(source, modules)) == {"report"}
    assert too_high("plan", inner("from tpu_systems_audit.units import GIB, gib", modules)) == set()
    assert inner("from tpu_systems_audit import __version__", modules) == {"__init__"}


def test_a_module_that_no_floor_names_has_none() -> None:
    assert floor("utils") is None
    assert floor("checker_report") == floor("checker")


def test_a_cycle_is_found() -> None:
    with pytest.raises(CycleError):
        tuple(TopologicalSorter({"plan": {"capacity"}, "capacity": {"plan"}}).static_order())


def test_a_package_is_found_at_import_unless_it_waits_for_a_call() -> None:
    assert outer(at_import("try:\n    import numpy.linalg\nexcept ImportError:\n    pass")) == {"numpy"}
    assert outer(at_import("def draw():\n    import matplotlib")) == set()
    assert outer(at_import("if TYPE_CHECKING:\n    import matplotlib\nelse:\n    import jax")) == {"jax"}
    assert outer(ast.parse("def draw():\n    from jax import numpy")) == {"jax"}
