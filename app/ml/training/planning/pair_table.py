"""A dataset of pairs of named rows that must belong together, or cannot."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.base.faults import Fault
from app.ml.contract.algorithm import Vector
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.relations import Edges
from app.ml.numerics.clustering.pair_constraints import together
from app.ml.preparation.arrow_columns import measured
from app.ml.training.planning.related_table import AT, distinct_edges, places, refuse
from app.ml.training.planning.relation_request import PairRelations

SIGNS = {"must": 1.0, "cannot": -1.0}


def pair_faults(pair_relations: PairRelations, columns_by_name: Mapping[str, TableColumn]) -> Iterator[Fault]:
    """columns_by_name: columns of the dataset of pairs by name."""
    kind, weight = columns_by_name.get(pair_relations.kind), columns_by_name.get(pair_relations.weight or "")
    if kind is not None and kind.kind in {ColumnKind.NUMERIC, ColumnKind.BOOLEAN, ColumnKind.DATETIME}:
        yield Fault(f"{AT}/kind", f"This column is {kind.kind}; its cells are must or cannot.", "wrong_kind")
    if weight is None:
        return
    if weight.kind != ColumnKind.NUMERIC:
        yield Fault(f"{AT}/weight", f"Weights are numbers; this column is {weight.kind}.", "wrong_kind")
    elif weight.missing or (weight.minimum is not None and weight.minimum <= 0):
        yield Fault(f"{AT}/weight", "Every pair needs a weight above 0.", "bad_weight")


def read_pairs(pair_relations: PairRelations, table: pa.Table, items: NDArray[np.str_]) -> Edges:
    """Pairs by the places of their rows among the items, with their weights, negative for rows that cannot be together.

    Rows are together with those that a row must be together with must be together with, and so on. Raises InvalidData,
    naming rows of the dataset of pairs, for pairs that contradict each other.
    """
    first, second = places(table, pair_relations.first, items), places(table, pair_relations.second, items)
    signed = _signs(table, pair_relations.kind)
    refuse(np.flatnonzero((first == second) & (signed < 0)), pair_relations.kind, "A row cannot be apart from itself")
    weights = (
        np.ones(len(signed))
        if pair_relations.weight is None
        else measured(table.column(pair_relations.weight), pair_relations.weight)
    )
    edges = distinct_edges(first, second, signed * weights, pair_relations.kind)
    groups = together(edges, len(items))
    conflicting = np.flatnonzero((signed < 0) & (groups[first] == groups[second]))
    refuse(conflicting, pair_relations.kind, "Other pairs have it that these rows must be together")
    return edges


def _signs(table: pa.Table, name: str) -> Vector:
    words = table.column(name).cast(pa.string()).to_pylist()
    signs = np.array([SIGNS.get(str(word).strip().lower(), 0.0) for word in words])
    refuse(np.flatnonzero(signs == 0), name, "The cell is neither must nor cannot")
    return signs
