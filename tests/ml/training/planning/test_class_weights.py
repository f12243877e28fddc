"""Class weights: scikit-learn's fits, rows that are repeated, metrics of the rows as they are, and refusals."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.algorithm import Data, Task
from app.ml.evaluation.splits import holdout
from app.ml.models.model import decode
from app.ml.training.fitting.leave_one_out import closed_form
from app.ml.training.planning import cost
from app.ml.training.planning.class_weights import weighted
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.train import train
from tests.ml.jobs.test_evaluate import sheet
from tests.ml.training.beyond_memory import plan_within as plan

PLAIN = {"scaling": "none"}


def rare(n=400, seed=0):
    """One row in ten is of the second class, which overlaps the first."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    x = rng.normal(size=(n, 3)) + y[:, None] * [1.0, 0.5, 0.0]
    return x, y


def table(x, y, **more):
    return pa.table({f"x{j}": column for j, column in enumerate(x.T)} | {"y": [["no", "yes"][c] for c in y]} | more)


def trained(data, memory_bytes=np.inf, **spec):
    spec = TrainSpec.model_validate({"target": "y", "preprocessing": PLAIN, "validation": {"test_fraction": 0}} | spec)
    return train(plan(spec, sheet(data).columns, data.num_rows, memory_bytes), data, data_digest="sha256:own")


def probabilities(data, **spec):
    return decode(trained(data, **spec).blob).predict(data).probabilities[:, 1]


@pytest.mark.parametrize(
    ("class_weight", "theirs"),
    [("balanced", "balanced"), ({"yes": 7.0, "no": 0.5}, {1: 7.0, 0: 0.5}), ({"yes": 4}, {1: 4.0})],
    ids=["balanced", "both", "one"],
)
def test_logistic_is_scikit_learns(class_weight, theirs):
    x, y = rare()
    peer = LogisticRegression(C=np.inf, class_weight=theirs, tol=1e-10, max_iter=1000).fit(x, y)
    ours = probabilities(table(x, y), algorithm={"name": "logistic", "l2": 1e-12}, class_weight=class_weight)
    np.testing.assert_allclose(ours, peer.predict_proba(x)[:, 1], rtol=1e-6)


def test_a_tree_is_scikit_learns():
    x, y = rare()
    peer = DecisionTreeClassifier(max_leaf_nodes=6, class_weight="balanced", random_state=0).fit(x, y)
    tree = {"name": "decision_tree", "max_leaf_nodes": 6, "min_samples_leaf": 1e-9, "prior_weight": 0}
    ours = probabilities(table(x, y), algorithm=tree, class_weight="balanced")
    np.testing.assert_allclose(ours, peer.predict_proba(x)[:, 1], rtol=1e-9)


def test_a_whole_weight_repeats_the_rows_of_the_class():
    x, y = rare()
    repeated = np.repeat(np.arange(y.size), np.where(y == 1, 3, 1))
    model = {"name": "logistic", "l2": 0.1}
    once = decode(trained(table(x, y), algorithm=model, class_weight={"yes": 3}).blob)
    often = decode(trained(table(x[repeated], y[repeated]), algorithm=model).blob)
    new = table(*rare(seed=1))
    np.testing.assert_allclose(once.predict(new).probabilities, often.predict(new).probabilities, rtol=1e-7)


def test_every_class_counts_as_much_beside_the_weights_of_rows():
    y, weights = np.array([0, 0, 0, 2, 2]), np.array([1.0, 2, 3, 1, 3])
    data = Data.of(Task.CLASSIFICATION, np.zeros((5, 1)), y, classes=3, weights=weights, labels=("a", "b", "c"))
    balanced = weighted("balanced", data)
    assert (balanced.weights @ data.targets).tolist() == pytest.approx([5, 0, 5])
    assert balanced.weights[:3] / weights[:3] == pytest.approx(np.full(3, 5 / 6))
    assert weighted(None, data) is data


def test_labels_of_any_type_have_weights():
    for labels, names in (((False, True), ("false", "true")), ((0, 7), ("0", "7")), ((0.5, 1.5), ("0.5", "1.5"))):
        data = Data.of(Task.CLASSIFICATION, np.zeros((2, 1)), [0, 1], labels=labels)
        assert weighted({names[1]: 2.0}, data).weights.tolist() == [1, 2]


def test_metrics_are_of_the_rows_as_they_are():
    x, y = rare()
    data = table(x, y)
    done = trained(data, algorithm={"name": "logistic"}, class_weight="balanced", validation={"test_fraction": 0.5})
    rng = np.random.Generator(np.random.PCG64(0))
    test = holdout(y.size, 0.5, rng, y, None).test
    predicted = decode(done.blob).predict(data.take(pa.array(test))).predictions
    right = np.mean([found == ["no", "yes"][c] for found, c in zip(predicted, y[test], strict=True)])
    assert next(m.value for m in done.report.test if m.name == "accuracy") == pytest.approx(right)
    assert done.report.rows_test == test.size


def test_leave_one_out_fits_anew():
    x, y = rare(60)
    spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": "knn"}, "preprocessing": PLAIN})
    for class_weight in None, "balanced":
        planned = plan(spec.model_copy(update={"class_weight": class_weight}), sheet(table(x, y)).columns, 60)
        found = closed_form(TrainingSet.read(planned, table(x, y)), np.arange(60))
        assert (found is None) is (class_weight is not None)


def faults(memory_bytes=np.inf, n=400, **spec):
    x, y = rare(n)
    with pytest.raises((InvalidRequest, InvalidData)) as raised:
        trained(table(x, y, z=x[:, 0]), memory_bytes, **spec)
    return [(fault.pointer, fault.detail) for fault in raised.value.faults]


def test_what_has_no_classes_is_refused():
    (fault,) = faults(target="z", algorithm={"name": "ridge"}, class_weight="balanced")
    assert fault == ("/class_weight", "Only classes have weights; this is regression. Leave it out.")


def test_a_class_that_is_not_there_is_refused_with_the_closest_name():
    (fault,) = faults(algorithm={"name": "logistic"}, class_weight={"yess": 2})
    assert fault == ("/class_weight/yess", "The target has no class 'yess'; did you mean 'yes'?")


def test_batches_take_given_weights_and_cannot_be_balanced(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 3000)
    monkeypatch.setattr("app.ml.training.fitting.out_of_core.BLOCK", 64)
    monkeypatch.setattr(cost, "FEWEST", 100)
    x, y = rare(8000)
    data, perceptron = table(x, y), {"name": "perceptron"}
    assert trained(data, 1, algorithm=perceptron, class_weight={"yes": 5}).report.rows_train == 8000
    (fault,) = faults(1, 8000, algorithm=perceptron, class_weight="balanced")
    assert fault[0] == "/class_weight"
    assert "Give each class its weight" in fault[1]
