"""The Markdown of a lesson as data: nested lists of known elements, of which a page makes nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

Node: TypeAlias = "str | list[object]"
"""A text, or the name of an element and what is in it."""

ELEMENTS = frozenset(
    {"p", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "h3", "hr", "br"}
)
"""All that a lesson can become. Of links and pictures, which are not among them, text is left."""

DEEPEST = 12
"""Elements within each other; what is deeper is left out."""

_NAMES = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "heading": "h3",
}

_parser = MarkdownIt("commonmark", {"html": False})


def blocks(lines: Sequence[str]) -> list[Node]:
    """Return what these lines of Markdown are."""
    return list(_nodes(SyntaxTreeNode(_parser.parse("\n".join(lines))).children, DEEPEST))


def _nodes(children: Iterable[SyntaxTreeNode], deepest: int) -> Iterator[Node]:
    for child in children:
        if child.type in ("text", "html_block", "html_inline"):
            yield child.content
        elif child.type == "softbreak":
            yield " "
        elif child.type == "hardbreak":
            yield ["br"]
        elif child.type == "code_inline":
            yield ["code", child.content]
        elif child.type in ("fence", "code_block"):
            yield ["pre", child.content.rstrip("\n")]
        elif deepest:
            inside = list(_nodes(child.children, deepest - 1))
            name = _NAMES.get(child.type, child.type)
            # Of what is no known element, such as a link, its text is left; and the items of a list
            # without empty lines are no paragraphs.
            yield from [[name, *inside]] if name in ELEMENTS and not child.hidden else inside
