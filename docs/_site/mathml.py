"""Formulas as MathML, which browsers typeset themselves: no script, no font and no network is
needed to read them.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displayed(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; a wide one scrolls."""
    self.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer, under the name that ``html_math_renderer`` asks for."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
