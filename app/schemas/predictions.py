"""Predictions on the wire."""

from typing import Any

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.labels import Label
from app.ml.models.model_response import Flag, ModelResponse
from app.schemas.problems import ProblemError


class ReasonCode(Wire):
    """One column, and how it moves the raw score of a row."""

    column: str = Field(description="Name of the column.")
    value: Any = Field(None, description="Value of the column in the row; null where it is missing.")
    contribution: float = Field(description="Contribution of the column to the raw score.")
    text: str = Field(description="The reason in words, with its direction.")


class ContributionTable(Wire):
    """Contributions of columns to the raw score of each row. For every row and score base + Σ values = raw."""

    method: str = Field(
        description="Shapley values of this kind. `path_dependent`: of trees, where an absent column sends a row both "
        "ways by the shares of the training rows; `interventional`: of trees, where it has the values of up to 100 "
        "training rows; `linear`: coefficient times the difference from the mean of the training rows; `additive`: the "
        "column's own function, of mean 0 over the training rows; `permutations`: estimates for any other model of "
        "numbers or classes, where an absent column has the values of training rows."
    )
    unit: str = Field(
        description="Unit of the raw scores: `target` (that of the target), a function of it such as `log(target)`, "
        "`log_odds`, `share` (of votes or training rows), `score` (of a class, before the probabilities) or "
        "`probability` (of estimates). The score of a calibrated version is that before the calibration, but for "
        "estimates."
    )
    columns: list[str] = Field(
        description="Columns of the request, in the order of the values. A category or a date is one column. A "
        "function of several columns follows as a column of its own."
    )
    scores: list[Label | None] = Field(
        description="Class of each score; of two classes there may be the second alone. Null: the score of a number."
    )
    base: list[float] = Field(description="Mean of each score, from which the contributions start.")
    raw: list[list[float] | None] = Field(description="Scores of each row; null for a row that is not predicted.")
    values: list[list[list[float]] | None] = Field(
        description="Contribution of every column to each score of each row; null for a row that is not predicted."
    )
    standard_errors: list[list[list[float]] | None] | None = Field(
        None, description="Standard errors of the values, in their shape; null: the values are exact."
    )
    reasons: list[list[ReasonCode] | None] | None = Field(
        None,
        description="Largest contributions of each row, of several scores to that of the predicted class; null: the "
        "request has no `top`.",
    )


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
    contributions: ContributionTable | None = Field(
        None, description="Contributions of the columns, with `include=contributions` only; null: it is not included."
    )
    decisions: list[str | None] | None = Field(
        None, description="accepted or rejected, for each row; null: no rejection was requested."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")
    assumed: dict[str, float] | None = Field(
        None,
        description="Value of each exposure or offset that the request leaves out, by the name of the column: with an "
        "exposure of 1 the predictions are rates. Null: nothing was assumed.",
    )
    errors: list[ProblemError] | None = Field(None, description="The first fault of each row that is null.")
