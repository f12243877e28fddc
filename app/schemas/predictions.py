"""Predictions on the wire."""

from typing import Any

from pydantic import Field, RootModel

from app.ml.contract.labels import Label
from app.schemas.problems import ProblemError
from app.wire import Body, Wire


class PredictRows(Body):
    """Rows as objects: `{"rows": [{"age": 31, "plan": "pro"}]}`."""

    rows: list[dict[str, Any]] = Field(min_length=1, description="Rows, each an object of values by column name.")


class PredictColumns(Body):
    """Names once, then values: `{"columns": ["age", "plan"], "data": [[31, "pro"]]}`."""

    columns: list[str] = Field(min_length=1, description="Names of the columns of `data`.")
    data: list[list[Any]] = Field(min_length=1, description="Rows, each a list of values in the order of `columns`.")


class PredictRequest(RootModel[PredictRows | PredictColumns]):
    """Rows to predict, in either form."""


class Flag(Wire):
    """Rows whose prediction deserves doubt, and the reason."""

    code: str = Field(description="unseen_category, outside_range, imputed or unknown (the prediction is null).")
    column: str | None = Field(None, description="Name of the column; null where the flag is about the row as a whole.")
    rows: list[int] = Field(description="Indices of the rows, from 0.")


class Prediction(Wire):
    """Predictions by column. A row that could not be predicted (on_error=null) is null in every list."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="SHA-256 of the bytes of the model version.")
    task: str = Field(description="Task: regression, classification, clustering or projection.")
    predictions: list[Any] = Field(
        description="One prediction for each row, in the order of the request; null for a row that could not "
        "be predicted."
    )
    classes: list[Label] | None = Field(
        None, description="Classes in the order of the probabilities; null for other tasks."
    )
    probabilities: list[list[float] | None] | None = Field(
        None, description="Probabilities of each row, in the order of `classes`; null for other tasks."
    )
    intervals: list[list[float | None] | None] | None = Field(
        None, description="Where `confidence` was given: lower and upper end of each; null where nothing bounds it."
    )
    interval: str | None = Field(
        None,
        description="How the intervals were found: `algorithm` (from its own model of the noise), `split-conformal` "
        "(from errors on the rows held out in training: intervals cover new targets with this confidence, on average "
        "over rows), `cv-plus` (from the fits of the folds of cross-validation, where too few rows were held out: the "
        "report states the guaranteed coverage) or `cross-validation` (from errors of these folds about the prediction "
        "of the fit of all rows; no guarantee). "
        "Null: no interval was requested.",
    )
    decisions: list[str | None] | None = Field(
        None, description="accepted or rejected, for each row; null: no rejection was requested."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")
    errors: list[ProblemError] | None = Field(None, description="The first fault of each row that is null.")
