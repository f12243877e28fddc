"""Predictions on the wire."""

from typing import Any

from pydantic import Field, RootModel

from app.ml.contract.labels import Label
from app.schemas.problems import ProblemError
from app.wire import Body, Wire


class PredictRows(Body):
    """Rows as objects: `{"rows": [{"age": 31, "plan": "pro"}]}`."""

    rows: list[dict[str, Any]] = Field(min_length=1)


class PredictColumns(Body):
    """Names once, then values: `{"columns": ["age", "plan"], "data": [[31, "pro"]]}`."""

    columns: list[str] = Field(min_length=1)
    data: list[list[Any]] = Field(min_length=1)


class PredictRequest(RootModel[PredictRows | PredictColumns]):
    """Rows to predict, in either form."""


class Flag(Wire):
    """Rows whose answer deserves doubt, and why."""

    code: str = Field(description="unseen_category, outside_range, imputed or unknown (the prediction is null).")
    column: str | None = Field(None, description="Absent where it is the row as a whole.")
    rows: list[int]


class Prediction(Wire):
    """The answer, columnar. A row that could not be answered (on_error=null) is null in every list."""

    model: str
    version: int
    digest: str
    task: str
    predictions: list[Any]
    classes: list[Label] | None = None
    probabilities: list[list[float] | None] | None = None
    intervals: list[list[float | None] | None] | None = Field(
        None, description="Where `confidence` was given: lower and upper end of each; null where nothing bounds it."
    )
    interval: str | None = Field(
        None,
        description="How the intervals were found: `algorithm` (from its own model of the noise), `split-conformal` "
        "(from errors on the rows held out in training: intervals cover new targets with this confidence, on average "
        "over rows) or `cross-validation` (from errors of its folds, where too few rows were held out; no guarantee). "
        "Null: no interval was requested.",
    )
    decisions: list[str | None] | None = Field(
        None, description="accepted or rejected, for each row; null: no rejection was requested."
    )
    flags: list[Flag] = []
    errors: list[ProblemError] | None = Field(None, description="The first fault of each row that is null.")
