"""Relations between rows: every algorithm learns from each form that it declares, and refuses the others by name."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.algorithm import Accepts, Form, Meaning, TargetUse
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.evaluation.validation import Validation
from app.ml.models.golden import check_golden
from app.ml.models.model import decode
from app.ml.preparation.request import Preprocessing
from app.ml.training.planning.edge_rows import read_edge_rows
from app.ml.training.planning.plan import plan
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.contract.drawn_tables import plain, sheet

GIVEN = {
    (Form.SQUARE, Meaning.DISSIMILARITY): {},
    (Form.SQUARE, Meaning.SIMILARITY): {},
    (Form.SQUARE, Meaning.KERNEL): {},
    (Form.EDGES, Meaning.DISSIMILARITY): {"value": "value"},
    (Form.EDGES, Meaning.SIMILARITY): {"value": "value"},
    (Form.EDGES, Meaning.KERNEL): {"value": "value"},
    (Form.PAIRS, Meaning.CONSTRAINT): {"kind": "kind"},
}
SQUARES = {Accepts.UNKNOWN_PAIRS}
"""Squares with unknown values are drawn for algorithms that accept them."""
PARAMETERS = {
    "agglomerative": {"linkage": "single"},
    "metric_learning": {"method": "pairs"},
    "one_class_svm": {"indefinite": "project"},
    "svm": {"indefinite": "project"},
    "svr": {"indefinite": "project"},
    "transductive_svm": {"indefinite": "project"},
}
"""Parameters with which an algorithm takes relations, where the defaults do not."""


def spec_of(case, form, meaning):
    relations = {"form": form} | GIVEN[form, meaning]
    if form is not Form.PAIRS:
        relations["meaning"] = meaning
    if form is not Form.SQUARE:
        relations |= {"dataset": "related", "first": "one", "second": "other"}
    body = plain(case).spec.model_dump(exclude={"algorithm", "features", "target"}, exclude_unset=True)
    algorithm = {"name": case.entry.name} | PARAMETERS.get(case.entry.name, {})
    target = {"target": "y"} if case.algorithm.target_use(case.task) is TargetUse.NEEDED else {}
    return TrainSpec.model_validate(body | target | {"algorithm": algorithm, "item": "name", "relations": relations})


def tables(case, form, meaning):
    """The dataset of a request, and the one that its relations name."""
    table = plain(case).table
    needed = case.algorithm.target_use(case.task) is TargetUse.NEEDED
    beside = table.select(["y", "name"] if needed else ["name"])
    x = np.stack([table[f"x{j}"].to_numpy() for j in range(3)], axis=1)
    square = np.abs(x[:, None] - x).sum(axis=2)
    if meaning is Meaning.KERNEL and "indefinite" not in PARAMETERS.get(case.entry.name, {}):
        square = np.exp(-square)
    if form is Form.SQUARE:
        return pa.table({f"to {j}": column for j, column in enumerate(square)} | dict(_columns(beside))), None
    names = table["name"].to_pylist()
    rows = list(combinations(range(0, len(names), 1 if form is Form.EDGES else 7), 2))
    related = {"one": [names[i] for i, _ in rows], "other": [names[j] for _, j in rows]}
    if form is Form.EDGES:
        related["value"] = [square[i, j] for i, j in rows]
    else:
        related["kind"] = ["must" if (i + j) % 14 == 0 else "cannot" for i, j in rows]
    drawn = table.select(["x0", "x1", "x2", *beside.column_names])
    return drawn, pa.table(related)


def _columns(table):
    return zip(table.column_names, table.columns, strict=True)


def planned(case, form, meaning):
    table, related = tables(case, form, meaning)
    named = None if related is None else RelatedTable("sha256:1", tuple(_sheet(related)), lambda: related)
    return plan(spec_of(case, form, meaning), sheet(table), table.num_rows, related=named), table


def _sheet(table):
    for name, cells in _columns(table):
        kind = ColumnKind.NUMERIC if pa.types.is_floating(cells.type) else ColumnKind.CATEGORICAL
        yield TableColumn(name, kind, 0, None)


@pytest.mark.parametrize(("form", "meaning"), GIVEN, ids=lambda part: part.value)
def test_relations_are_learned_from_or_refused_by_name(case, form, meaning):
    taken = case.algorithm.relations.get(form, ())
    if meaning in taken:
        request, table = planned(case, form, meaning)
        made = train(request, table, data_digest="sha256:0")
        assert made.blob == train(request, table, data_digest="sha256:0").blob
        check_golden(decode(made.blob), made.golden)
        return
    with pytest.raises(InvalidRequest) as refused:
        planned(case, form, meaning)
    faults = {fault.pointer: fault.detail for fault in refused.value.faults if fault.code == "not_taken"}
    (where,) = faults
    assert where == ("/relations/meaning" if taken else "/relations/form")
    assert faults[where].startswith(f"{case.entry.name} takes ")


@pytest.mark.parametrize("meaning", [meaning for form, meaning in GIVEN if form is Form.EDGES])
def test_edges_alone_are_learned_from_and_items_predicted(case, meaning):
    """With edges between all rows the columns add nothing: items have the predictions of the rows that they name."""
    if meaning not in case.algorithm.relations.get(Form.EDGES, ()):
        with pytest.raises(InvalidRequest):
            planned(case, Form.EDGES, meaning)
        return
    request, table = planned(case, Form.EDGES, meaning)
    table = table.sort_by("name")
    beside = decode(train(request, table, data_digest="sha256:0").blob).predict(table).predictions
    alone = request.spec.model_copy(update={"validation": Validation(), "preprocessing": Preprocessing()})
    if not case.algorithm.edges_alone:
        with pytest.raises(InvalidRequest, match="learns from columns as well"):
            read_edge_rows(alone, request.related, request.related.read(), math.inf)
        return
    edges, by_item = read_edge_rows(alone, request.related, request.related.read(), math.inf), table.select(["name"])
    made = train(edges.planned, edges.table, data_digest="sha256:0")
    assert decode(made.blob).predict(by_item).predictions == beside
    check_golden(decode(made.blob), made.golden)


@pytest.mark.parametrize("meaning", [meaning for form, meaning in GIVEN if form is Form.SQUARE])
def test_unknown_values_of_a_square_are_learned_from_or_refused_with_their_cells(case, meaning):
    if meaning not in case.algorithm.relations.get(Form.SQUARE, ()):
        return
    request, table = planned(case, Form.SQUARE, meaning)
    for row, column in ((3, 8), (8, 3)):
        cells = table[f"to {column}"].to_pylist()
        table = table.set_column(column, f"to {column}", pa.array([*cells[:row], None, *cells[row + 1 :]]))
    if Accepts.UNKNOWN_PAIRS in case.algorithm.accepts:
        made = train(request, table, data_digest="sha256:0")
        check_golden(decode(made.blob), made.golden)
        return
    with pytest.raises(InvalidData) as refused:
        train(request, table, data_digest="sha256:0")
    assert [fault.pointer for fault in refused.value.faults] == ["/rows/3/to 8", "/rows/8/to 3"]
