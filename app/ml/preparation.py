"""Table → matrix, fitted once and kept with the model."""

from typing import Literal

from pydantic import Field

from app.wire import Body


class Preprocessing(Body):
    """How columns become numbers. Learned on the training rows, kept with the model, applied alike ever after."""

    scaling: Literal["standard", "minmax", "none"] = Field("standard", description="Of numeric inputs.")
    imputation: Literal["mean", "median"] = Field(
        "mean", description="Of missing numbers; missing categories get a level of their own."
    )
