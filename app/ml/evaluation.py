"""Splits, measures and their error bars."""

from typing import Literal

from pydantic import Field

from app.wire import Body


class Validation(Body):
    """How the model is judged."""

    method: Literal["holdout", "kfold"] = Field(
        "holdout", description="kfold adds K-fold figures on the training rows."
    )
    test_fraction: float = Field(0.2, gt=0, lt=1, description="Rows held out and looked at once.")
    folds: int = Field(5, ge=2, le=100, description="K of kfold.")
