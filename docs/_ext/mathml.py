"""Math as MathML: rendered while the site builds, so pages need no script to show it."""

import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)


BRACES = "\u23de\u23df"  # over, under


def tidy(mathml: str) -> str:
    """Mend what browsers show badly: labels of braces, and space around named operators."""
    root = ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", mathml))
    for each in root.iter():
        if each.tag in ("msub", "msup") and each[0].tag in ("munder", "mover") and each[0][-1].text in BRACES:
            each.tag = each[0].tag
        if each.tag == "mo" and (each.text or "").isalpha():
            each.attrib.update(lspace="0", rspace="0")
        each.tail = (each.tail or "").strip()
        each.text = (each.text or "") if each.tag in ("mtext", "mo", "mi", "mn") else (each.text or "").strip()
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def render(node: nodes.Element, block: bool) -> str:
    """MathML for one formula; a formula it cannot read is a warning, so ``-W`` fails."""
    source = node.astext()
    if block and ("\\\\" in source or "&" in source) and "\\begin" not in source:
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    try:
        return tidy(tex2mathml(source, as_block=block))
    except MathError as error:
        logger.warning("math: %s in %r", error, source, location=node, type="math")
        return f"<code>{source}</code>"


def visit_inline(self, node: nodes.math) -> None:
    self.body.append(render(node, block=False))
    raise nodes.SkipNode


def visit_block(self, node: nodes.math_block) -> None:
    # Sphinx has already written the equation's own target. What may scroll must be reachable by key.
    self.body.append('<div class="course-math" tabindex="0" role="group" aria-label="formula">')
    self.body.append(render(node, block=True))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})</span>')
        self.add_permalink_ref(node, "Link to this equation")
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
