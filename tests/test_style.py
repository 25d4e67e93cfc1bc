"""The house rules that a machine can hold: documented and typed names, short pieces, nothing private, hashed locks."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tpu_systems_audit"
MODULES = sorted(PACKAGE.rglob("*.py"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

LONGEST_MODULE = 260
LONGEST_FUNCTION = 60
# Each with the reason why it is one piece.
LONGER: dict[str, str] = {}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def public(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The module itself, its public functions and classes, and their public methods."""
    yield "module", tree
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                methods = (each for each in node.body if isinstance(each, Function) and not each.name.startswith("_"))
                yield from ((f"{node.name}.{each.name}", each) for each in methods)


def undocumented(tree: ast.Module) -> list[str]:
    """Public names whose docstring does not start with one sentence on one line."""
    wrong = []
    for name, node in public(tree):
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        if not first.endswith(".") or re.search(r"[.!?] +[A-Z]", first):
            wrong.append(f"{name}: {first!r}")
    return wrong


def untyped(tree: ast.Module) -> list[str]:
    """Arguments and results of public functions and methods that have no annotation."""
    wrong = []
    for name, node in public(tree):
        if not isinstance(node, Function):
            continue
        static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
        given = [*node.args.posonlyargs, *node.args.args][1 if "." in name and not static else 0 :]
        given += [*node.args.kwonlyargs, *filter(None, (node.args.vararg, node.args.kwarg))]
        wrong += [f"{name}({each.arg})" for each in given if each.annotation is None]
        wrong += [f"{name} ->"] if node.returns is None else []
    return wrong


def long_functions(tree: ast.Module) -> list[str]:
    """Functions and methods of more lines than one can see at once, with their lengths."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    return [f"{name}: {length} lines" for name, length in lengths.items() if length > LONGEST_FUNCTION]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_public_name_is_documented_in_one_sentence(path: Path) -> None:
    assert undocumented(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_public_signature_is_typed(path: Path) -> None:
    assert untyped(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_functions_fit_on_a_screen(path: Path) -> None:
    assert long_functions(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_modules_are_short_unless_listed_with_a_reason() -> None:
    lengths = {module_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name for name, lines in lengths.items() if lines > LONGEST_MODULE} == set(LONGER)
    assert all(reason.endswith(".") for reason in LONGER.values())


# What a reader of the repository must not find: where its makers' packages came from, or what their machines look like

_INDEX = "index" + r"[-_]url"
_PRIVATE = "|".join(("work", "tmp", "root", "home"))
FORBIDDEN = {
    "a package registry": re.compile(
        "|".join(re.escape(".".join(parts)) for parts in (
            ("py" "pi", "org"), ("files", "python" "hosted", "org"), ("registry", "npm" "js", "org"),
        )),
        re.IGNORECASE,
    ),
    "the address of a package index": re.compile(r"https?://[^\s\"'<>]+/" + "simple" + r"\b", re.IGNORECASE),
    "a setting of a package index": re.compile(_INDEX + r"(?:\s*[=: ]\s*\S|[\"'],\s*[\"']?\w+:)", re.IGNORECASE),
    "a path of a private machine": re.compile(rf"(?<![\w.*)\]}}~$-])/(?:{_PRIVATE})/"),
}  # fmt: skip
# Tests that need such a string, each with its reason.
NEED_IT: dict[str, str] = {}


def private(text: str) -> list[str]:
    """What *text* holds that is not for others, each with its line."""
    return [
        f"line {number}: {what}: {found[0]!r}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        for found in pattern.finditer(line)
    ]


def tracked() -> list[Path]:
    """Every file that is, or would be, under version control."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode or not done.stdout:
        pytest.skip("not a git checkout, so there is no list of files to read")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_a_registry_or_a_private_path() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): wrong
        for path in tracked()
        if (wrong := private(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert {name: wrong for name, wrong in found.items() if name not in NEED_IT} == {}
    assert set(NEED_IT) <= set(found), "NEED_IT lists a file that no longer needs it"


# What is written in two places says the same


def test_the_reference_has_a_page_for_every_room_and_no_other() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference/package").glob("*.md")}
    index = pages.pop("index")
    rooms = {module_name(path).removeprefix(f"{PACKAGE.name}.") for path in MODULES if path.parent == PACKAGE}
    rooms |= {path.parent.name for path in MODULES if path.stem == "__init__"}
    rooms -= {PACKAGE.name}
    assert set(pages) == rooms == set(re.findall(r"^(\w+)$", index, re.MULTILINE))
    for room, page in pages.items():
        assert f".. automodule:: {PACKAGE.name}.{room}\n" in page


def names(requirements: list[str]) -> set[str]:
    """The packages that *requirements* ask for."""
    return {re.match(r"[\w.-]+", each)[0] for each in requirements}


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [each for extra in project["project"]["optional-dependencies"].values() for each in extra]
    asked = names(extras + project["project"]["dependencies"] + project["build-system"]["requires"])
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, found, section = page.partition("\n## Dependencies")
    assert found, "CONTRIBUTING.md has a section on dependencies"
    given = re.findall(r"^- `([\w.-]+)`: \S+", section, re.MULTILINE)
    assert sorted(given) == sorted(asked - {project["project"]["name"]})


def pins(lock: str) -> list[str]:
    """The requirements of a lock, each on one line with its hashes and without comments."""
    bare = re.sub(r"^\s*#.*\n?", "", lock, flags=re.MULTILINE)
    return [line for line in re.sub(r"\\\n\s*", "", bare).splitlines() if line.strip()]


def unhashed(lock: str) -> list[str]:
    """Lines of a lock that are no pinned version with a sha256 hash."""
    pinned = re.compile(r"[\w.-]+(?:\[[\w,-]+\])?==\S+(?: ; [^#]+?)?(?:\s+--hash=sha256:[0-9a-f]{64})+")
    return [line for line in pins(lock) if not pinned.fullmatch(line.strip())]


def test_the_project_has_locks() -> None:
    assert LOCKS


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_a_lock_holds_a_hash_for_every_pinned_version_and_no_address(path: Path) -> None:
    lock = path.read_text(encoding="utf-8")
    assert pins(lock)
    assert unhashed(lock) == []
    assert "://" not in lock


# The rules themselves find what they are for


def test_a_name_without_its_sentence_or_its_types_is_found() -> None:
    tree = ast.parse(
        '"""Nouns."""\n\ndef f(a, *b, c: int = 0):\n    """Do it"""\n\nclass C:\n    def g(self, x): ...\n'
    )
    assert [each.partition(":")[0] for each in undocumented(tree)] == ["f", "C", "C.g"]
    assert untyped(tree) == ["f(a)", "f(b)", "f ->", "C.g(x)", "C.g ->"]
    good = ast.parse('"""Nouns."""\n\ndef f(a: int) -> int:\n    """Do it.\n\n    More.\n    """\n\ndef _g(x): ...\n')
    assert undocumented(good) == untyped(good) == []
    assert undocumented(ast.parse('"""One sentence. And another."""')) != []


def test_a_long_function_is_found() -> None:
    for lines, found in ((LONGEST_FUNCTION - 1, []), (LONGEST_FUNCTION, [f"f: {LONGEST_FUNCTION + 1} lines"])):
        assert long_functions(ast.parse("def f():\n" + "    pass\n" * lines)) == found


@pytest.mark.parametrize(
    "text",
    [
        "see " + "https://" + "py" + "pi" + ".org/project/x",
        "files" + ".python" + "hosted.org",
        "registry" + ".npm" + "js.org",
        "pip install --index" + "-url=https://example.com/x",
        "--extra-index" + "-url somewhere",
        '"--index' + '-url", "https://example.com/x"',
        "PIP_INDEX" + "_URL=x",
        "https://mirror.example.com/" + "simple/",
        "open('/" + "tmp/x')",
        "cd /" + "work/main",
        "/" + "home/me/x",
        "PATH=/" + "root/bin",
    ],
)
def test_a_private_place_is_found(text: str) -> None:
    assert private(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "projects/tpu-systems-audit/work/model.py",
        "projects/*/work/",
        '"--no-emit-index-url", "--no-emit-find-links"',
        "https://example.com/home/page",
        "is a package index reachable?",
        "https://docs.python.org/3/",
    ],
)
def test_a_public_place_is_not_taken_for_a_private_one(text: str) -> None:
    assert private(text) == []


def test_a_pin_without_a_hash_is_found() -> None:
    digest = "0" * 64
    assert unhashed(f"a==1 \\\n    --hash=sha256:{digest} \\\n    --hash=sha256:{digest}\n    # via b\n") == []
    assert unhashed(f"a==1 ; sys_platform == 'linux' \\\n    --hash=sha256:{digest}\n") == []
    for wrong in ("a==1\n", "a==1 \\\n    --hash=md5:0\n", f"a>=1 --hash=sha256:{digest}\n", "-e .\n", "a @ file\n"):
        assert unhashed(wrong) != []
