"""The site's own parts: the ``predict`` directive, and what keeps pages fresh and accessible."""

import hashlib
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

ROOT = Path(__file__).parents[2]
READ_BY_PAGES = (
    *("src", "projects", "tests/cases", "benchmarks/results"),
    *("docs/_ext", "docs/_static", "docs/_kernels", "docs/premises.toml"),
)


class Prediction(nodes.General, nodes.Element):
    """A question and the reasoning to compare with."""


class Reveal(nodes.General, nodes.Element):
    """What stays shut until the reader opens it."""


class Predict(SphinxDirective):
    """A question to answer before opening the reasoning; works without any script."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"question": directives.unchanged_required, "reveal": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Build the question and its shut answer."""
        self.assert_has_content()
        if "question" not in self.options:
            raise self.error("predict: a :question: is needed")
        asked, messages = self.parse_inline(self.options["question"])
        box = Prediction()
        box["names"].append(f"predict-{self.arguments[0]}")  # a second one of this name on the page is an error
        self.state.document.note_explicit_target(box, box)
        box += nodes.paragraph("", "", *asked, classes=["course-question"])
        box += Reveal("", *self.parse_content_to_nodes(), summary=self.options.get("reveal", "Compare your reasoning"))
        return [box, *messages]


def open_prediction(self: HTML5Translator, node: Prediction) -> None:
    self.body.append(self.starttag(node, "div", CLASS="course-predict"))


def close_prediction(self: HTML5Translator, node: Prediction) -> None:
    self.body.append("</div>\n")


def open_reveal(self: HTML5Translator, node: Reveal) -> None:
    self.body.append(f'<details class="course-reveal"><summary>{escape(node["summary"])}</summary>\n')


def close_reveal(self: HTML5Translator, node: Reveal) -> None:
    self.body.append("</details>\n")


def digest() -> str:
    """Sum up every file that a page may show without naming it."""
    total = hashlib.sha256()
    for top in READ_BY_PAGES:
        path = ROOT / top
        for each in sorted(path.rglob("*") if path.is_dir() else [path]):
            if each.is_file() and not {"__pycache__", "work"} & set(each.relative_to(ROOT).parts):
                total.update(f"{each.relative_to(ROOT)} {each.stat().st_size}\n".encode() + each.read_bytes())
    return total.hexdigest()


def stale_pages(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> set[str]:
    """Every page, when what pages compute with is no longer what the last build had."""
    before, env.course_digest = getattr(env, "course_digest", None), digest()
    return set(env.found_docs) if before != env.course_digest else set()


def name_heading_levels(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """Give the sidebar's captions the level that their heading role needs."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_node(Prediction, html=(open_prediction, close_prediction))
    app.add_node(Reveal, html=(open_reveal, close_reveal))
    app.add_directive("predict", Predict)
    app.connect("env-get-outdated", stale_pages)
    app.connect("html-page-context", name_heading_levels, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
