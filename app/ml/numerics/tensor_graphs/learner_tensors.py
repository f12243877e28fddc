"""Predictions of learners inside learners as tensors."""

from app.ml.contract.algorithm import FittedLearner
from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.tensor_graph import Tensor


def learner_tensor(learner: FittedLearner, x: Tensor) -> Tensor:
    """(n, k) the predictions of rows (n, d); of numbers (n, 1). Raises ExportUnsupported where they are no graph."""
    graph = learner.algorithm.graph
    if graph is None:
        raise ExportUnsupported("A learner inside this one has no graph of tensor operations.")
    if learner.view is None:
        return graph(learner.params, learner.state, x)
    return learner.view.to_tensor(x, lambda rows: graph(learner.params, learner.state, rows))
