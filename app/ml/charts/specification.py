"""Complete Vega-Lite specifications: a view with its title, its theme and its version of the grammar."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from app.ml.charts.themes import Theme, config
from app.ml.contract.algorithm import JSON

Specification: TypeAlias = dict[str, JSON]
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
LONGEST_TEXT = 200
"""Characters kept of a text of the table."""


def complete(view: Specification, title: str, subtitle: Sequence[str], theme: Theme) -> Specification:
    """The view as a whole specification. Its texts have no control characters, which XML forbids."""
    heading = {"text": title} | ({"subtitle": list(subtitle)} if subtitle else {})
    whole: Specification = _printable({"$schema": SCHEMA, "title": heading, **view})
    return whole | {"config": config(theme)}


def _printable(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _printable(part) for key, part in value.items()}
        case list() | tuple():
            return [_printable(part) for part in value]
        case str():
            return printable(value)
    return value


def printable(text: str) -> str:
    r"""The text on one line, without control characters; a long one is cut.

    >>> printable("rent\nin €")
    'rent in €'
    """
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= LONGEST_TEXT else f"{plain[: LONGEST_TEXT - 1]}…"
