"""Preparation of rows that are items: the matrix has the place of each among the training rows."""

from dataclasses import replace

from pydantic import Field

from app.ml.contract.algorithm import Accepts, Labels
from app.ml.contract.columns import InputColumn
from app.ml.preparation.arrow_columns import Raw
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing


class _EveryLevel(Preprocessing):
    """A preparation with a level for each item, of which there may be more than levels of a column."""

    max_levels: int = Field(ge=0, description="Number of items.")


def item_preparation(raw: Raw, rows: Labels) -> Preparation:
    """Every item of these rows, ascending, has a level of its own; an item to predict must be one of them."""
    how = _EveryLevel(max_levels=len(raw.values))
    made = Preparation.fit(raw, rows, how, (Accepts.MISSING, Accepts.CATEGORIES))
    return replace(made, inputs=tuple(_strict(column) for column in made.inputs))


def _strict(column: InputColumn) -> InputColumn:
    return column.model_copy(update={"strict_levels": True, "nullable": False})
