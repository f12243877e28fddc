"""Markdown to HTML: headings get anchors, cells of tables the name of their column, which a phone shows beside them.

Links and pictures of the pages are relative, so that the pages can be read where the files lie; in HTML they lead into
the guide.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKS = re.compile(r"<!--.*?-->\n")
"""Marks of tables that a test generates."""
_SERVED = (
    (re.compile(r"([\w-]+)\.md(#.*)?"), r"/docs/guide/\1\2"),
    (re.compile(r"\.\./ml/algorithms/(\w+)\.py"), r"/docs/guide/algorithms/\1"),
    (re.compile(r"pictures/([\w.-]+)"), r"/docs/pictures/\1"),
)
"""Addresses of what lies beside a page: other pages, algorithms, whose pages are made of their files, and pictures."""


class Heading(NamedTuple):
    level: int
    text: str
    anchor: str


def rendered(text: str) -> tuple[tuple[Heading, ...], str]:
    """The headings of a text, and the text as HTML."""
    tokens = _MARKDOWN.parse(_MARKS.sub("", text))
    headings = tuple(_headings(tokens))
    _label_cells(tokens)
    _lead_into_the_guide(tokens)
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


def _lead_into_the_guide(tokens: Sequence[Token]) -> None:
    for token in tokens:
        for name in ("href", "src"):
            if name in token.attrs:
                token.attrSet(name, _served(str(token.attrs[name])))
        _lead_into_the_guide(token.children or ())


def _served(address: str) -> str:
    """The address in the guide of what lies beside a page; any other address as it is.

    >>> [_served(each) for each in ("train.md#seed", "../ml/algorithms/knn.py", "pictures/a.png", "/v1/jobs")]
    ['/docs/guide/train#seed', '/docs/guide/algorithms/knn', '/docs/pictures/a.png', '/v1/jobs']
    """
    for pattern, served in _SERVED:
        if pattern.fullmatch(address):
            return pattern.sub(served, address)
    return address
