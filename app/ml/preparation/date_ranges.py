"""Ranges of dates that are read by their parts: a weekday comes again, so no date lies outside of it.

A model that reads months, weekdays or hours of a date alone has seen all of their values if its training rows span the
period after which these come again: a later date is then nothing new to it.
"""

from collections.abc import Sequence

from app.ml.contract.columns import InputColumn
from app.ml.preparation.date_parts import DateParts
from app.ml.preparation.functions import Function


def ranged(inputs: Sequence[InputColumn], functions: Sequence[Function]) -> list[InputColumn]:
    """The inputs, without a range where a date beyond it is like one within."""
    recurring = {function.date: function.period for function in functions if isinstance(function, DateParts)}
    read = {name for function in functions if not isinstance(function, DateParts) for name in function.columns}
    return [
        column.model_copy(update={"minimum": None, "maximum": None})
        if column.name in recurring.keys() - read and _span(column) >= recurring[column.name]
        else column
        for column in inputs
    ]


def _span(column: InputColumn) -> float:
    """Seconds from the first date of the training rows to the last."""
    return 0.0 if column.minimum is None or column.maximum is None else column.maximum - column.minimum
