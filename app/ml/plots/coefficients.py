"""Coefficients of a linear model in the columns that the algorithm saw, with 95 % intervals where errors are known.

Where columns are scaled, as by default, a coefficient is the change for one standard deviation of its column, so that
columns can be compared.
"""

from collections.abc import Iterator, Sequence

from app.ml.charts.channels import BAR_STEP, category, colour, data, distinct, number, tooltips
from app.ml.charts.layers import layer, upright, whiskers
from app.ml.charts.numbers import counted
from app.ml.charts.summaries import coefficients, entries, rows_of
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject

MOST = 20
REACH = 1.959963984540054
"""Standard errors to each side of a 95 % interval of a normal estimate."""


def draw(of: PlotSubject) -> Drawing:
    found, names = coefficients(of.report), distinct(of.report.columns)
    series, scores = _series(of, len(found)), range(min(len(found), CATEGORIES))
    largest = sorted(range(len(names)), key=lambda at: -max(abs(row[at]) for row in found))[:MOST]
    rows = [row for score in scores for row in _rows(of, score, series[score], largest, names)]
    y = category("name", None, [names[at] for at in largest])
    offset = {"yOffset": {"field": "series", "sort": series}} if len(scores) > 1 else {}
    encoding = {"y": y, "color": colour("series", series[: len(scores)], of.output), **offset}
    x = number("x", f"Coefficient{_unit(of)}")
    seen = tooltips(name="column", series=of.output, x="coefficient", lower="from", upper="to")
    points = layer({"type": "point", "size": 42, "opacity": 1}, x=x, tooltip=seen, **encoding)
    layers = [upright(x, 0.0), whiskers("x", x, style=None, **encoding), points]
    height = {"step": BAR_STEP} if len(scores) == 1 else {"step": 9, "for": "offset"}
    view = {"height": height, "data": data(rows), "layer": layers}
    return Drawing(view, tuple(_subtitle(of, len(largest), intervals=any("lower" in row for row in rows))))


def _series(of: PlotSubject, count: int) -> list[str]:
    """Names of the scores: their classes, or the two that the score of a machine distinguishes."""
    machines = entries(of.report.summary, "machines")
    if count > 1 and len(machines) == count:
        return [" over ".join(str(label) for label in reversed(machine["classes"])) for machine in machines]
    labels = distinct([str(label) for label in of.subject.model.classes or ()])
    return labels if len(labels) == count else labels[-1:] if count == 1 and labels else [str(i) for i in range(count)]


def _rows(
    of: PlotSubject, score: int, series: str, largest: Sequence[int], names: Sequence[str]
) -> Iterator[dict[str, JSON]]:
    values = coefficients(of.report)[score]
    errors = rows_of(of.report.summary, "standard_errors", len(names))
    for at in largest:
        row: dict[str, JSON] = {"name": names[at], "series": series, "x": values[at]}
        reach = REACH * errors[score][at] if len(errors) > score else None
        yield row if reach is None else row | {"lower": values[at] - reach, "upper": values[at] + reach}


def _unit(of: PlotSubject) -> str:
    return " (per scaled column)" if any(scale != 1 for scale in of.report.scales) else ""


def _subtitle(of: PlotSubject, shown: int, *, intervals: bool) -> Iterator[str]:
    yield counted(shown, len(of.report.columns), "column")
    if intervals:
        yield "Lines: 95 % intervals of normal estimates"


PLOT = Plot(title="Coefficients", applies=lambda of: bool(coefficients(of.report)), draw=draw)
