"""Predictions of rows that came as JSON, and their first rows as a table."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any

from .operation import M
from .record import Record
from .summary_table import SummaryTable

MOST_ROWS = 20
"""Rows of a table that is printed."""


class Prediction(Record[M]):
    """Predictions of rows, in their order."""

    model: str
    version: int
    digest: str
    task: str
    predictions: list[Any]
    classes: list[Any] | None
    probabilities: list[Any] | None
    intervals: list[Any] | None
    outputs: dict[str, list[Any]] | None
    contributions: dict[str, Any] | None
    decisions: list[Any] | None
    flags: list[dict[str, Any]]
    errors: list[dict[str, Any]] | None

    def __repr__(self) -> str:
        return f"<Prediction of {len(self.predictions)} rows by {self.model} {self.version}>"

    def __str__(self) -> str:
        return self.overview().text()

    def overview(self) -> SummaryTable:
        """The first rows: each with its interval, the probability of each class, its decision and its flags."""
        columns = dict(self._columns())
        rows = [list(row) for row in zip(*columns.values(), strict=True)][:MOST_ROWS]
        others = len(self.predictions) - MOST_ROWS
        notes = [f"{others} other rows"] if others > 0 else []
        notes += [f"{fault.get('pointer', '')}: {fault.get('detail')}" for fault in (self.errors or ())[:MOST_ROWS]]
        return SummaryTable(f"{self.model}, version {self.version}", list(columns), rows, notes)

    def _columns(self) -> Iterator[tuple[str, Sequence[Any]]]:
        yield "prediction", self.predictions
        if self.intervals is not None:
            bounds = [interval or (None, None) for interval in self.intervals]
            yield "lower", [lower for lower, _ in bounds]
            yield "upper", [upper for _, upper in bounds]
        for place, label in enumerate(self.classes or () if self.probabilities else ()):
            yield f"probability of {label}", [shares and shares[place] for shares in self.probabilities or ()]
        if self.decisions is not None:
            yield "decision", self.decisions
        if self.flags:
            yield "flags", self._flags_by_row()

    def _flags_by_row(self) -> list[str]:
        """The flags of each row, such as `imputed: age, city`."""
        codes: list[defaultdict[str, list[str]]] = [defaultdict(list) for _ in self.predictions]
        for flag in self.flags:
            for row in flag["rows"]:
                codes[row][flag["code"]] += [flag["column"]] if flag.get("column") else []
        return ["; ".join(starmap(_flag, row.items())) for row in codes]


def _flag(code: str, columns: Sequence[str]) -> str:
    return f"{code}: {', '.join(columns)}" if columns else code
