"""The matrix of training rows: an array, or sparse rows where these serve better."""

from typing import Any

from app.ml.contract.algorithm import Accepts, Algorithm, Inputs, Labels, Matrix, Params, Size
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.arrow_columns import Raw
from app.ml.preparation.preparation import Preparation


def matrix_of(
    learner: tuple[Algorithm[Any, Any], Params, int], preparation: Preparation, raw: Raw, rows: Labels
) -> Matrix:
    """These rows of a table, not writable, so that they are taken as they are and not copied.

    learner: algorithm, parameters and number of classes.
    """
    sparse = takes_indicators(*learner, preparation, rows.size)
    x = (preparation.sparse_of if sparse else preparation.of)(raw, rows)
    x.setflags(write=False)
    return x


def takes_indicators(
    algorithm: Algorithm[Any, Any], params: Params, classes: int, preparation: Preparation, rows: int
) -> bool:
    """True if the matrix is mostly zero, and the algorithm takes it sparse with these parameters: those for texts."""
    if Accepts.INDICATORS not in algorithm.accepts or not preparation.mostly_zero(rows):
        return False
    texts = Inputs({"": ColumnKind.TEXT.value}, Size(rows, preparation.layout.width, classes))
    return algorithm.faults is None or not any(algorithm.faults(params, texts))
