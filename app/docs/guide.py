"""Pages of the guide as HTML, their headings, and a search among these."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib import resources
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.docs.algorithm_page import algorithm_page
from app.ml.catalogue import catalogue

ORDER = (
    "quick-start", "datasets", "choosing", "train", "reports", "predict", "decisions-of-a-classifier", "search",
    "jobs", "operation", "settings", "performance", "invariants", "design-decisions", "extending", "glossary",
)  # fmt: skip
"""Pages in the order in which they are read."""
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


class Heading(NamedTuple):
    level: int
    text: str
    anchor: str


class Page(NamedTuple):
    """A page: its name in the address, its title, its headings and its body as HTML."""

    name: str
    title: str
    headings: tuple[Heading, ...]
    html: str


@cache
def pages() -> Mapping[str, Page]:
    """All pages by name: those written by hand in reading order, then one for each algorithm."""
    folder = resources.files(__package__)
    written = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in ORDER}
    generated = {f"algorithms/{entry.name}": algorithm_page(entry) for entry in catalogue().values()}
    return MappingProxyType({name: rendered(name, text) for name, text in (written | generated).items()})


def rendered(name: str, text: str) -> Page:
    """Markdown as a page; each heading gets an anchor made of its words."""
    tokens = _MARKDOWN.parse(re.sub(r"<!--.*?-->\n", "", text))  # marks of tables that a test generates
    headings = tuple(_headings(tokens))
    return Page(name, headings[0].text, headings, _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _headings(tokens: list[Token]) -> Iterator[Heading]:
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            text = inline.content.replace("`", "")
            anchor = re.sub(r"\W+", "-", text.lower()).strip("-")
            opening.attrSet("id", anchor)
            yield Heading(int(opening.tag[1]), text, anchor)


def search(words: str) -> Iterator[tuple[Page, Heading]]:
    """Headings that contain all of the words, in reading order; upper and lower case are alike."""
    wanted = words.lower().split()
    for page in pages().values():
        for heading in page.headings:
            if wanted and all(word in f"{page.title} {heading.text}".lower() for word in wanted):
                yield page, heading


def found(words: str) -> str:
    """The result of a search as HTML."""
    hits = [
        f'<li><a href="/docs/guide/{page.name}#{heading.anchor}">{escape(heading.text)}</a>'
        f" <small>{escape(page.title)}</small></li>"
        for page, heading in search(words)
    ]
    return f"<h1>{len(hits)} headings with “{escape(words)}”</h1><ul>{''.join(hits)}</ul>"
