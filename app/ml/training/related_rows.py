"""Relations between the rows of a table, read for a training."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Accepts, Meaning
from app.ml.contract.relations import Relations
from app.ml.preparation.arrow_columns import Raw
from app.ml.training.edge_table import read_edges
from app.ml.training.pair_table import read_pairs
from app.ml.training.related_table import RelatedTable
from app.ml.training.square_table import check_square
from app.ml.training.train_spec import TrainSpec


def read_relations(
    spec: TrainSpec,
    raw: Raw,
    items: NDArray[np.str_] | None,
    related: RelatedTable | None,
    *,
    accepts: Collection[Accepts],
) -> Relations | None:
    """Between the rows of the table; None: none are given. Raises InvalidData, naming cells.

    items: names of the rows. accepts: inputs that the algorithm accepts, as unknown values of a square may be.
    """
    if spec.relations is None:
        return None
    given, meaning = spec.relations, Meaning(spec.relations.meaning)
    if given.form == "square":
        check_square(raw, items, meaning, gaps=Accepts.UNKNOWN_PAIRS in accepts)
        square = raw.values.view()
        square.setflags(write=False)
        return Relations(meaning, square=square)
    if related is None or related.read is None or items is None:
        raise ValueError("only a plan with the table of relations reads rows")
    table = related.read()
    edges = read_edges(given, table, items) if given.form == "edges" else read_pairs(given, table, items)
    return Relations(meaning, edges=edges, by_item=related.alone)
