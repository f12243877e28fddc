"""Inputs that vary, inputs that are fixed, and constraints on them, as a request gives them."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from app.base.wire import Body

Number = Annotated[float, Field(ge=-1e60, le=1e60)]
"""Numbers whose squares and products can be added up."""


class DesignVariable(Body):
    """Limits of one input that varies."""

    column: str = Field(description="Input of the model that varies.")
    minimum: Number | None = Field(None, description="Smallest value; null: the smallest training value.")
    maximum: Number | None = Field(None, description="Largest value; null: the largest training value.")
    integer: bool = Field(False, description="True for whole numbers only.")
    values: list[Any] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Possible values, as in a row to predict; null: a range of numbers, or all categories of training.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> "DesignVariable":
        if self.values is not None and {"minimum", "maximum", "integer"} & self.model_fields_set:
            raise ValueError("Give values or a range, not both.")
        return self


class LinearConstraint(Body):
    """A limit of a weighted sum of numeric inputs."""

    coefficients: dict[str, Number] = Field(
        min_length=1, max_length=1000, description="Coefficient of each input in the sum, by its name."
    )
    at_least: Number | None = Field(None, description="Smallest sum; null: no limit below.")
    at_most: Number | None = Field(None, description="Largest sum; null: no limit above. Equal limits are an equality.")

    @model_validator(mode="after")
    def _limited(self) -> "LinearConstraint":
        if self.at_least is None and self.at_most is None:
            raise ValueError("Give at_least, at_most or both.")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("at_least is above at_most.")
        return self


class DesignRequest(Body):
    """Inputs of a decision. Every input varies that is not fixed."""

    variables: list[DesignVariable] = Field(
        [],
        max_length=1000,
        description="Limits of inputs that vary. Others vary over their training range, or over all categories.",
    )
    fixed: dict[str, Any] = Field({}, description="Inputs that do not vary, each with its value.")
    constraints: list[LinearConstraint] = Field(
        [], max_length=1000, description="Limits of weighted sums of numeric inputs that vary or are fixed."
    )
