"""Wire schemas of what-if queries and explanations."""

from typing import Any

from pydantic import Field, model_validator

from app.ml.contract.labels import Label
from app.schemas.predictions import Flag
from app.wire import Body, Wire


class SweepAxis(Body):
    """One input that is varied: over the values given, else over a range of numbers."""

    column: str = Field(description="Input that varies.")
    values: list[Any] | None = Field(
        None, min_length=1, description="Values to use, as in a row to predict; null: evenly spaced ones."
    )
    start: float | None = Field(None, description="First value; null: the smallest training value.")
    stop: float | None = Field(None, description="Last value; null: the largest training value.")
    points: int = Field(25, ge=2, le=1000, description="Evenly spaced, both ends included.")

    @model_validator(mode="after")
    def _one_way(self) -> "SweepAxis":
        if self.values is not None and {"start", "stop", "points"} & self.model_fields_set:
            raise ValueError("Give values or a range, not both.")
        return self


class SweepRequest(Body):
    """A response surface: some inputs vary, the others are fixed."""

    vary: list[SweepAxis] = Field(min_length=1, max_length=3, description="Inputs that vary: one to three axes.")
    fixed: dict[str, Any] = Field({}, description="Every other input, as in a row to predict; by default none.")


class SweptAxis(Wire):
    """Axis of a grid."""

    column: str = Field(description="Input that varies.")
    values: list[Any] = Field(description="Values of the input.")


class Sweep(Wire):
    """Predictions over a grid. Lists are nested, one level for each axis in order."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="SHA-256 of the bytes of the model version.")
    task: str = Field(description="Task: regression, classification, clustering or projection.")
    axes: list[SweptAxis] = Field(description="Axes of the grid.")
    predictions: list[Any] = Field(description="Predictions, nested one level for each axis.")
    classes: list[Label] | None = Field(
        None, description="Classes in the order of the probabilities; null for other tasks."
    )
    probabilities: list[Any] | None = Field(
        None, description="Probabilities, nested one level for each axis; null for other tasks."
    )
    flags: list[Flag] = Field([], description="Rows are counted through the grid, the last axis fastest.")


class LineariseRequest(Body):
    """A point of operation, and how to look around it."""

    row: dict[str, Any] = Field(description="Every input, as in a row to predict.")
    inputs: list[str] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Inputs to move; null: every number and datetime that the row has.",
    )
    relative_step: float = Field(
        1e-5,
        ge=1e-10,
        le=0.5,
        description="Step of the differences, in parts of the input's size or training range, whichever is larger.",
    )
    tolerance: float = Field(
        0.1,
        gt=0,
        le=1,
        description="Largest difference between tangent and model, as a share of the output's variation.",
    )


class Slope(Wire):
    """Effect of moving one input."""

    column: str = Field(description="Name of the input.")
    at: float = Field(description="Datetimes in seconds since 1970, UTC.")
    step: float = Field(description="Size of the step, in units of the input; null: it is no number.")
    slopes: list[float | None] = Field(description="Per unit of the input, one for each output.")
    trusted_from: float = Field(description="Down to here the tangent misses by no more than the tolerance.")
    trusted_to: float = Field(description="Up to here.")


class Linearisation(Wire):
    """The linear approximation of the model at a point: outputs ≈ values + slopes · (input - at)."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="SHA-256 of the bytes of the model version.")
    task: str = Field(description="Task: regression, classification, clustering or projection.")
    outputs: list[Label] = Field(description="Names of the values: the target, the classes or the coordinates.")
    values: list[float | None] = Field(description="Values of the outputs at the point.")
    inputs: list[Slope] = Field(description="Slopes along each input.")
    warnings: list[str] = Field(
        [], description="Sentences on what a careful reader should know; empty where there is none."
    )


class Intervals(Wire):
    """Predictions with intervals. Null bounds: nothing limits that side."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="SHA-256 of the bytes of the model version.")
    task: str = Field(description="Task: regression, classification, clustering or projection.")
    predictions: list[float | None] = Field(
        description="One prediction for each row, in the order of the request; null for a row that could not "
        "be predicted."
    )
    lower: list[float | None] = Field(description="Lower end of each interval; null where nothing limits it.")
    upper: list[float | None] = Field(description="Upper end of each interval; null where nothing limits it.")
    confidence: float = Field(description="Confidence level of the intervals, from 0 to 1.")
    interval: str = Field(
        description="How the bounds were found, as in a prediction: algorithm, split-conformal, cv-plus or "
        "cross-validation."
    )
    display: list[str] = Field(description="Each prediction, rounded to its error bar.")
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")


class Explanations(Wire):
    """Explanations of predictions, row by row, in the terms of the algorithm."""

    model: str = Field(description="Name of the model.")
    version: int = Field(description="Version of the model, counted from 1.")
    digest: str = Field(description="SHA-256 of the bytes of the model version.")
    task: str = Field(description="Task: regression, classification, clustering or projection.")
    predictions: list[Any] = Field(
        description="One prediction for each row, in the order of the request; null for a row that could not "
        "be predicted."
    )
    classes: list[Label] | None = Field(None, description="Classes in the order of the probabilities.")
    target_function: str | None = Field(
        None, description="Explanations describe this function of the target, which was fitted; predictions do not."
    )
    explanations: list[Any] = Field(
        description="Neighbours, the path through a tree, what members or stages say, local coefficients, …"
    )
    columns: list[str] = Field(description="Names of the columns of the matrix that the algorithm sees.")
    offsets: list[float] = Field(description="There, a number of the table is (number - offset) / scale.")
    scales: list[float] = Field(
        description="Scale of each of these columns, in the table's own units; a column of the matrix is "
        "(value - offset) / scale."
    )
    flags: list[Flag] = Field([], description="Rows whose prediction deserves doubt, by reason.")
