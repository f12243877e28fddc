"""The two JSON forms of rows in a request, by row and by column."""

from typing import Any

from pydantic import Field, RootModel

from app.base.validated_copy import ValidatedCopy
from app.base.wire import Body


class PredictRows(Body):
    """Rows as objects: `{"rows": [{"age": 31, "plan": "pro"}]}`."""

    rows: list[dict[str, Any]] = Field(min_length=1, description="Rows, each an object of values by column name.")


class PredictColumns(Body):
    """Names once, then values: `{"columns": ["age", "plan"], "data": [[31, "pro"]]}`."""

    columns: list[str] = Field(min_length=1, description="Names of the columns of `data`.")
    data: list[list[Any]] = Field(min_length=1, description="Rows, each a list of values in the order of `columns`.")


class PredictRequest(ValidatedCopy, RootModel[PredictRows | PredictColumns]):
    """Rows to predict, in either form."""
