"""Neighbours carry the numbers of their rows in the dataset."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import cdist

from app.base.errors import BodyTooLarge, InvalidData
from app.ml.contract.columns import TableColumn
from app.ml.kinds.query import Subject
from app.ml.models.model import decode
from app.ml.queries import explain, neighbours
from app.ml.queries.neighbours import NeighboursRequest
from app.ml.tables.row_forms import PredictRequest
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

N = 60
RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(N, 2)), RNG.uniform(1, 9, N)
UNKNOWN = np.arange(N) % 4 == 0
TABLE = pa.table(
    {
        "a": X[:, 0],
        "b": X[:, 1],
        "y": pa.array(Y, mask=UNKNOWN),
        "kind": pa.array(np.where(Y > 5, "high", "low"), mask=UNKNOWN),
    }
)
COLUMNS = [TableColumn(name, "numeric", 0, N) for name in "ab"]
COLUMNS += [TableColumn("y", "numeric", 15, 45), TableColumn("kind", "categorical", 15, 2)]
ROWS = [{"a": 0.1, "b": -0.3}, {"a": 1.0, "b": 2.0}]


def fitted(target="y", preprocessing=None, **algorithm):
    spec = TrainSpec.model_validate(
        {
            "target": target,
            "features": ["a", "b"],
            "algorithm": {"name": "knn", **algorithm},
            "preprocessing": {"scaling": "none", **(preprocessing or {})},
        }
    )
    trained = train(plan(spec, COLUMNS, N), TABLE, data_digest="sha256:0")
    return Subject("m", 1, "sha256:0", decode(trained.blob), 1000)


def near(subject, **request):
    return neighbours.QUERY.run(subject, NeighboursRequest(rows=ROWS, **request)).neighbours


def far(requested, row):
    return np.hypot(requested["a"] - X[row, 0], requested["b"] - X[row, 1])


def test_rows_are_those_of_the_dataset():
    """Rows without a target, and rows held out, leave gaps in the numbers."""
    for requested, found in zip(ROWS, near(fitted()), strict=True):
        assert len(found) == 5
        for one in found:
            assert one.target == Y[one.row]
            assert one.distance == pytest.approx(far(requested, one.row))
        assert [one.distance for one in found] == sorted(one.distance for one in found)


def test_an_explanation_has_the_rows_of_the_dataset():
    subject = fitted()
    explained = explain.QUERY.run(subject, PredictRequest({"rows": ROWS})).explanations
    for requested, reason in zip(ROWS, explained, strict=True):
        for one in reason["neighbours"]:
            assert one["target"] == Y[one["row"]]
            assert one["distance"] == pytest.approx(far(requested, one["row"]))


def test_classes_are_labels():
    for found in near(fitted("kind")):
        assert [one.target for one in found] == ["high" if Y[one.row] > 5 else "low" for one in found]


def test_shares_make_up_the_prediction():
    subject = fitted(weights="distance")
    predicted = subject.model.predict(pa.Table.from_pylist(ROWS)).values
    totals = [sum(one.share * one.target for one in found) for found in near(subject)]
    assert totals == pytest.approx(predicted)


def test_targets_are_in_their_own_unit():
    for found in near(fitted(preprocessing={"target": "log"})):
        assert [one.target for one in found] == pytest.approx([Y[one.row] for one in found])


def test_the_number_of_neighbours_can_be_chosen():
    assert [len(found) for found in near(fitted(), n_neighbors=2)] == [2, 2]
    many = near(fitted(), n_neighbors=1000)[0]
    assert len({one.row for one in many}) == len(many) < N


@pytest.mark.parametrize("scaling", ["standard", "none"])
@pytest.mark.parametrize("metric", ["cosine", "mahalanobis", "range_manhattan"])
def test_distances_are_of_the_metric(metric, scaling):
    """In the prepared columns: scaling moves the origin of angles, and nothing else here."""
    subject = fitted(metric=metric, preprocessing={"scaling": scaling})
    known = np.sort(subject.model.state.numbers)
    queries, rows = np.array([[one["a"], one["b"]] for one in ROWS]), X[known]
    if metric == "cosine" and scaling == "standard":
        queries, rows = ((part - rows.mean(axis=0)) / rows.std(axis=0) for part in (queries, rows))
    span = np.ptp(rows, axis=0)
    expected = {
        "cosine": lambda: cdist(queries, rows, "cosine"),
        "mahalanobis": lambda: cdist(queries, rows, "mahalanobis", VI=np.linalg.inv(np.cov(rows.T))),
        "range_manhattan": lambda: cdist(queries / span, rows / span, "cityblock"),
    }[metric]()
    order = np.argsort(expected, axis=1)[:, :5]
    for found, far, nearest in zip(near(subject), expected, order, strict=True):
        assert [one.row for one in found] == known[nearest].tolist()
        assert [one.distance for one in found] == pytest.approx(far[nearest], rel=1e-9)


def test_prototypes_are_no_rows():
    for one in near(fitted(prototypes=3), n_neighbors=2)[0]:
        assert one.row is None
        assert one.prototype in range(3)


def test_more_neighbours_than_fit_into_a_response_are_refused(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_NEIGHBOURS", 9)
    with pytest.raises(BodyTooLarge, match="may send 1 rows"):
        near(fitted())
    assert len(near(fitted(), n_neighbors=4)) == 2


def test_rows_that_cannot_be_read_are_named():
    with pytest.raises(InvalidData) as refused:
        neighbours.QUERY.run(fitted(), NeighboursRequest(rows=[{"a": "x", "b": 1}]))
    assert [fault.pointer for fault in refused.value.faults] == ["/rows/0/a"]
