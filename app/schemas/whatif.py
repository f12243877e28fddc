"""What-if questions and explanations on the wire."""

from typing import Any

from pydantic import Field, model_validator

from app.ml.contract.labels import Label
from app.schemas.predictions import Flag
from app.wire import Body, Wire


class SweepAxis(Body):
    """One input that is varied: over the values given, else over a range of numbers."""

    column: str
    values: list[Any] | None = Field(None, min_length=1, description="As in a row to predict.")
    start: float | None = Field(None, description="Absent: the smallest training value.")
    stop: float | None = Field(None, description="Absent: the largest training value.")
    points: int = Field(25, ge=2, le=1000, description="Evenly spaced, both ends included.")

    @model_validator(mode="after")
    def _one_way(self) -> "SweepAxis":
        if self.values is not None and {"start", "stop", "points"} & self.model_fields_set:
            raise ValueError("Give values or a range, not both.")
        return self


class SweepRequest(Body):
    """A response surface: some inputs vary, the others are fixed."""

    vary: list[SweepAxis] = Field(min_length=1, max_length=3)
    fixed: dict[str, Any] = Field({}, description="Every other input, as in a row to predict. Absent: none.")


class SweptAxis(Wire):
    column: str
    values: list[Any]


class Sweep(Wire):
    """The answers over the grid. Lists are nested, one level for each axis in order."""

    model: str
    version: int
    digest: str
    task: str
    axes: list[SweptAxis]
    predictions: list[Any]
    classes: list[Label] | None = None
    probabilities: list[Any] | None = None
    flags: list[Flag] = Field([], description="Rows are counted through the grid, the last axis fastest.")


class LineariseRequest(Body):
    """A point of operation, and how to look around it."""

    row: dict[str, Any] = Field(description="Every input, as in a row to predict.")
    inputs: list[str] | None = Field(
        None, min_length=1, max_length=1000, description="Absent: every number and datetime that the row has."
    )
    relative_step: float = Field(
        1e-5,
        ge=1e-10,
        le=0.5,
        description="Step of the differences, in parts of the input's size or training range, whichever is larger.",
    )
    tolerance: float = Field(
        0.1, gt=0, le=1, description="By how much the tangent may miss, in parts of the output's variation."
    )


class Slope(Wire):
    """What moving one input does."""

    column: str
    at: float = Field(description="Datetimes in seconds since 1970, UTC.")
    step: float
    slopes: list[float | None] = Field(description="Per unit of the input, one for each output.")
    trusted_from: float = Field(description="Down to here the tangent misses by no more than the tolerance.")
    trusted_to: float = Field(description="Up to here.")


class Linearisation(Wire):
    """The linear approximation of the model at a point: outputs ≈ values + slopes · (input - at)."""

    model: str
    version: int
    digest: str
    task: str
    outputs: list[Label] = Field(description="What the values are of: the target, the classes, the coordinates.")
    values: list[float | None]
    inputs: list[Slope]
    warnings: list[str] = []


class Intervals(Wire):
    """Predictions with what is possible besides. Null bounds: nothing limits the answer on that side."""

    model: str
    version: int
    digest: str
    task: str
    predictions: list[float | None]
    lower: list[float | None]
    upper: list[float | None]
    confidence: float
    interval: str = Field(
        description="How the bounds were found, as in a prediction: algorithm, split-conformal or cross-validation."
    )
    display: list[str] = Field(description="Each prediction, rounded to its error bar.")
    flags: list[Flag] = []


class Explanations(Wire):
    """Why the model answers what it answers, a row at a time, in the words of its algorithm."""

    model: str
    version: int
    digest: str
    task: str
    predictions: list[Any]
    classes: list[Label] | None = Field(None, description="Classes in the order of the probabilities.")
    target_function: str | None = Field(
        None, description="Explanations tell of this function of the target, which was fitted; predictions do not."
    )
    explanations: list[Any] = Field(
        description="Neighbours, the path through a tree, what members or stages say, local coefficients, …"
    )
    columns: list[str] = Field(description="Of the matrix the algorithm sees.")
    offsets: list[float] = Field(description="There, a number of the table is (number - offset) / scale.")
    scales: list[float]
    flags: list[Flag] = []
