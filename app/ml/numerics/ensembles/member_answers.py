"""What each member of several says, as an explanation, and how far from the truth."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Data, Learned, Matrix, Task


def voices(members: Sequence[tuple[Learned, Matrix]]) -> list[JSON]:
    """For each row the answer of every member, which is asked about its own matrix (n, ·): a number, or the shares."""
    result = [(member.name, member.predict(x).tolist()) for member, x in members]
    return [
        {"members": [{"algorithm": name, "prediction": answers[row]} for name, answers in result]}
        for row in range(len(members[0][1]))
    ]


def mistaken(data: Data, rows: NDArray[np.intp] | NDArray[np.bool_], answers: NDArray[np.float64]) -> float:
    """The root mean square error, or the error rate, of answers to these rows, each by its weight; NaN without rows."""
    if not len(answers):
        return math.nan
    if data.task is Task.CLASSIFICATION:
        return float(np.average(answers.argmax(axis=1) != data.codes[rows], weights=data.weights[rows]))
    return math.sqrt(np.average((answers - data.y[rows]) ** 2, weights=data.weights[rows]))
