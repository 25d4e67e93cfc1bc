"""The site as its maintainers build it: the same bytes each time, never a stale number, no dead link."""

import filecmp
import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PARTS = ("src", "docs", "projects", "benchmarks", "tests", "README.md", "pyproject.toml", "noxfile.py")


def copied(target: Path) -> Path:
    """What the site is built from, in a folder of its own, without anything built before."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("_build", "__pycache__", "work"))
        else:
            shutil.copy(source, target / part)
    return target


def built(project: Path) -> str:
    """Build as ``nox -s docs`` does; gives what Sphinx said."""
    strict = ["-n", "-W", "--keep-going", "-d", "docs/_build/doctrees"]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *strict, "docs", "docs/_build/html"]
    plain = os.environ | {"SOURCE_DATE_EPOCH": "0", "PYTHONPATH": "src"}
    run = subprocess.run(command, cwd=project, env=plain, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def site(project: Path) -> Path:
    return project / "docs/_build/html"


def files(folder: Path) -> list[Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = copied(tmp_path_factory.mktemp("first"))
    built(project)
    return project


def test_two_clean_builds_are_byte_identical_wherever_they_are_made(project, tmp_path):
    other = copied(tmp_path / "somewhere" / "else")
    built(other)
    assert files(site(project)) == files(site(other))
    _, different, unread = filecmp.cmpfiles(site(project), site(other), files(site(project)), shallow=False)
    assert (different, unread) == ([], [])


def test_every_link_and_picture_of_the_site_is_there(project):
    class References(html.parser.HTMLParser):
        def __init__(self, text):
            super().__init__()
            self.anchors, self.targets = set(), set()
            self.feed(text)

        def handle_starttag(self, tag, attributes):
            given = dict(attributes)
            self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
            self.targets |= {given[key] for key in ("href", "src") if given.get(key)}

    pages = {path: References(path.read_text(encoding="utf-8")) for path in site(project).rglob("*.html")}
    assert len(pages) > 10
    dead = []
    for page, references in pages.items():
        for target in references.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            found = path.is_file() and (
                path not in pages or not parts.fragment or parts.fragment in pages[path].anchors
            )
            if not found:
                dead.append(f"{page.name}: {target}")
    assert dead == []


def test_no_two_elements_of_a_page_share_an_id(project):
    # A figure's clip paths and gradients have ids too: two figures of one name would draw each other's parts.
    for page in site(project).rglob("*.html"):
        ids = re.findall(r'\sid="([^"]+)"', page.read_text(encoding="utf-8"))
        assert {each for each in ids if ids.count(each) > 1} == set(), page.name


def test_every_picture_of_the_site_says_what_it_shows(project):
    drawn = 0
    for page in site(project).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<img(?![^>]*\salt="[^"]+)[^>]*>', text) == [], page.name
        figures = re.findall(r'<figure class="course-figure">(<div[^>]*>)', text)
        assert all(re.search(r'role="img"[^>]*\saria-label="[^"]{40,}"', each) for each in figures), page.name
        drawn += len(figures)
    assert drawn >= 3


def test_an_unchanged_project_has_no_page_read_again(project):
    assert "0 added, 0 changed, 0 removed" in built(project)


def test_a_number_edited_in_the_package_is_new_on_every_page_that_shows_it(project):
    guide, generations = site(project) / "phase-21.html", site(project) / "reference/generations.html"
    data = project / "src/tpu_systems_audit/chips/generations.toml"
    before = data.read_text(encoding="utf-8")
    assert "240.5" in guide.read_text(encoding="utf-8")
    assert before.count("value = 197,") == 1
    data.write_text(before.replace("value = 197,", "value = 394,"), encoding="utf-8")
    try:
        built(project)
    finally:
        data.write_text(before, encoding="utf-8")
    for page in (guide, generations):
        text = page.read_text(encoding="utf-8")
        assert "481.1" in text and "240.5" not in text, page.name
