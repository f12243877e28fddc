"""Edges between named rows: read by their names, refused by theirs, and linked as scipy links them."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.contract.relations import Edges
from app.ml.models.model import decode
from app.ml.numerics.clustering.linkage import linkage_of_edges
from app.ml.training.planning.edge_table import read_edges
from app.ml.training.planning.plan import plan
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.relation_request import EdgeRelations
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

GIVEN = EdgeRelations(form="edges", dataset="roads", first="a", second="b", value="km", meaning="dissimilarity")
CITIES = np.array(["Bonn", "Kiel", "Aachen", "Husum"])
ROWS = np.random.default_rng(3).normal(size=(30, 2))


def roads(*edges):
    a, b, km = zip(*edges, strict=True)
    return pa.table({"a": pa.array(a), "b": pa.array(b), "km": pa.array(km, pa.float64())})


def complete(n):
    return Edges(*np.triu_indices(n, 1), pdist(ROWS[:n]))


def test_edges_are_pairs_of_places_each_once_in_order():
    found = read_edges(
        GIVEN,
        roads(
            ("Kiel", "Bonn", 5),
            ("Bonn", "Kiel", 5),
            ("Aachen", "Kiel", None),
            ("Husum", "Bonn", 6),
            ("Bonn", "Bonn", 0),
        ),
        CITIES,
    )
    assert [part.tolist() for part in found[:3]] == [[0, 0], [1, 3], [5.0, 6.0]]
    assert found.weights is None


WEIGHTED = GIVEN.model_copy(update={"weight": "sure"})


def sure(table, *weights):
    return table.append_column("sure", pa.array(weights, pa.float64()))


def test_a_pair_of_weight_0_is_as_one_without_a_value():
    edges = ("Bonn", "Kiel", 5), ("Aachen", "Kiel", 7), ("Husum", "Bonn", 6)
    found = read_edges(WEIGHTED, sure(roads(*edges), 2, 0, 0.5), CITIES)
    assert [part.tolist() for part in found] == [[0, 0], [1, 3], [5.0, 6.0], [2.0, 0.5]]
    unknown = read_edges(WEIGHTED, sure(roads(edges[0], ("Aachen", "Kiel", None), edges[2]), 2, 3, 0.5), CITIES)
    assert [part.tolist() for part in unknown] == [part.tolist() for part in found]
    within = found.within(np.array([3, 0]), 4)
    assert [part.tolist() for part in within] == [[0], [1], [6.0], [0.5]]


def test_several_values_of_a_pair_are_averaged_on_request():
    """Ratings 4, 7 and 1 of one pair: their mean is 4, by the weights 1, 1 and 6 it is 17/8; other pairs stay."""
    ratings = roads(("Bonn", "Kiel", 4), ("Kiel", "Bonn", 7), ("Husum", "Bonn", 6), ("Bonn", "Kiel", 1))
    mean = {"duplicates": "mean"}
    found = read_edges(GIVEN.model_copy(update=mean), ratings, CITIES)
    assert [part.tolist() for part in found[:3]] == [[0, 0], [1, 3], [4.0, 6.0]]
    assert found.weights is None
    weighed = read_edges(WEIGHTED.model_copy(update=mean), sure(ratings, 1, 1, 3, 6), CITIES)
    assert [part.tolist() for part in weighed] == [[0, 0], [1, 3], [17 / 8, 6.0], [8.0, 3.0]]
    with pytest.raises(InvalidData):
        read_edges(GIVEN, ratings, CITIES)


def test_a_pair_with_two_weights_is_refused_with_its_row():
    with pytest.raises(InvalidData) as refused:
        read_edges(WEIGHTED, sure(roads(("Bonn", "Kiel", 5), ("Kiel", "Bonn", 5)), 1, 2), CITIES)
    assert [(one.pointer, "another weight" in one.detail) for one in refused.value.faults] == [
        ("/relations/rows/1/sure", True)
    ]


@pytest.mark.parametrize(
    ("table", "pointer", "detail"),
    [
        (roads(("Bonn", "Kiel", 1), ("Bonn", "Köln", 1)), "/relations/rows/1/b", "no row of this name"),
        (roads(("Bonn", "Kiel", 1), ("Kiel", "Bonn", 2)), "/relations/rows/1/km", "another value"),
        (roads(("Bonn", "Bonn", 1)), "/relations/rows/0/km", "itself is not 0"),
    ],
)
def test_odd_edges_are_refused_with_their_row(table, pointer, detail):
    with pytest.raises(InvalidData) as refused:
        read_edges(GIVEN, table, CITIES)
    [fault] = refused.value.faults
    assert fault.pointer == pointer
    assert detail in fault.detail


@pytest.mark.parametrize("kind", ["single", "complete", "average"])
def test_edges_of_all_pairs_are_linked_as_scipy_does(kind):
    found = linkage_of_edges(complete(30), np.ones(30), kind)
    np.testing.assert_allclose(found.heights, linkage(ROWS, kind)[:, 2], rtol=1e-12)


def test_single_linkage_of_some_pairs_is_their_minimum_spanning_tree():
    pairs, rng = complete(30), np.random.default_rng(0)
    kept = np.flatnonzero(rng.random(pairs.values.size) < 0.4)
    some = Edges(*(part[kept] for part in pairs[:3]))
    full = np.full((30, 30), np.inf)
    full[some.first, some.second] = some.values
    expected = np.sort(minimum_spanning_tree(np.where(np.isinf(full), 0, full)).data)
    np.testing.assert_allclose(linkage_of_edges(some, np.ones(30), "single").heights, expected, rtol=1e-12)


def test_an_edge_of_0_joins_its_rows():
    found = linkage_of_edges(Edges(np.array([0, 1]), np.array([1, 2]), np.array([0.0, 2.0])), np.ones(3), "single")
    assert found.heights.tolist() == [0.0, 2.0]


def test_edges_that_leave_rows_apart_are_refused():
    some = Edges(np.array([0, 2]), np.array([1, 3]), np.ones(2))
    with pytest.raises(InvalidData, match="in 2 groups"):
        linkage_of_edges(some, np.ones(4), "single")
    with pytest.raises(InvalidData, match="4 have none"):
        linkage_of_edges(some, np.ones(4), "average")


def test_edges_within_some_rows_are_counted_among_them():
    within = complete(6).within(np.array([4, 0, 2]), 6)
    square = squareform(pdist(ROWS[:6]))
    assert within.first.tolist() == [0, 0, 1]
    assert within.second.tolist() == [1, 2, 2]
    np.testing.assert_array_equal(within.values, [square[4, 0], square[4, 2], square[0, 2]])


COLUMNS = [TableColumn("city", "categorical", 0, 4), TableColumn("x", "numeric", 0, 4, minimum=0, maximum=9)]
TABLE = pa.table({"city": CITIES.tolist(), "x": [0.0, 5.0, 1.0, 6.0]})


def spec_of(**more):
    relations = GIVEN.model_dump() | more.pop("relations", {})
    algorithm = {"name": "agglomerative", "linkage": "single", "n_clusters": 2}
    return TrainSpec.model_validate({"item": "city", "relations": relations, "algorithm": algorithm} | more)


def edges_of(table, kind="numeric", minimum=1.0):
    columns = [TableColumn(name, "categorical", 0, None) for name in "ab"]
    return RelatedTable("sha256:1", (*columns, TableColumn("km", kind, 0, None, minimum=minimum)), lambda: table)


def test_a_training_joins_rows_by_their_edges_and_its_receipt_names_both_datasets():
    edges = edges_of(roads(("Bonn", "Husum", 1), ("Husum", "Aachen", 9), ("Aachen", "Kiel", 2)))
    planned = plan(spec_of(), COLUMNS, 4, related=edges)
    model = decode(train(planned, TABLE, data_digest="sha256:0").blob)
    assert model.state.labels.tolist() == [0, 1, 1, 0]
    assert model.state.heights.tolist() == [1.0, 2.0, 9.0]
    assert model.receipt["relations_digest"] == "sha256:1"
    assert planned.features == ("x",)


@pytest.mark.parametrize(
    ("more", "edges", "faults"),
    [
        ({"item": None}, edges_of(None), {("/item", "missing")}),
        ({}, None, {("/relations/dataset", "invalid")}),
        ({"relations": {"first": "aa"}}, edges_of(None), {("/relations/first", "unknown_column")}),
        ({}, edges_of(None, kind="categorical"), {("/relations/value", "wrong_kind")}),
        ({}, edges_of(None, minimum=-1.0), {("/relations/value", "negative")}),
        ({"validation": {"method": "bootstrap"}}, edges_of(None), {("/validation/method", "invalid")}),
    ],
)
def test_requests_that_do_not_fit_are_refused_before_a_row_is_read(more, edges, faults):
    with pytest.raises(InvalidRequest) as refused:
        plan(spec_of(**more), COLUMNS, 4, related=edges)
    assert {(fault.pointer, fault.code) for fault in refused.value.faults} == faults
