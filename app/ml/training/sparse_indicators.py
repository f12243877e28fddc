"""Whether a fit gets indicators of categories as sparse rows."""

from typing import Any

from app.ml.contract.algorithm import Accepts, Algorithm, Inputs, Params, Size
from app.ml.contract.columns import ColumnKind
from app.ml.preparation.preparation import Preparation


def takes_indicators(
    algorithm: Algorithm[Any, Any], params: Params, classes: int, preparation: Preparation, rows: int
) -> bool:
    """True if the matrix is mostly zero, and the algorithm takes it sparse with these parameters: those for texts."""
    if Accepts.INDICATORS not in algorithm.accepts or not preparation.mostly_zero(rows):
        return False
    texts = Inputs({"": ColumnKind.TEXT.value}, Size(rows, preparation.layout.width, classes))
    return algorithm.faults is None or not any(algorithm.faults(params, texts))
