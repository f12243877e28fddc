"""Choice of the measures that rank columns (LION 7, the gist).

Correlation only where a line is expected; the correlation ratio between categories and numbers; chi-square between
categories; mutual information for anything, if there are enough rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

from app.ml.evaluation.column_measures import MeasureName, Values

ENOUGH = 200
"""Rows from which information is estimated."""


class MeasureChoice(NamedTuple):
    measures: list[MeasureName]
    reason: str


def chosen_measures(columns: Sequence[Values], target: Values, rows: int) -> MeasureChoice:
    """Measures that between them apply to every column."""
    numbers = sum(not column.categories for column in columns)
    if 0 < numbers < len(columns):
        return _of_mixed(target, rows)
    if target.categories and numbers:
        return MeasureChoice(["correlation_ratio"], "The target has classes, and the columns hold numbers.")
    if target.categories:
        return MeasureChoice(["chi_square"], "The target has classes, and the columns hold categories.")
    if not numbers:
        return MeasureChoice(["correlation_ratio"], "The target holds numbers, and the columns hold categories.")
    if rows < ENOUGH:
        return MeasureChoice(["correlation"], f"Target and columns hold numbers, and {_few(rows)}.")
    reason = "Target and columns hold numbers, and nothing shows that they depend along a line."
    return MeasureChoice(["nearest_neighbour_information"], reason)


def _of_mixed(target: Values, rows: int) -> MeasureChoice:
    mixed = "Some columns hold numbers and others categories"
    if rows >= ENOUGH:
        return MeasureChoice(["mutual_information"], f"{mixed}: mutual information has one unit for both.")
    names: list[MeasureName] = ["correlation", "correlation_ratio"]
    if target.categories:
        names = ["correlation_ratio", "chi_square"]
    return MeasureChoice(names, f"{mixed}, and {_few(rows)}.")


def _few(rows: int) -> str:
    return f"{rows} rows are too few for information, which needs {ENOUGH}"
