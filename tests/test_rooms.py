"""The package has rooms: one folder, one question; each imports from the rooms that the table names and no others."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
PACKAGE = "tpu_systems_audit"

# What each room may import. Everything may import the package's version.
ROOMS: dict[str, set[str]] = {
    "units": set(),
    "models": {"units"},
    "chips": {"units"},
    "checker": {"units"},
    "sizing": {"chips", "models", "units"},
    "precision": {"units"},
    "traces": {"units"},
    "receipts": {"traces", "units"},
    "course": {"chips", "models", "precision", "sizing", "traces", "units"},
    # A command may write a drawing of the pages'.
    "cli": {"chips", "course", "models", "precision", "receipts", "sizing", "traces", "units"},
}
# The rooms that may import a package at all, and which; elsewhere the standard library is enough.
PACKAGES: dict[str, set[str]] = {"course": {"matplotlib", "numpy"}, "precision": {"jax", "ml_dtypes", "numpy"},
                                 "traces": {"jax"}, "receipts": {"cryptography"}}  # fmt: skip
# Those that import it when they are imported themselves; what needs them imports them when it is called.
EARLY: dict[str, set[str]] = {"precision": {"ml_dtypes", "numpy"}}


def sources() -> dict[str, str]:
    """The text of every module, by its name within the package; a room's own by the name of the room."""
    top = SRC / PACKAGE
    return {
        ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in sorted(top.rglob("*.py"))
        if path != top / "__init__.py"
    }


def room(module: str) -> str:
    """The room in which *module* stands."""
    return module.partition(".")[0]


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that *tree* imports anywhere, in full; of the package, each name that may be a room of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, (PACKAGE if node.level else "", node.module)))
            yield from (f"{base}.{name.name}" for name in node.names) if base == PACKAGE else (base,)


def inner(source: str) -> set[str]:
    """What *source* imports of the package, without its own name; dunder names stand for the package itself."""
    return inner_of(ast.parse(source))


def inner_of(tree: ast.AST) -> set[str]:
    """The same for a tree."""
    within = (name.removeprefix(f"{PACKAGE}.") for name in imported(tree) if f"{PACKAGE}." in f"{name}.")
    return {name for name in within if name != PACKAGE and not name.startswith("__")}


def outer(tree: ast.AST) -> set[str]:
    """What *tree* imports that is neither the package nor the standard library."""
    tops = {name.partition(".")[0] for name in imported(tree)}
    return tops - {PACKAGE} - sys.stdlib_module_names


def wrong(module: str, others: set[str], allowed: set[str]) -> list[str]:
    """What is wrong with *others*, the imports of *module*, whose room may import those *allowed*."""
    own = room(module)
    found = []
    for other in sorted(others):
        if room(other) == own:
            if other == own and module != own:
                found.append(f"{other}: within a room, modules import each other by name")
        elif room(other) not in allowed:
            found.append(f"{room(other)}: {own} may not import it; ROOMS says what it may")
        elif "." in other:
            found.append(f"{other}: import from the room, {room(other)}, which names what is public")
    return found


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


SOURCES = sources()


@pytest.mark.parametrize("name", sorted({room(module) for module in SOURCES}))
def test_every_room_stands_in_the_table(name: str) -> None:
    used = {room(other) for module, text in SOURCES.items() if room(module) == name for other in inner(text)} - {name}
    assert name in ROOMS, f"say in ROOMS what it may import; today that would be {name!r}: {used or 'set()'},"


def test_the_table_names_no_room_that_is_not_there_and_has_no_circle() -> None:
    assert set(ROOMS) == {room(module) for module in SOURCES}
    tuple(TopologicalSorter(ROOMS).static_order())


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_imports_from_the_rooms_it_may_and_by_their_public_names(module: str) -> None:
    assert wrong(module, inner(SOURCES[module]), ROOMS.get(room(module), set())) == []


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_imports_no_package_beyond_its_rooms_and_few_before_it_is_called(module: str) -> None:
    assert outer(ast.parse(SOURCES[module])) <= PACKAGES.get(room(module), set())
    assert outer(at_import(SOURCES[module])) <= EARLY.get(room(module), set())


@pytest.mark.parametrize("module", [module for module in SOURCES if room(module) not in EARLY])
def test_a_room_that_needs_packages_is_imported_only_when_called(module: str) -> None:
    early = {room(other) for other in inner_of(at_import(SOURCES[module]))}
    assert early & set(EARLY) == set()


@pytest.mark.parametrize("name", [name for name in ROOMS if name in SOURCES and name != "units"])
def test_a_room_says_its_question_and_names_what_is_public(name: str) -> None:
    tree = ast.parse(SOURCES[name])
    assert len((ast.get_docstring(tree) or "").split()) > 3
    listed = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(listed) == sorted(alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                                    for alias in node.names)  # fmt: skip


LOADS = f"""
import sys
sys.path.insert(0, {str(SRC)!r})
before = set(sys.modules)
from {PACKAGE}.cli import build_parser
build_parser()
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


@pytest.mark.parametrize(
    "source",
    [
        "import tpu_systems_audit.cli",
        "from tpu_systems_audit import cli",
        "from tpu_systems_audit.cli import main",
        "from .. import cli",
        "from ..cli import main",
        "def late():\n    from tpu_systems_audit.cli import main",
    ],
)
def test_an_import_from_a_room_that_is_not_allowed_is_found_wherever_it_stands(source: str) -> None:
    assert inner(source) == {"cli"}
    assert wrong("sizing.plan", {"cli"}, {"units"}) != []


def test_what_is_allowed_is_not_taken_for_wrong() -> None:
    assert wrong("sizing.plan", inner("from tpu_systems_audit.units import GIB, gib"), {"units"}) == []
    assert wrong("sizing.plan", inner("from tpu_systems_audit.sizing.memory import POLICIES"), set()) == []
    assert wrong("sizing", inner("from tpu_systems_audit.sizing.memory import POLICIES"), set()) == []
    assert inner("from tpu_systems_audit import __version__") == set()


def test_a_way_round_a_rooms_public_names_is_found() -> None:
    assert wrong("sizing.plan", {"chips.generations"}, {"chips"}) != []
    assert wrong("sizing.plan", {"sizing"}, {"chips"}) != []


def test_a_circle_is_found() -> None:
    with pytest.raises(CycleError):
        tuple(TopologicalSorter({"sizing": {"chips"}, "chips": {"sizing"}}).static_order())


def test_a_package_is_found_at_import_unless_it_waits_for_a_call() -> None:
    assert outer(at_import("try:\n    import numpy.linalg\nexcept ImportError:\n    pass")) == {"numpy"}
    assert outer(at_import("def draw():\n    import matplotlib")) == set()
    assert outer(at_import("if TYPE_CHECKING:\n    import matplotlib\nelse:\n    import jax")) == {"jax"}
    assert outer(ast.parse("def draw():\n    from jax import numpy")) == {"jax"}
