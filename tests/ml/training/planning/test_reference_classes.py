"""A clustering with a target: the same fit as without it, whatever the target's gaps and kinds."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROWS = 90
RNG = np.random.default_rng(5)
TABLE = pa.table(
    {
        "a": RNG.normal(size=ROWS) + np.arange(ROWS) % 3 * 5,
        "b": RNG.normal(size=ROWS),
        "word": [None if i % 4 == 0 else "xyz"[i % 3] for i in range(ROWS)],
        "number": (np.arange(ROWS) % 3).astype(np.float64),
        "none": pa.array([None] * ROWS, pa.string()),
        "weight": RNG.uniform(1, 2, ROWS),
    }
)
COLUMNS = [
    TableColumn("a", "numeric", 0, ROWS),
    TableColumn("b", "numeric", 0, ROWS),
    TableColumn("word", "categorical", 23, 3),
    TableColumn("number", "numeric", 0, 3),
    TableColumn("none", "categorical", ROWS, 0),
    TableColumn("weight", "numeric", 0, ROWS),
]


def run(algorithm, **spec):
    request = {"algorithm": {"name": algorithm, "n_clusters": 3}, "features": ["a"], "weights": "weight"} | spec
    return train(plan(TrainSpec.model_validate(request), COLUMNS, ROWS), TABLE, data_digest="sha256:0")


@pytest.mark.parametrize("algorithm", ["kmeans", "agglomerative"])
@pytest.mark.parametrize("target", ["word", "number"])
def test_the_fit_is_the_one_without_a_target_to_the_bit(algorithm, target):
    with_target, without = run(algorithm, target=target), run(algorithm)
    one, other = decode(with_target.blob), decode(without.blob)
    for name, own, theirs in zip(one.state._fields, one.state, other.state, strict=True):
        assert np.asarray(own).tobytes() == np.asarray(theirs).tobytes(), name
    assert (one.target, one.classes) == (None, None)
    assert one.receipt["spec"]["target"] == target
    shared = [metric for metric in with_target.report.train if metric.name != "purity" and not metric.note]
    assert shared == [metric for metric in without.report.train if not metric.note]
    found = {metric.name: metric for metric in with_target.report.train}["adjusted_rand"]
    assert found.value > 0.9
    assert found.n == (67 if target == "word" else ROWS)


def test_rows_without_a_class_are_learned_from():
    assert run("kmeans", target="word").report.rows_train == ROWS


@pytest.mark.parametrize(("target", "why"), [("none", "Every value of the target is missing"), ("wurd", "no column")])
def test_a_target_that_cannot_be_compared_with_is_refused(target, why):
    with pytest.raises(InvalidRequest) as refusal:
        run("kmeans", target=target)
    (fault,) = refusal.value.faults
    assert fault.pointer == "/target"
    assert why in fault.detail
