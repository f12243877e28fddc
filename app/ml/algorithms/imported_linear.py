r"""Imported linear model: weighted sums of the inputs that scikit-learn has fitted, read from a file of the client.

A job of the kind `import` makes such a model; no training does. Each sum is Σⱼ xⱼ wⱼ + b in 64 bits, and a function
(`transform`) makes the prediction of it: the sum itself, the logistic function of it (`sigmoid`), `softmax` of several
sums, exp(sum), or 1 where it is above 0 (`step`). Scalers of a pipeline are part of the weights; what its imputer fills
in is kept beside them. Without an imputer no input may be missing.

In short: A linear model of another library predicts here as it did there. Nothing is fitted.

Use when: a fitted linear or logistic regression exists, and is to be served as it is.

>>> state = State(np.array([[2.0], [-1.0]]), np.array([0.5]), 2)
>>> predict(ImportedLinear(transform="sigmoid"), state, np.array([[0.0, 0.5], [1.0, 0.0]])).round(4).tolist()
[[0.5, 0.5], [0.0759, 0.9241]]

References: Pedregosa et al. (2011), J. Mach. Learn. Res. 12:2825 (scikit-learn).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Matrix,
    Task,
    Vector,
)
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.class_probabilities.link_functions import LinkedSums, has_probabilities, predicted
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.tensor_graphs.class_tensors import linked_values


class ImportedLinear(LinkedSums):
    """Weights that another library has fitted."""


class State(NamedTuple):
    coef: Matrix
    """(d, k)"""
    base: Vector
    """(k,) the constant of each sum."""
    classes: int
    """0 for numbers."""


def fit(params: ImportedLinear, data: Data, context: Context) -> Fit[State]:
    raise InvalidData("Models of another library are imported, not trained: submit a job to /v1/jobs/import.")


def predict(params: ImportedLinear, state: State, x: Matrix) -> NDArray[np.float64]:
    return predicted(params, sums(params, state, x), classifies=state.classes > 0)


def sums(params: ImportedLinear, state: State, x: Matrix) -> Matrix:
    """(n, k)"""
    return np.asarray(each_row(x, state.coef) + state.base)


def magnitudes(state: State, x: Matrix) -> Matrix:
    """(n, k) the absolute values of the terms of each sum, added."""
    return np.asarray(np.abs(x) @ np.abs(state.coef) + np.abs(state.base))


def summary(params: ImportedLinear, state: State) -> JSON:
    """Number of weights, and the constants."""
    return {"weights": state.coef.size, "base": state.base.tolist()}


def to_tensor(params: ImportedLinear, state: State, x: Tensor) -> Tensor:
    return linked_values(params, x @ state.coef + state.base, classifies=state.classes > 0)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=ImportedLinear,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    known=has_probabilities,
    summary=summary,
    offered=False,
    rowwise=True,
)
