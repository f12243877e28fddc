"""Predictions on the wire."""

from typing import Any

from pydantic import Field

from app.ml.contract.labels import Label
from app.ml.models.model_response import Flag, ModelResponse
from app.schemas.problems import ProblemError


class Prediction(ModelResponse):
    """Predictions by column. A row that could not be predicted (on_error=null) is null in every list."""

    predictions: list[Any] = Field(
        description="One prediction for each row, in the order of the request; null for a row that could not "
        "be predicted."
    )
    names: list[str | None] | None = Field(
        None,
        description="Name that a person has given to the cluster of each row, null where it has none; null: no cluster "
        "of the version has a name.",
    )
    classes: list[Label] | None = Field(
        None, description="Classes in the order of the probabilities; null for other tasks."
    )
    probabilities: list[list[float] | None] | None = Field(
        None, description="Probabilities of each row, in the order of `classes`; null for other tasks."
    )
    intervals: list[list[float | None] | None] | None = Field(
        None, description="Lower and upper end of each interval, with `confidence` only; null where nothing bounds it."
    )
    interval: str | None = Field(
        None,
        description="Method of the intervals: `algorithm` (from its own model of the noise), `split-conformal` "
        "(from errors on the rows held out in training: intervals cover new targets with this confidence, on average "
        "over rows), `cv-plus` (from the fits of the folds of cross-validation, where too few rows were held out: the "
        "report states the guaranteed coverage) or `cross-validation` (from errors of these folds about the prediction "
        "of the fit of all rows; no guarantee). "
        "Null: no interval was requested.",
    )
    outputs: dict[str, list[Any]] | None = Field(
        None,
        description="Values of each output named in `include`, one for each row, in the order of the request; null: "
        "the request includes none.",
    )
    decisions: list[str | None] | None = Field(
        None, description="accepted or rejected, for each row; null: no rejection was requested."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")
    errors: list[ProblemError] | None = Field(None, description="The first fault of each row that is null.")
