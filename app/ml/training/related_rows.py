"""Relations between the rows of a table, read for a training."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Meaning
from app.ml.contract.relations import Relations
from app.ml.preparation.arrow_columns import Raw
from app.ml.training.square_table import check_square
from app.ml.training.train_spec import TrainSpec


def read_relations(spec: TrainSpec, raw: Raw, items: NDArray[np.str_] | None, *, gaps: bool) -> Relations | None:
    """Between the rows of the table; None: none are given. Raises InvalidData, naming cells.

    items: names of the rows. gaps: the algorithm takes unknown values.
    """
    if spec.relations is None:
        return None
    meaning = Meaning(spec.relations.meaning)
    check_square(raw, items, meaning, gaps=gaps)
    square = raw.values.view()
    square.setflags(write=False)
    return Relations(meaning, square=square)
