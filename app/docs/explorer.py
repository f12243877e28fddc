"""Interactive API reference: Swagger UI from files that lie beside this one, on a page that loads nothing else."""

import gzip
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

from app.docs.frame import digest, policy

VENDORED = resources.files(__package__) / "swagger_ui"
PACKAGE, *_LINES = (VENDORED / "integrity.txt").read_text(encoding="ascii").splitlines()
INTEGRITY = MappingProxyType(dict(line.rsplit(" ", 1) for line in _LINES))
"""The hash of each vendored file, as the attribute `integrity` of HTML takes it."""
FOLDER = f"/docs/swagger-ui-{PACKAGE.split()[1]}"
"""Address of the files. It changes with their version, so that browsers may keep them for ever."""
SCRIPT, STYLE = "swagger-ui-bundle.js", "swagger-ui.css"
MEDIA_TYPES = {SCRIPT: "text/javascript; charset=utf-8", STYLE: "text/css; charset=utf-8"}
START = (resources.files(__package__) / "explorer.js").read_text(encoding="utf-8")
POLICY = policy(
    script=f"'self' {digest(START)}",
    style="'self' 'unsafe-inline'",  # Swagger UI writes style attributes
    img="data:",  # the icons of its style sheet
    connect="'self'",
)
PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    "<title>Valiant API</title>"
    f"<link rel=stylesheet href={FOLDER}/{STYLE} integrity={INTEGRITY[STYLE]}>"
    f"<style>{(resources.files(__package__) / 'explorer.css').read_text(encoding='utf-8')}</style>"
    '<nav><a href="/docs/guide">Guide</a> <a href="/docs/plain">Plain page</a> <a href="/openapi.json">openapi.json</a>'
    '<noscript><p>This page needs JavaScript; the <a href="/docs/plain">plain page</a> does not.</p></noscript></nav>'
    "<main id=explorer></main>"
    f"<script src={FOLDER}/{SCRIPT} integrity={INTEGRITY[SCRIPT]}></script>"
    f"<script>{START}</script>"
)


class Served(NamedTuple):
    """A file that the page loads."""

    media_type: str
    gzipped: bytes


@cache
def file(name: str) -> Served | None:
    """A file that the page loads, compressed once per process: a third of its size; None for any other name."""
    if name not in MEDIA_TYPES:
        return None
    return Served(MEDIA_TYPES[name], gzip.compress((VENDORED / name).read_bytes(), mtime=0))
