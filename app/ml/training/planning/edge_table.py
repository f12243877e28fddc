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


def edge_faults(edge_relations: EdgeRelations, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
    """columns_by_name: columns of the dataset of edges by name."""
    column, weight = columns_by_name.get(edge_relations.value), columns_by_name.get(edge_relations.weight or "")
    if column is None:
        pass
    elif column.kind != ColumnKind.NUMERIC:
        yield Fault(f"{AT}/value", f"Values of pairs are numbers; this column is {column.kind}.", "wrong_kind")
    elif edge_relations.meaning != "kernel" and column.minimum is not None and column.minimum < 0:
        yield Fault(f"{AT}/value", "This column has values below 0.", "negative")
    if weight is None:
        return
    if weight.kind != ColumnKind.NUMERIC:
        yield Fault(f"{AT}/weight", f"Weights are numbers; this column is {weight.kind}.", "wrong_kind")
    elif weight.missing or (weight.minimum is not None and weight.minimum < 0):
        yield Fault(f"{AT}/weight", "Every pair needs a weight of at least 0.", "bad_weight")


def read_edges(edge_relations: EdgeRelations, table: pa.Table, items: NDArray[np.str_]) -> Edges:
    """Edges by the places of their rows among the items; those without a value, or of weight 0, are left out.

    Raises InvalidData, naming rows of the dataset of edges.
    """
    first, second = places(table, edge_relations.first, items), places(table, edge_relations.second, items)
    values = measured(table.column(edge_relations.value), edge_relations.value)
    weights = (
        None
        if edge_relations.weight is None
        else (measured(table.column(edge_relations.weight), edge_relations.weight), edge_relations.weight)
    )
    if weights is not None:
        values = np.where(weights[0] > 0, values, np.nan)
    if edge_relations.meaning == "dissimilarity":
        self_edges = np.flatnonzero((first == second) & (values != 0) & ~np.isnan(values))
        refuse(self_edges, edge_relations.value, "The dissimilarity of a row to itself is not 0")
    return distinct_edges(
        first, second, values, edge_relations.value, weights, average=edge_relations.duplicates == "mean"
    )
