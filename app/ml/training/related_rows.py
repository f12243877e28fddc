"""Relations between the rows of a table, read for a training."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Meaning
from app.ml.contract.relations import Relations
from app.ml.preparation.arrow_columns import Raw
from app.ml.training.edge_table import EdgeTable, read_edges
from app.ml.training.square_table import check_square
from app.ml.training.train_spec import TrainSpec


def read_relations(
    spec: TrainSpec, raw: Raw, items: NDArray[np.str_] | None, edges: EdgeTable | None, *, gaps: bool
) -> Relations | None:
    """Between the rows of the table; None: none are given. Raises InvalidData, naming cells.

    items: names of the rows. gaps: the algorithm takes unknown values of a square.
    """
    if spec.relations is None:
        return None
    meaning = Meaning(spec.relations.meaning)
    if spec.relations.form == "edges":
        if edges is None or edges.read is None or items is None:
            raise ValueError("only a plan with the table of edges reads rows")
        return Relations(meaning, edges=read_edges(spec.relations, edges.read(), items))
    check_square(raw, items, meaning, gaps=gaps)
    square = raw.values.view()
    square.setflags(write=False)
    return Relations(meaning, square=square)
