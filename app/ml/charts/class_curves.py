"""Curves of classes against the rest, as reports hold them, with binomial intervals at each point."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from app.ml.charts.channels import distinct
from app.ml.charts.layers import band, layer
from app.ml.charts.specification import Specification
from app.ml.charts.themes import CATEGORIES
from app.ml.contract.algorithm import JSON
from app.ml.evaluation.report import Report, ReportCurve
from app.ml.statistics.intervals import clopper_pearson

WHOLE = 1e-6
"""Distance from a whole number up to which a count is one: weighted rows have others, and no binomial interval."""


APART: Specification = {"legend": {"color": "independent"}}
"""Resolution of a view whose bands have no legend while its lines have one."""


class ClassCurve(NamedTuple):
    """One curve of one class."""

    label: str
    curve: ReportCurve
    positives: int
    """Test rows of the class."""


def class_curves(report: Report, name: str) -> list[ClassCurve]:
    """Curves of this name; of more than colours distinguish, those of the most frequent classes."""
    matrix = report.confusion_matrix
    if matrix is None:
        return []
    labels = distinct([str(label) for label in matrix.classes])
    named = {f"{name} {label}": code for code, label in enumerate(matrix.classes)} | {name: len(labels) - 1}
    drawn = [(named[curve.name], curve) for curve in report.curves if curve.name in named]
    all_curves = [ClassCurve(labels[code], curve, sum(matrix.counts[code])) for code, curve in drawn]
    shown_curves = sorted(all_curves, key=lambda curve: -curve.positives)[:CATEGORIES]
    return [curve for curve in all_curves if curve in shown_curves]


def shown(report: Report, curves: Sequence[ClassCurve]) -> str:
    """States that there are curves of some classes alone, where that is so: a part of a sentence, or nothing."""
    classes = len(report.confusion_matrix.classes) if report.confusion_matrix is not None else 0
    return f"; {len(curves)} of {classes} classes, those of the most test rows" if 1 < len(curves) < classes else ""


def points(
    curves: Sequence[ClassCurve], trials: Callable[[ClassCurve, float, float], tuple[float, float]]
) -> Iterator[dict[str, JSON]]:
    """A row for each point. trials: successes and trials behind the share y at a point (x, y) of a curve."""
    for curve in curves:
        for place, (x, y) in enumerate(zip(curve.curve.x or [], curve.curve.y, strict=True)):
            point: dict[str, JSON] = {"series": curve.label, "x": x, "y": y, "place": place}
            successes, all_ = trials(curve, x, y)
            if all_ >= 1 and max(abs(successes - round(successes)), abs(all_ - round(all_))) <= WHOLE * all_:
                bounds = clopper_pearson(round(successes), round(all_))
                point |= {"lower": bounds.lower, "upper": bounds.upper} if bounds else {}
            yield point


def lines(x: Specification, y: Specification, series: Specification, seen: JSON) -> list[Specification]:
    """Curves of the points of `points`, and the bands of their intervals."""
    line = {"type": "line", "point": {"size": 14, "opacity": 1}}
    order = {"field": "place", "type": "quantitative"}  # of an area it would part the points
    bands = band(y, x=x, color=series | {"legend": None})
    return [bands, layer(line, x=x, y=y, color=series, order=order, tooltip=seen)]


def positive(curves: Sequence[ClassCurve]) -> str:
    """A sentence where there is one curve: its class."""
    return f"Class {curves[0].label} against the rest. " if len(curves) == 1 else ""
