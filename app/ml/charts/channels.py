"""Channels and data of Vega-Lite views. Fields have fixed names; names of the table appear in titles and data only."""

from collections.abc import Iterable, Mapping, Sequence

from app.ml.charts.specification import Specification, printable
from app.ml.contract.algorithm import JSON
from app.ml.contract.distinct_names import TakenNames

BAR_STEP = 22
"""Height of a bar with its gap, in pixels."""
SHARE: Mapping[str, JSON] = {"format": "~%"}


def data(rows: Iterable[Mapping[str, JSON]]) -> Specification:
    return {"values": [dict(row) for row in rows]}


def number(
    field: str,
    title: str | None,
    *,
    domain: Sequence[float] | None = None,
    nice: bool = False,
    axis: Mapping[str, JSON] | None = None,
) -> Specification:
    """A position by a number. Without a domain the axis covers the data. nice: it ends at round numbers."""
    scale = {"zero": False, "nice": True} if domain is None else {"domain": list(domain), "nice": nice}
    return {"field": field, "type": "quantitative", "title": shown(title), "scale": scale, "axis": dict(axis or {})}


def category(field: str, title: str | None, order: Sequence[str], **axis: JSON) -> Specification:
    """A position by a category, in this order."""
    return {"field": field, "type": "nominal", "title": shown(title), "sort": list(order), "axis": axis}


def colour(field: str, order: Sequence[str], title: str | None = None) -> Specification:
    """A colour for each series; a single one needs no legend."""
    legend = {"legend": None} if len(order) < 2 else {}
    return {"field": field, "type": "nominal", "title": shown(title), "scale": {"domain": list(order)}, **legend}


def shown(title: str | None) -> str | None:
    return None if title is None else printable(title)


def tooltips(**titles: str) -> list[Specification]:
    """Values of a mark under the pointer, by field."""
    return [{"field": field, "title": printable(title)} for field, title in titles.items()]


def distinct(names: Sequence[str]) -> list[str]:
    """Names of series, each once: equal ones have their number behind.

    >>> distinct(["1", "1", "2"])
    ['1', '1 (2)', '2']
    """
    taken = TakenNames(form="{} ({})")
    return [taken.free(printable(name)) for name in names]
