"""Reason codes: the columns that move the raw score of a row most, with the direction in words."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.models.contributions import Contributions
from app.ml.models.golden import as_sent
from app.ml.models.model import Predicted

UNITS = {"log_odds": "log-odds"}


class Reason(NamedTuple):
    column: str
    value: Any
    """Value in the request; None of a missing one, and of a function of several columns."""
    contribution: float
    text: str
    """The reason in words."""

    @property
    def subject(self) -> str:
        """The column with its value."""
        return f"{self.column} = {_short(self.value)}" if self.value is not None else f"{self.column}: none"


def reasons_of(
    contributions: Contributions, table: pa.Table | Matrix, predicted: Predicted, top: int
) -> list[list[Reason]]:
    """For each row of a table up to so many columns, the largest contribution first; none of those that are 0.

    Of several scores, that of the predicted class or quantile.
    """
    chosen = np.zeros(len(predicted.values), np.intp)
    if len(contributions.scores) > 1:
        chosen = predicted.values if predicted.classes else _middle_quantiles(contributions)
    values = contributions.values[np.arange(len(chosen)), chosen]
    order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :top]
    return [
        list(_row(contributions, table, row, int(chosen[row]), places)) for row, places in enumerate(order.tolist())
    ]


def _middle_quantiles(contributions: Contributions) -> Labels:
    """(n,) the score that each row is predicted by: in order, that of the level nearest to 1/2."""
    levels = np.array(contributions.scores, np.float64)
    return np.asarray(contributions.raw.argsort(axis=1, kind="stable")[:, np.abs(levels - 0.5).argmin()])


def _row(
    contributions: Contributions, table: pa.Table | Matrix, row: int, score: int, places: list[int]
) -> Iterator[Reason]:
    for place in places:
        amount = float(contributions.values[row, score, place])
        if amount:
            name = contributions.columns[place]
            value = _cell(table, row, place, name)
            yield Reason(name, value, amount, _sentence(contributions, score, name, value, amount))


def _cell(table: pa.Table | Matrix, row: int, place: int, name: str) -> Any:
    if isinstance(table, np.ndarray):
        return as_sent(float(table[row, place])) if place < table.shape[1] else None
    return as_sent(table.column(name)[row].as_py()) if name in table.column_names else None


def _sentence(contributions: Contributions, score: int, name: str, value: Any, amount: float) -> str:
    """The reason in words.

    >>> zero = np.zeros((1, 1))
    >>> one = Contributions("linear", "log_odds", ("age",), ("yes",), zero[0], zero, zero[None])
    >>> _sentence(one, 0, "age", 31.0, -0.25), _sentence(one, 0, "age", None, 0.5)
    ('age = 31 lowers the log-odds of yes by 0.25', 'age, which is missing, raises the log-odds of yes by 0.5')
    """
    subject = f"{name}, which is missing," if value is None else f"{name} = {_short(value)}"
    return f"{subject} {'raises' if amount > 0 else 'lowers'} {scored(contributions, score)} by {abs(amount):.3g}"


def scored(contributions: Contributions, score: int) -> str:
    """Name of a score in a sentence."""
    whose, unit = contributions.scores[score], contributions.unit
    if whose is not None:
        return f"the {UNITS.get(unit, unit)} of {_short(whose)}"
    return "the prediction" if unit == "target" else unit


def _short(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
