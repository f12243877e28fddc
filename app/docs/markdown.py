"""Markdown to HTML: headings get anchors, cells of tables the name of their column, which a phone shows beside them."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKS = re.compile(r"<!--.*?-->\n")
"""Marks of tables that a test generates."""


class Heading(NamedTuple):
    level: int
    text: str
    anchor: str


def rendered(text: str) -> tuple[tuple[Heading, ...], str]:
    """The headings of a text, and the text as HTML."""
    tokens = _MARKDOWN.parse(_MARKS.sub("", text))
    headings = tuple(_headings(tokens))
    _label_cells(tokens)
    return headings, _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})


def _headings(tokens: Sequence[Token]) -> Iterator[Heading]:
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            text = inline.content.replace("`", "")
            anchor = re.sub(r"\W+", "-", text.lower()).strip("-")
            opening.attrSet("id", anchor)
            yield Heading(int(opening.tag[1]), text, anchor)


def _label_cells(tokens: Sequence[Token]) -> None:
    """Each cell of a table gets the name of its column as `data-label`."""
    names: list[str] = []
    column = 0
    for opening, inline in pairwise(tokens):
        if opening.type == "table_open":
            names = []
        elif opening.type == "tr_open":
            column = 0
        elif opening.type == "th_open":
            names.append(inline.content.replace("`", ""))
        elif opening.type == "td_open":
            opening.attrSet("data-label", names[column])
            column += 1
