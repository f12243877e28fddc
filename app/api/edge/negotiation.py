"""Content negotiation of bodies and responses, by Content-Type and Accept."""

import re
from collections.abc import Sequence
from typing import Any

from app.api.edge.body import Headers
from app.base.errors import NotAcceptable, UnsupportedMediaType
from app.ingest.upload_options import ENCODINGS, encoding_named

JSON, CSV, NPY, ARROW = "application/json", "text/csv", "application/x-npy", "application/vnd.apache.arrow.stream"
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
RESPONSES = (JSON, NPY, ARROW)


def kind_of(headers: Headers) -> str:
    """The media type of the body. Raises UnsupportedMediaType."""
    sent = headers.get(b"content-type", b"")
    if sent == b"application/json":
        return JSON
    kind, _, _ = sent.decode("latin-1").lower().partition(";")
    if kind.strip() in {NPY, ARROW}:
        return kind.strip()
    if kind.strip() == CSV:
        return CSV
    demand_json(headers)
    return JSON


def encoding_of(headers: Headers) -> str | None:
    """The declared encoding of a CSV body; None where it declares none, or UTF-8. Raises UnsupportedMediaType."""
    kind, _, parameters = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    name, _, charset = parameters.strip().partition("=")
    if kind.strip() != CSV or name != "charset" or (charset := charset.strip('" ')) in {"utf-8", "us-ascii"}:
        return None
    if (encoding := encoding_named(charset)) is None:
        raise UnsupportedMediaType(f"text/csv has one of the encodings {', '.join(ENCODINGS)}.")
    return encoding


def accepted(headers: Headers) -> str:
    """The media type of the response that the caller prefers. Raises NotAcceptable."""
    requested = headers.get(b"accept")
    if requested is None or requested == b"*/*" or not requested.strip():
        return JSON
    return preferred(requested.decode("latin-1"), RESPONSES)


def preferred(requested: str, kinds: Sequence[str]) -> str:
    """The media type among `kinds` that an Accept header prefers; of equal ones the first. Raises NotAcceptable."""
    likes = {kind: _liking(requested.lower(), kind) for kind in kinds}
    best = max(kinds, key=likes.__getitem__)
    if not likes[best]:
        raise NotAcceptable(f"Responses are {', '.join(kinds)}.")
    return best


def _liking(requested: str, kind: str) -> float:
    """RFC 9110, 12.5.1: the quality of the most specific range that takes this kind; 0 if none does."""
    group = f"{kind.partition('/')[0]}/*"
    qualities = {"*/*": 0.0, group: -1.0, kind: -1.0}
    for part in requested.split(","):
        name, *parameters = (chunk.strip() for chunk in part.split(";"))
        if name in qualities:
            quality = next((chunk[2:] for chunk in parameters if chunk.startswith("q=")), "1")
            qualities[name] = float(quality) if re.fullmatch(r"[01](\.[0-9]{0,3})?", quality, re.ASCII) else 0.0
    return next(quality for quality in (qualities[kind], qualities[group], qualities["*/*"]) if quality >= 0)


def demand_json(headers: Headers) -> None:
    """Raises UnsupportedMediaType unless the body is declared as JSON in UTF-8."""
    if headers.get(b"content-type") == b"application/json":
        return
    kind, _, parameters = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
    name, _, charset = parameters.strip().partition("=")
    is_json = kind.strip() == "application/json" or re.fullmatch(r"application/[\w.-]+\+json", kind.strip())
    if not is_json or (name == "charset" and charset.strip('" ') != "utf-8"):
        raise UnsupportedMediaType("Send application/json in UTF-8.", headers={"Accept": "application/json"})
