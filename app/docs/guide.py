"""Pages of the guide, and a search among their headings."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

from app.docs.algorithm_page import algorithm_page
from app.docs.markdown import Heading, rendered
from app.ml.catalogue.algorithm_files import every_entry

CONTENTS: Mapping[str, tuple[str, ...]] = {
    "Use": (
        *("quick-start", "console", "client", "datasets", "choosing", "train", "reports", "predict"),
        *("why-this-prediction", "insurance", "decisions-of-a-classifier", "best-model", "search", "import", "export"),
        *("kernels-and-networks", "which-columns-matter", "decisions-on-a-model", "online", "monitoring", "jobs"),
    ),
    "Run": (
        *("operation", "kubernetes", "backup", "postgres-upgrade", "logs", "serve", "security", "settings"),
        "performance",
    ),
    "Understand": ("guarantees", "coverage", "invariants", "design-decisions", "extending", "glossary"),
}
"""Names of the pages under their headings, in the order in which they are read."""
ORDER = tuple(name for names in CONTENTS.values() for name in names)
PICTURE = re.compile(r"[a-z-]+\.png")
ALGORITHMS = "algorithms/"
"""Prefix of the name of an algorithm's page."""


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
    generated = {ALGORITHMS + entry.name: algorithm_page(entry) for entry in every_entry().values()}
    return MappingProxyType({name: _page(name, text) for name, text in (written | generated).items()})


def _page(name: str, text: str) -> Page:
    headings, html = rendered(text)
    return Page(name, headings[0].text, headings, html)


def picture(name: str) -> bytes | None:
    """A picture of the guide (PNG); None for any other name."""
    place = resources.files(__package__) / "pictures" / name
    return place.read_bytes() if PICTURE.fullmatch(name) and place.is_file() else None


def search(words: str) -> Iterator[tuple[Page, Heading]]:
    """Headings that contain all of the words, in reading order; upper and lower case are alike."""
    wanted = words.lower().split()
    for page in pages().values():
        for heading in page.headings:
            if wanted and all(word in f"{page.title} {heading.text}".lower() for word in wanted):
                yield page, heading
