"""Predictions of each member of an ensemble, as an explanation, and their error."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Data, FittedLearner, Matrix, Task


def explained(members: Sequence[tuple[FittedLearner, Matrix]]) -> list[JSON]:
    """For each row the prediction of every member, from its own matrix (n, ·): a number, or the shares of classes."""
    return by_row([member.name for member, _ in members], [member.predict(x) for member, x in members])


def by_row(names: Sequence[str], predictions: Sequence[NDArray[Any]]) -> list[JSON]:
    """For each row the prediction (n, ·) of every member, with the name of its algorithm."""
    return [
        {"members": [{"algorithm": name, "prediction": value} for name, value in zip(names, values, strict=True)]}
        for values in zip(*(prediction.tolist() for prediction in predictions), strict=True)
    ]


def error(data: Data, rows: NDArray[np.intp] | NDArray[np.bool_], predictions: NDArray[np.float64]) -> float:
    """The root mean square error, or the error rate, of predictions of these rows, each by its weight; NaN without
    rows.
    """
    if not len(predictions):
        return math.nan
    if data.task is Task.CLASSIFICATION:
        return float(np.average(predictions.argmax(axis=1) != data.codes[rows], weights=data.weights[rows]))
    return math.sqrt(np.average((predictions - data.y[rows]) ** 2, weights=data.weights[rows]))
