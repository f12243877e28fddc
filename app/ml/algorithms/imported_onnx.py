r"""Imported graph: a model that another library has fitted, as a graph of operations in the format ONNX.

A job of the kind `import` makes such a model; no training does. onnxruntime computes the graph, with one thread: its
numbers are the predictions, or the probabilities of the classes in their order. Where the graph computes with 32 bits
(`arithmetic`), inputs are rounded to them first.

In short: A model of any library that exports ONNX predicts here as it does there. Nothing is fitted.

Use when: a model is neither trees nor a weighted sum, and is to be served as it is: a network of PyTorch, a kernel
machine or a pipeline of scikit-learn.

References: ONNX, Open Neural Network Exchange: its operators of version 1.23; onnxruntime.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Matrix,
    Task,
)
from app.ml.numerics.class_probabilities.link_functions import LinkedSums, has_probabilities, predicted
from app.ml.numerics.onnx_session import computed, session_of


class ImportedONNX(LinkedSums):
    """A graph that another library has written."""


class State(NamedTuple):
    graph: NDArray[np.uint8]
    """The bytes of the model."""
    output: int
    """Place of the output with the numbers."""
    classes: int
    """0 for numbers."""

    @property
    def beside(self) -> int:
        """Bytes of the session of onnxruntime, which has the weights once more."""
        return self.graph.size


def fit(params: ImportedONNX, data: Data, context: Context) -> Fit[State]:
    raise InvalidData("Models of another library are imported, not trained: submit a job to /v1/jobs/import.")


def predict(params: ImportedONNX, state: State, x: Matrix) -> NDArray[np.float64]:
    return predicted(params, sums(params, state, x), classifies=state.classes > 0)


def sums(params: ImportedONNX, state: State, x: Matrix) -> Matrix:
    """(n, k)"""
    return computed(state.graph, state.output, x)


def magnitudes(state: State, x: Matrix) -> Matrix:
    """(n, k) the absolute values of the numbers."""
    return np.abs(computed(state.graph, state.output, x))


def summary(params: ImportedONNX, state: State) -> JSON:
    """Size of the graph, and the names of its inputs and of the output that is read."""
    session = session_of(state.graph)
    inputs = [graph_input.name for graph_input in session.get_inputs()]
    return {"bytes": state.graph.size, "inputs": inputs, "output": session.get_outputs()[state.output].name}


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=ImportedONNX,
    state=State,
    fit=fit,
    predict=predict,
    known=has_probabilities,
    summary=summary,
    accepts={Accepts.MISSING},
    offered=False,
)
