"""Contributions of columns to one prediction, largest first: by how much each moves the raw score of an example row."""

from collections.abc import Iterator

import numpy as np

from app.base.errors import NoContributions
from app.ml.charts.channels import BAR_STEP, category, colour, data, distinct, number, tooltips
from app.ml.charts.layers import layer, upright, whiskers
from app.ml.charts.numbers import counted, short
from app.ml.contract.algorithm import JSON
from app.ml.kinds.plot import Drawing, Plot, PlotSubject
from app.ml.models.contributions import Contributions, contributions_of, demand_contributions
from app.ml.models.golden import golden_table
from app.ml.models.reasons import reasons_of, scored

MAX_BARS = 20
DIRECTIONS = ["raises", "lowers"]


def applies(source: PlotSubject) -> bool:
    """True if the model has contributions."""
    try:
        demand_contributions(source.subject.model)
    except NoContributions:
        return False
    return bool(source.golden["data"])


def draw(source: PlotSubject) -> Drawing:
    model = source.subject.model
    table = golden_table(model, source.golden)[:1]
    raw = table if isinstance(table, np.ndarray) else model.preparation.raw(table)
    contributions, predicted = contributions_of(model, raw), model.predict_raw(raw)
    score = int(predicted.values[0]) if len(contributions.scores) > 1 else 0
    reasons = reasons_of(contributions, table, predicted, MAX_BARS)[0]
    names = distinct([reason.subject for reason in reasons])
    rows = [*_rows(contributions, score, [(name, reason.column) for name, reason in zip(names, reasons, strict=True)])]
    x, y = number("x", f"Contribution to {scored(contributions, score)}"), category("name", None, names)
    seen = tooltips(name="column", x="contribution", series="direction")
    bars = layer("bar", x=x, y=y, color=colour("series", DIRECTIONS), tooltip=seen)
    layers = [bars, upright(x, 0.0)]
    if contributions.standard_errors is not None:
        layers.append(whiskers("x", x, style="error", y=y))
    view = {"height": {"step": BAR_STEP}, "data": data(rows), "layer": layers}
    return Drawing(view, tuple(_subtitle(contributions, score, len(rows))))


def _rows(contributions: Contributions, score: int, named: list[tuple[str, str]]) -> Iterator[dict[str, JSON]]:
    for name, column in named:
        place = contributions.columns.index(column)
        value = float(contributions.values[0, score, place])
        row: dict[str, JSON] = {"name": name, "x": value, "series": DIRECTIONS[value < 0]}
        if contributions.standard_errors is None:
            yield row
        else:
            error = float(contributions.standard_errors[0, score, place])
            yield row | {"lower": value - error, "upper": value + error}


def _subtitle(contributions: Contributions, score: int, shown: int) -> Iterator[str]:
    base, raw = float(contributions.base[score]), float(contributions.raw[0, score])
    contributing = int(np.count_nonzero(contributions.values[0, score]))
    yield f"{counted(shown, max(shown, contributing), 'column')} of an example row"
    yield f"Base {short(base)}, with all contributions {short(raw)}"
    if contributions.standard_errors is not None:
        yield "Lines: one standard error to each side"


PLOT = Plot(title="Contributions to one prediction", applies=applies, draw=draw)
