"""Edges as the only table of a training: its rows are the items that the edges name."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Form
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.evaluation.validation import Validation
from app.ml.preparation.arrow_columns import distinct
from app.ml.preparation.request import Preprocessing
from app.ml.tables.cell_casting import recast_cells
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.related_table import AT, RelatedTable
from app.ml.training.planning.relation_request import EdgeRelations
from app.ml.training.planning.square_table import AS_IT_IS
from app.ml.training.planning.train_spec import TrainSpec

ITEM = "item"
"""Name of the input of the model, unless the request names another."""
ROLES = "target", "features", "weights", "sigma", "difficulty", "kinds"


class EdgeRows(NamedTuple):
    planned: Plan
    table: pa.Table
    """(n, 1) the items, ascending."""


def edges_of(spec: TrainSpec) -> EdgeRelations:
    """The relations of a training without a dataset of rows. Raises InvalidRequest for others than edges."""
    if isinstance(spec.relations, EdgeRelations):
        return spec.relations
    detail = "A training needs a dataset; only edges can be given alone, in relations."
    raise InvalidRequest(faults=[Fault("/dataset", detail, "missing")])


def plan_edges(spec: TrainSpec, related: RelatedTable, edges: int, memory_bytes: float) -> Plan:
    """The plan before the edges are read, by the smallest number of items that they can have.

    edges: rows of their dataset. Raises InvalidRequest with every fault of the request.
    """
    relations = edges_of(spec)
    counts = [column.distinct or 0 for column in related.columns if column.name in {relations.first, relations.second}]
    return _plan(spec, related, max(2, math.isqrt(edges), *counts), memory_bytes)


def read_edge_rows(spec: TrainSpec, related: RelatedTable, edges: pa.Table, memory_bytes: float) -> EdgeRows:
    """The items of the edges, and their plan. Raises InvalidRequest as `plan_edges`."""
    relations = edges_of(spec)
    for name in {relations.first, relations.second}:
        cells = recast_cells(edges.column(name), ColumnKind.CATEGORICAL)
        edges = edges.set_column(edges.column_names.index(name), name, cells)
    named = pa.chunked_array([*edges.column(relations.first).chunks, *edges.column(relations.second).chunks])
    table = pa.table({spec.item or ITEM: distinct(named)})
    related = related._replace(read=lambda: edges)
    return EdgeRows(_plan(spec, related, table.num_rows, memory_bytes), table)


def _plan(spec: TrainSpec, related: RelatedTable, items: int, memory_bytes: float) -> Plan:
    faults, column = [*_faults(spec)], _item_column(spec, related, items)
    try:
        planned = plan(_alone(spec, column), [column], items, memory_bytes, related=related._replace(alone=True))
    except InvalidRequest as error:
        faults_of_plan = (
            fault._replace(pointer=f"{AT}/dataset") if fault.pointer == "/dataset" else fault for fault in error.faults
        )
        raise InvalidRequest(faults=[*faults, *faults_of_plan]) from None
    if faults:
        raise InvalidRequest(faults=faults)
    return planned._replace(spec=planned.spec.model_copy(update={"features": None}))


def _faults(spec: TrainSpec) -> Iterator[Fault]:
    """Fields that are about columns of rows, of which there are none."""
    algorithm = nested.entry_of(spec.algorithm).algorithm
    if Form.EDGES in algorithm.relations and not algorithm.edges_alone:
        detail = f"{spec.algorithm.name} learns from columns as well: give a dataset of rows beside the edges."
        yield Fault("/dataset", detail, "missing")
    fields, split = dict(spec), dict(spec.validation)
    for role in ROLES:
        if fields[role]:
            yield Fault(f"/{role}", f"Without a dataset rows have no columns: leave {role} out.")
    for role in ("group", "time"):
        if split[role]:
            yield Fault(f"/validation/{role}", f"Without a dataset rows have no columns: leave {role} out.")
    if spec.preprocessing not in (Preprocessing(), AS_IT_IS):
        yield Fault("/preprocessing", "Without a dataset there are no columns to prepare: leave preprocessing out.")
    learned = "Nothing is known of an item but its edges to others, so all are learned from"
    if spec.validation.method != "holdout":
        yield Fault("/validation/method", f"{learned}: leave validation out.")
    if spec.validation.held_out:
        yield Fault("/validation/test_fraction", f"{learned}: hold none out.")


def _item_column(spec: TrainSpec, related: RelatedTable, items: int) -> TableColumn:
    """The items as a column, of the kind of the columns that name them if that is one kind of numbers or times."""
    relations = edges_of(spec)
    kinds = {column.kind for column in related.columns if column.name in {relations.first, relations.second}}
    measured = len(kinds) == 1 and all(ColumnKind(kind).measured for kind in kinds)
    kind = kinds.pop() if measured else ColumnKind.CATEGORICAL.value
    return TableColumn(spec.item or ITEM, kind, missing=0, distinct=items)


def _alone(spec: TrainSpec, column: TableColumn) -> TrainSpec:
    """The request for a table of the items, and nothing else."""
    measured = ColumnKind(column.kind).measured
    return spec.model_copy(
        update=dict.fromkeys(ROLES)
        | {
            "features": [column.name],
            "item": column.name,
            "kinds": {column.name: "categorical"} if measured else {},
            "preprocessing": AS_IT_IS,
            "validation": Validation(test_fraction=0.0),
        }
    )
