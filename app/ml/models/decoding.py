"""From predictions back to rows: the prototype of a label, or the row at coordinates."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.base.errors import BodyTooLarge, NotOffered
from app.base.faults import Fault
from app.ml.contract.algorithm import Matrix
from app.ml.models.model import Model

MOST_VALUES = 1_000_000
"""Values of all rows of a response."""


def decodes(model: Model) -> bool:
    """True if there is a way from predictions back to rows."""
    algorithm = model.algorithm
    labelled = algorithm.prototypes is not None and model.task.labels
    return model.preparation.restorable and (labelled or algorithm.inverse is not None)


def _prototypes(model: Model) -> Matrix | None:
    """(k, d) rows of the labels 0 … k-1; None: it predicts coordinates. Raises NotOffered where labels have no rows."""
    prototypes = model.algorithm.prototypes
    if prototypes is None:
        return None
    rows = prototypes(model.params, model.state)
    if rows is None:
        raise NotOffered(
            "The model learned from dissimilarities, which are not the columns of any row: its report names the rows."
        )
    return rows


def check_size(model: Model, rows: int, max_rows: int) -> None:
    """Raises BodyTooLarge for more rows than a response holds."""
    most = min(max_rows, max(1, MOST_VALUES // max(1, len(model.inputs))))
    if rows > most:
        raise BodyTooLarge(f"One response holds {most} rows of this model, not {rows}.")


def decoded(model: Model, predictions: NDArray[Any]) -> Matrix:
    """(n, d) rows of the matrix that predictions stand for. Raises NotOffered for a model that does not decode."""
    algorithm, prototypes = model.algorithm, _prototypes(model)
    if prototypes is not None:
        rows: Matrix = prototypes[predictions]
        return rows
    if algorithm.inverse is None:
        raise NotOffered
    with np.errstate(all="ignore"):
        return algorithm.inverse(model.params, model.state, predictions)


def prediction_faults(model: Model, predictions: Sequence[int | list[float]]) -> Iterator[Fault]:
    """Faults of predictions that the model cannot have made. Raises NotOffered as `decoded`."""
    prototypes = _prototypes(model)
    if prototypes is not None:
        k = len(prototypes)
        wrong = [not isinstance(prediction, int) or not 0 <= prediction < k for prediction in predictions]
        needed = f"A label of this model is a whole number from 0 to {k - 1}."
    else:
        row = np.zeros((1, model.preparation.layout.width))
        p = model.algorithm.predict(model.params, model.state, row).shape[1]
        wrong = [
            not isinstance(prediction, list) or len(prediction) != p or not np.isfinite(prediction).all()
            for prediction in predictions
        ]
        needed = f"A prediction of this model is a list of {p} finite numbers."
    return (Fault(f"/predictions/{i}", needed) for i in np.flatnonzero(wrong).tolist())
