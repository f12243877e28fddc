"""A dataset of edges: pairs of named rows of another dataset, each with a value."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.faults import Fault
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.relations import Edges
from app.ml.preparation.arrow_columns import measured
from app.ml.training.planning.related_table import AT, distinct_edges, places, refuse
from app.ml.training.planning.relation_request import EdgeRelations


def edge_faults(given: EdgeRelations, known: Mapping[str, TableColumn]) -> Iterator[Fault]:
    """known: columns of the dataset of edges by name."""
    column, weight = known.get(given.value), known.get(given.weight or "")
    if column is None:
        pass
    elif column.kind != ColumnKind.NUMERIC:
        yield Fault(f"{AT}/value", f"Values of pairs are numbers; this column is {column.kind}.", "wrong_kind")
    elif given.meaning != "kernel" and column.minimum is not None and column.minimum < 0:
        yield Fault(f"{AT}/value", "This column has values below 0.", "negative")
    if weight is None:
        return
    if weight.kind != ColumnKind.NUMERIC:
        yield Fault(f"{AT}/weight", f"Weights are numbers; this column is {weight.kind}.", "wrong_kind")
    elif weight.missing or (weight.minimum is not None and weight.minimum < 0):
        yield Fault(f"{AT}/weight", "Every pair needs a weight of at least 0.", "bad_weight")


def read_edges(given: EdgeRelations, table: pa.Table, items: NDArray[np.str_]) -> Edges:
    """Edges by the places of their rows among the items; those without a value, or of weight 0, are left out.

    Raises InvalidData, naming rows of the dataset of edges.
    """
    first, second = places(table, given.first, items), places(table, given.second, items)
    values = measured(table.column(given.value), given.value)
    weights = None if given.weight is None else (measured(table.column(given.weight), given.weight), given.weight)
    if weights is not None:
        values = np.where(weights[0] > 0, values, np.nan)
    if given.meaning == "dissimilarity":
        own = np.flatnonzero((first == second) & (values != 0) & ~np.isnan(values))
        refuse(own, given.value, "The dissimilarity of a row to itself is not 0")
    return distinct_edges(first, second, values, given.value, weights, average=given.duplicates == "mean")
