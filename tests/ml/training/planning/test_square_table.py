"""A square table of dissimilarities: fits learn from the columns of their own rows, and odd tables are refused."""

import re

import numpy as np
import pyarrow as pa
import pytest
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import silhouette_score

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.algorithm import Meaning
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.models.model import decode
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.square_table import check_square
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROWS = np.random.default_rng(7).normal(size=(40, 3)) + 4 * (np.arange(40) % 2)[:, None]
SQUARE = cdist(ROWS, ROWS, "cosine") + cdist(ROWS, ROWS)


def spec_of(**more):
    algorithm = more.pop("algorithm", {})
    if "name" not in algorithm:
        algorithm = {"name": "agglomerative", "linkage": "average", "n_clusters": 2} | algorithm
    square = {"form": "square", "meaning": "dissimilarity"}
    return TrainSpec.model_validate({"algorithm": algorithm, "relations": square} | more)


def table_of(square, **beside):
    columns = {f"d{j}": square[:, j] for j in range(square.shape[1])}
    return pa.table(columns | beside)


def planned(spec, table):
    columns = [
        TableColumn(
            name,
            "numeric" if pa.types.is_floating(cells.type) else "categorical",
            cells.null_count,
            None,
            minimum=np.nanmin(cells.to_numpy()) if pa.types.is_floating(cells.type) else None,
        )
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]
    return plan(spec, columns, table.num_rows)


def trained(spec, table):
    return train(planned(spec, table), table, data_digest="sha256:0")


@pytest.mark.parametrize("kind", ["single", "complete", "average"])
def test_the_tree_is_that_of_scipy(kind):
    fitted = trained(spec_of(algorithm={"linkage": kind}), table_of(SQUARE))
    model = decode(fitted.blob)
    expected = linkage(squareform(SQUARE, checks=False), kind)
    np.testing.assert_allclose(model.state.heights, expected[:, 2], rtol=1e-12)
    correlation = cophenet(expected, squareform(SQUARE, checks=False))[0]
    assert model.state.cophenetic[0] == pytest.approx(correlation, rel=1e-9)
    assert model.state.rows.size == 0


def test_the_silhouette_is_of_the_dissimilarities():
    fitted = trained(spec_of(), table_of(SQUARE))
    [silhouette] = [one for one in fitted.report.train if one.name == "silhouette"]
    labels = decode(fitted.blob).state.labels
    assert silhouette.value == pytest.approx(silhouette_score(SQUARE, labels, metric="precomputed"), rel=1e-9)
    assert {one.name for one in fitted.report.train} == {"silhouette", "size", "cophenetic_correlation"}


def test_held_out_rows_are_no_columns_of_the_fit():
    fitted = trained(spec_of(validation={"test_fraction": 0.25}), table_of(SQUARE))
    model = decode(fitted.blob)
    assert len(model.inputs) == 30
    rows = [int(column.name[1:]) for column in model.inputs]
    assert rows == model.state.numbers.tolist()
    held_out = np.setdiff1d(np.arange(40), rows)
    [silhouette] = [one for one in fitted.report.test if one.name == "silhouette"]
    labels = model.state.labels[SQUARE[np.ix_(held_out, rows)].argmin(axis=1)]
    expected = silhouette_score(SQUARE[np.ix_(held_out, held_out)], labels, metric="precomputed")
    assert silhouette.value == pytest.approx(expected, rel=1e-9)


def test_a_training_row_has_its_own_label_and_a_new_row_that_of_the_nearest():
    model = decode(trained(spec_of(algorithm={"n_clusters": 5}), table_of(SQUARE)).blob)
    np.testing.assert_array_equal(model.predict(table_of(SQUARE)).values, model.state.labels)
    row = np.full((1, 40), 9.0)
    row[0, 17] = 0.5
    assert model.predict(table_of(row)).values.tolist() == [model.state.labels[17]]


def test_an_item_may_stand_beside_the_square():
    names = [f"d{j}" for j in range(40)]
    model = decode(trained(spec_of(item="name"), table_of(SQUARE, name=names)).blob)
    assert model.state.items.tolist() == names


def changed(*cells):
    square = SQUARE.copy()
    for row, column, value in cells:
        square[row, column] = value
    return table_of(square)


@pytest.mark.parametrize(
    ("table", "pointers", "detail"),
    [
        (changed((3, 5, 1.25)), ["/rows/3/d5", "/rows/5/d3"], "the other way round"),
        (changed((4, 4, 0.5)), ["/rows/4/d4"], "itself is not 0"),
        (changed((2, 1, np.nan), (1, 2, np.nan)), ["/rows/1/d2", "/rows/2/d1"], "missing"),
        (table_of(SQUARE, name=[f"d{j}" for j in reversed(range(40))]), None, "another order"),
    ],
)
def test_squares_that_are_none_are_refused_with_row_and_column(table, pointers, detail):
    spec = spec_of(item="name") if "name" in table.column_names else spec_of()
    with pytest.raises(InvalidData) as refused:
        trained(spec, table)
    assert all(detail in fault.detail for fault in refused.value.faults)
    assert pointers is None or [fault.pointer for fault in refused.value.faults] == pointers


@pytest.mark.parametrize(
    ("more", "table", "faults"),
    [
        ({}, table_of(SQUARE[:, :39]), {("/relations/form", "not_square")}),
        ({}, table_of(np.where(SQUARE > 1, -SQUARE, SQUARE)[:2, :2]), {("/dataset", "negative")}),
        ({"features": ["d1"]}, table_of(SQUARE), {("/features", "invalid")}),
        ({"preprocessing": {"scaling": "minmax"}}, table_of(SQUARE), {("/preprocessing", "invalid")}),
        ({"algorithm": {"linkage": "ward"}}, table_of(SQUARE), {("/algorithm/linkage", "invalid")}),
        ({"algorithm": {"name": "kmeans"}}, table_of(SQUARE), {("/relations/form", "not_taken")}),
        (
            {"relations": {"form": "square", "meaning": "kernel"}},
            table_of(SQUARE),
            {("/relations/meaning", "not_taken")},
        ),
    ],
)
def test_requests_that_do_not_fit_are_refused_before_a_row_is_read(more, table, faults):
    spec = spec_of(**more)
    with pytest.raises(InvalidRequest) as refused:
        planned(spec, table)
    assert {(fault.pointer, fault.code) for fault in refused.value.faults} == faults


def test_a_square_that_memory_cannot_hold_is_refused_before_the_start():
    table = table_of(SQUARE)
    columns = [TableColumn(name, "numeric", 0, None) for name in table.column_names]
    with pytest.raises(InvalidRequest) as refused:
        plan(spec_of(algorithm={"linkage": "single"}), columns, 40, memory_bytes=1e8)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("/algorithm", "too_large")]


def checked_kernel(square, *, definite=True):
    columns = tuple(RawColumn(f"k{j}", ColumnKind.NUMERIC) for j in range(len(square)))
    raw = Raw(columns, np.asarray(square, float), (None,) * len(square))
    check_square(raw, None, Meaning.KERNEL, (), definite=definite)


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1.0, 1e300])
def test_a_kernel_that_is_not_positive_semidefinite_is_refused_with_its_smallest_eigenvalue(size):
    """Eigenvalues 3 and −1."""
    with pytest.raises(InvalidData) as refused:
        checked_kernel(size * np.array([[1.0, 2.0], [2.0, 1.0]]))
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.code) == ("/relations/meaning", "not_positive_semidefinite")
    assert float(re.search(r"eigenvalue is (\S+)\. ", fault.detail)[1]) == pytest.approx(-size)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_a_kernel_of_inner_products_passes_whatever_its_rank_and_size(size):
    for x in (ROWS, ROWS[:, :1], np.zeros((3, 2))):
        checked_kernel(size * np.round(x @ x.T, 12))


def test_a_kernel_that_is_not_positive_semidefinite_passes_to_an_algorithm_that_projects_it():
    checked_kernel([[1.0, 2.0], [2.0, 1.0]], definite=False)
