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

MAX_COLUMNS = 20
REACH = 1.959963984540054
"""Standard errors to each side of a 95 % interval of a normal estimate."""


def draw(source: PlotSubject) -> Drawing:
    scores_coefficients, names = coefficients(source.report), distinct(source.report.columns)
    series, scores = _series(source, len(scores_coefficients)), range(min(len(scores_coefficients), CATEGORIES))
    largest = sorted(range(len(names)), key=lambda index: -max(abs(row[index]) for row in scores_coefficients))[
        :MAX_COLUMNS
    ]
    rows = [row for score in scores for row in _rows(source, score, series[score], largest, names)]
    y = category("name", None, [names[index] for index in largest])
    offset = {"yOffset": {"field": "series", "sort": series}} if len(scores) > 1 else {}
    encoding = {"y": y, "color": colour("series", series[: len(scores)], source.output), **offset}
    x = number("x", f"Coefficient{_unit(source)}")
    seen = tooltips(name="column", series=source.output, x="coefficient", lower="from", upper="to")
    points = layer({"type": "point", "size": 42, "opacity": 1}, x=x, tooltip=seen, **encoding)
    layers = [upright(x, 0.0), whiskers("x", x, style=None, **encoding), points]
    height = {"step": BAR_STEP} if len(scores) == 1 else {"step": 9, "for": "offset"}
    view = {"height": height, "data": data(rows), "layer": layers}
    return Drawing(view, tuple(_subtitle(source, len(largest), intervals=any("lower" in row for row in rows))))


def _series(source: PlotSubject, count: int) -> list[str]:
    """Names of the scores: their classes, or the two that the score of a machine distinguishes."""
    machines = entries(source.report.summary, "machines")
    if count > 1 and len(machines) == count:
        return [" over ".join(str(label) for label in reversed(machine["classes"])) for machine in machines]
    labels = distinct([str(label) for label in source.subject.model.classes or ()])
    return labels if len(labels) == count else labels[-1:] if count == 1 and labels else [str(i) for i in range(count)]


def _rows(
    source: PlotSubject, score: int, series: str, largest: Sequence[int], names: Sequence[str]
) -> Iterator[dict[str, JSON]]:
    values = coefficients(source.report)[score]
    errors = rows_of(source.report.summary, "standard_errors", len(names))
    for index in largest:
        row: dict[str, JSON] = {"name": names[index], "series": series, "x": values[index]}
        reach = REACH * errors[score][index] if len(errors) > score else None
        yield row if reach is None else row | {"lower": values[index] - reach, "upper": values[index] + reach}


def _unit(source: PlotSubject) -> str:
    return " (per scaled column)" if any(scale != 1 for scale in source.report.scales) else ""


def _subtitle(source: PlotSubject, shown: int, *, intervals: bool) -> Iterator[str]:
    yield counted(shown, len(source.report.columns), "column")
    if intervals:
        yield "Lines: 95 % intervals of normal estimates"


PLOT = Plot(title="Coefficients", applies=lambda source: bool(coefficients(source.report)), draw=draw)
