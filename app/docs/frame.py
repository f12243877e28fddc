"""HTML around a page, and content security policies that admit what the page itself holds and nothing else."""

import base64
import hashlib
from html import escape
from importlib import resources

STYLE = (resources.files(__package__) / "style.css").read_text(encoding="utf-8")


def digest(inline: str) -> str:
    """A source expression that admits exactly this inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"


def policy(*, form: str = "'none'", **sources: str) -> str:
    """A content security policy: these sources by kind (`script`, `style`, `img`, `connect`), and none of other kinds.

    >>> policy(style="'self'")
    "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    """
    admitted = "".join(f" {kind}-src {source};" for kind, source in sources.items())
    return f"default-src 'none';{admitted} form-action {form}; base-uri 'none'; frame-ancestors 'none'"


POLICY = policy(style=digest(STYLE), img="'self'", form="'self'")
"""Content-security policy of pages that `framed` makes."""


def framed(title: str, body: str) -> str:
    """A page with this title and body (HTML), in the style of the guide."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style>{body}"
    )
