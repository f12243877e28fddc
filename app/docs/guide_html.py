"""The guide as whole HTML pages: a search, the page or what the search found, and the contents."""

from collections.abc import Iterable
from html import escape

from app.docs.frame import framed
from app.docs.guide import ALGORITHMS, CONTENTS, ORDER, Page, pages, search

ROOT = "/docs/guide"
_SEARCH = (
    f'<a href="/docs">API</a> <form action="{ROOT}" role=search><input name=q type=search maxlength=100 value="{{}}"'
    ' placeholder="Search headings" aria-label="Search headings"></form>'
)
"""Links and search above a page that is served, for the words that were searched."""


def guide_page(page: Page, *, searchable: bool = True) -> str:
    """A page of the guide with the contents beside it, and above it, where it is served, the search."""
    return _whole(
        page.title, page.html + _neighbours(page.name), page.name, above=_SEARCH.format("") if searchable else ""
    )


def search_page(words: str) -> str:
    """Links to all headings that contain all of the words."""
    hits = [
        f"<li>{_link(page.name, heading.text, heading.anchor)} <small>{escape(page.title)}</small>"
        for page, heading in search(words)
    ]
    count = f"{len(hits)} heading{'' if len(hits) == 1 else 's'}"
    return _whole(
        f"Search: {words}",
        f"<h1>{count} with “{escape(words)}”</h1><ul>{''.join(hits)}</ul>",
        above=_SEARCH.format(escape(words)),
    )


def _whole(title: str, body: str, current: str = "", *, above: str) -> str:
    return framed(
        f"{title} · Valiant",
        f'<header><a class=home href="{ROOT}">Valiant</a> <a class=menu href="#contents">Contents</a> {above}</header>'
        f"<main><article>{body}</article></main>"
        f'<nav id=contents aria-label="Contents">{_contents(current)}</nav>',
    )


def _contents(current: str) -> str:
    groups = "".join(f"<h2>{group}</h2>{_list(names, current)}" for group, names in CONTENTS.items())
    algorithms = [name for name in pages() if name.startswith(ALGORITHMS)]
    opened = " open" if current in algorithms else ""
    return f"{groups}<details{opened}><summary>Algorithms</summary>{_list(algorithms, current)}</details>"


def _list(names: Iterable[str], current: str) -> str:
    return f"<ul>{''.join(f'<li>{_link(name, current=name == current)}' for name in names)}</ul>"


def _neighbours(name: str) -> str:
    """Links to the pages before and after this one in reading order."""
    if name not in ORDER:
        return ""
    place = ORDER.index(name)
    before = f"← {_link(ORDER[place - 1])}" if place else ""
    after = f"{_link(ORDER[place + 1])} →" if place + 1 < len(ORDER) else ""
    return f"<p class=neighbours><span>{before}</span><span>{after}</span></p>"


def _link(name: str, text: str | None = None, anchor: str = "", *, current: bool = False) -> str:
    address = f"{ROOT}/{name}{'#' if anchor else ''}{anchor}"
    mark = " aria-current=page" if current else ""
    return f'<a href="{address}"{mark}>{escape(text or pages()[name].title)}</a>'
