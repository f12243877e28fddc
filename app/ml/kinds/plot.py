"""The contract of a plot.

A file of `app/ml/plots/` draws one picture of a model version and states it in one `PLOT` record. The file's name is
the plot's name, its docstring the description in the list of plots. Routes, formats, themes and limits follow from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.ml.charts.specification import Specification
from app.ml.evaluation.report import Report
from app.ml.kinds.query import Subject


class PlotSubject(NamedTuple):
    """The model version of a plot, with what is stored about it."""

    subject: Subject
    report: Report
    golden: Mapping[str, Any]
    """The golden rows, as `app.ml.models.golden` records them."""

    @property
    def output(self) -> str:
        """Name of the predicted column."""
        return self.subject.model.target or "prediction"


class Drawing(NamedTuple):
    """A picture, apart from its theme."""

    view: Specification
    """Marks, encodings and data."""
    subtitle: tuple[str, ...] = ()
    """Lines below the title: the rows, intervals and parts that the picture shows."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One plot, as its file states it."""

    title: str
    applies: Callable[[PlotSubject], bool]
    """True for versions that have something to draw. Cheap: a list of plots calls it for each of them."""
    draw: Callable[[PlotSubject], Drawing]
    """Pure; called only where the plot applies."""
