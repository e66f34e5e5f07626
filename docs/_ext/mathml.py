"""Formulas as MathML, written at build time: the pages need no script and no network to show them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import wrap_displaymath

_LOGGER = logging.getLogger(__name__)


def _convert(node: nodes.Element, *, block: bool) -> str:
    """Return the formula of a node as MathML; a formula that cannot be read is a warning that names its place."""
    formula = node.astext()
    if block and "\\\\" in formula and "\\begin" not in formula:
        formula = wrap_displaymath(formula, None, numbering=False)
    try:
        return str(latex2mathml.tex2mathml(formula, as_block=block))
    except Exception as error:  # docutils raises MathError, but also IndexError and KeyError on unknown input
        _LOGGER.warning("formula %r: %s", formula, error, location=node)
        return f"<code>{formula}</code>"


def _visit_inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_convert(node, block=False))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="formula">{_convert(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", inline_renderers=(_visit_inline, None), block_renderers=(_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
