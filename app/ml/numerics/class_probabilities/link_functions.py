"""Functions that make the predictions of another library of its sums, as the objectives in its files demand.

- `identity`: the sum itself; so too where the objective is not known;
- `sigmoid`: 1/(1 + exp(-sigmoid · sum)), the probability of the second of two classes;
- `softmax`: probabilities of more classes, from one sum each;
- `one_against_rest`: the `sigmoid` of one sum for each class, which do not add up to 1, as in LightGBM;
- `step`: 1 where the sum is above 0, else 0, and no number of none;
- `exponential`: exp(sum), of counts and times; `log_exponential`: log(1 + exp(sum));
- `signed_square`: the square of the sum, with its sign.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.ml.contract.algorithm import Matrix, Params, Vector
from app.ml.numerics.class_probabilities.log_totals import log_total


class LinkedSums(Params):
    """Sums that another library computes, and the function of them that it predicts."""

    library: Literal["lightgbm", "onnx", "xgboost", "scikit-learn"] = Field(
        "lightgbm", description="Library that wrote the file."
    )
    objective: str = Field("", max_length=200, description="Objective of the training, as the file names it.")
    transform: Literal[
        "identity",
        "sigmoid",
        "softmax",
        "one_against_rest",
        "step",
        "exponential",
        "log_exponential",
        "signed_square",
    ] = Field("identity", description="Function that makes the prediction of the sum.")
    arithmetic: Literal["float32", "float64"] = Field(
        "float64", description="Precision in which inputs are compared and the terms of a sum are added."
    )
    sigmoid: float = Field(1.0, gt=0, le=1e100, description="Factor of the sum in the logistic function.")


def linked(params: LinkedSums, sums: Matrix) -> Matrix:
    """(n, k) numbers or probabilities of sums (n, k); of two classes that of the second."""
    if params.transform in {"sigmoid", "one_against_rest"}:
        return 1 / (1 + np.exp(-params.sigmoid * sums))
    return _FUNCTIONS[params.transform](sums)


def predicted(params: LinkedSums, sums: Matrix, *, classifies: bool) -> NDArray[np.float64]:
    """(n,) numbers, or (n, k) probabilities of at least two classes."""
    if classifies and sums.size == 1 and params.transform == "sigmoid":
        return _of_one_row(-params.sigmoid * sums.item())
    with np.errstate(over="ignore"):  # exp of a large sum is infinite in the library too
        values = linked(params, sums)
    if not classifies:
        numbers: Vector = values[:, 0].copy()
        return numbers
    return np.column_stack([1 - values[:, 0], values[:, 0]]) if values.shape[1] == 1 else values


def has_probabilities(_: LinkedSums, probabilities: Matrix) -> NDArray[np.bool_]:
    """(n,) rows of numbers: of sums that overflow the library makes none, and no class."""
    return np.asarray(~np.isnan(probabilities).any(axis=1))


def _of_one_row(against: float) -> Matrix:
    """(1, 2), with the bits of many rows: numpy takes longer to begin with an array than to compute one number."""
    shares = np.empty((1, 2))
    shares[0, 1] = p = 0.0 if against > MAX_EXPONENT else 1 / (1 + float(np.exp(against)))
    shares[0, 0] = 1 - p
    return shares


MAX_EXPONENT = float(np.log(np.finfo(np.float64).max))
"""e to the power of more is infinite."""
_FUNCTIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "identity": lambda sums: sums,
    "softmax": lambda sums: np.exp(sums.T - log_total(sums.T)).T.copy(),
    "step": lambda sums: np.where(np.isnan(sums), np.nan, sums > 0),
    "exponential": np.exp,
    "log_exponential": lambda sums: np.logaddexp(0, sums),
    "signed_square": lambda sums: np.sign(sums) * sums**2,
}
