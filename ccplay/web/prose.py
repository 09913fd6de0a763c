"""The Markdown of a lesson as data: nested lists of allowed elements, for a page to draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from markdown_it.token import Token

from ccplay.lesson.words import markdown

ELEMENTS = frozenset(
    {"p", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "h3", "hr", "br"}
)
"""Elements that a lesson may contain; of others the text is kept."""

DEEPEST = 20
"""Largest depth of nested elements; of deeper ones the text is kept."""

_NAMES = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "heading": "h3",
    "softbreak": " ",
    "hardbreak": "br",
    "code_inline": "code",
    "fence": "pre",
    "code_block": "pre",
}

_parser = markdown()


def blocks(lines: Sequence[str]) -> list[object]:
    """Return Markdown as a list of texts and elements; an element is a list: name, then content."""
    # Open elements, outermost first. An omitted element is represented by its parent.
    found: list[list[object]] = [[]]
    for token in _tokens(_parser.parse("\n".join(lines))):
        kind = token.type.removesuffix("_open")
        name = _NAMES.get(kind, kind)
        inner = found[-1]
        if token.nesting < 0:
            found.pop()
        elif name not in ELEMENTS or token.hidden or len(found) > DEEPEST:
            if token.nesting:
                found.append(inner)
            else:
                _add(inner, " " if name == " " else token.content)
        else:
            element: list[object] = [name]
            inner.append(element)
            if token.nesting:
                found.append(element)
            else:
                _add(element, token.content.rstrip("\n"))
    return found[0]


def _tokens(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens of blocks, with those of their inline text in place."""
    for token in tokens:
        yield from (token.children or ()) if token.type == "inline" else (token,)


def _add(element: list[object], text: str) -> None:
    """Append a text to the content of an element, whose first item is its name."""
    if len(element) > 1 and isinstance(element[-1], str):
        element[-1] += text
    elif text:
        element.append(text)
