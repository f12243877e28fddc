"""Categories in generative Bayes: one distribution an input in every density family, against counts by hand."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Task
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.training.test_train import sheet

FAMILIES = ["naive_gaussian", "shared_covariance", "full_covariance", "histogram", "kernel"]


def fitted(table, target, density, **params):
    algorithm = {"name": "generative_bayes", "density": density, "smoothing": 0, **params}
    spec = TrainSpec.model_validate({"target": target, "algorithm": algorithm, "validation": {"test_fraction": 0}})
    return decode(train(plan(spec, sheet(table), table.num_rows), table, data_digest="sha256:0").blob)


def screening(kind):
    """9 of 10 sick are positive, and 1 of 20 well, as words or as truth values."""
    positive = np.r_[np.ones(9, bool), False, True, np.zeros(19, bool)]
    cells = np.where(positive, "+", "-") if kind == "words" else positive
    return pa.table({"test": cells, "state": np.repeat(["sick", "well"], [10, 20])})


@pytest.mark.parametrize("kind", ["words", "truth values"])
@pytest.mark.parametrize("density", FAMILIES)
def test_a_positive_test_counts_once(density, kind):
    """B3.8: P(sick | +) = 0.009/(0.009 + 0.0495) = 0.1538, and 0.99 of 0.001 + 0.9405 are well without it."""
    model = fitted(screening(kind), "state", density, priors=[0.01, 0.99])
    found = model.predict(screening(kind)).probabilities[:, 0]
    assert found[0] == pytest.approx(0.009 / (0.009 + 0.0495), rel=1e-9)
    assert found[-1] == pytest.approx(0.001 / (0.001 + 0.9405), rel=1e-9)


@pytest.mark.parametrize("density", FAMILIES)
def test_three_levels_are_counted_once(density):
    """Red is 3 of 4 in the first class and 1 of 4 in the second, blue 1 and 1, and green 0 and 2."""
    colours = ["red"] * 3 + ["blue"] + ["red", "blue", "green", "green"]
    table = pa.table({"colour": colours, "class": np.repeat(["a", "b"], 4)})
    found = fitted(table, "class", density).predict(table.take([0, 3, 6])).probabilities[:, 0]
    np.testing.assert_allclose(found, [0.75, 0.5, 0.0], atol=1e-12)


def test_smoothing_and_several_inputs_are_scikit_learns():
    rng = np.random.default_rng(0)
    codes, classes = np.column_stack([rng.integers(0, 3, 200), rng.integers(0, 5, 200)]), rng.integers(0, 3, 200)
    table = pa.table(
        {"a": [f"a{c}" for c in codes[:, 0]], "b": [f"b{c}" for c in codes[:, 1]], "y": classes.astype(str)}
    )
    model = fitted(table, "y", "naive_gaussian", smoothing=1.5)
    expected = CategoricalNB(alpha=1.5).fit(codes, classes).predict_proba(codes)
    np.testing.assert_allclose(model.predict(table).probabilities, expected, rtol=1e-9)


def test_numbers_beside_categories_are_independent_of_them():
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 2, 300)
    x, codes = rng.normal(classes, 1.0), (rng.random(300) < 0.3 + 0.4 * classes).astype(int)
    table = pa.table({"x": x, "c": np.array(["u", "v"])[codes], "y": classes.astype(str)})
    found = fitted(table, "y", "naive_gaussian", smoothing=1).predict(table).probabilities
    logs = GaussianNB(var_smoothing=0).fit(x[:, None], classes).predict_log_proba(x[:, None])
    both = CategoricalNB(alpha=1, fit_prior=False).fit(codes[:, None], classes).predict_log_proba(codes[:, None]) + logs
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(both[:, 0] - both[:, 1])), rtol=1e-9)


@pytest.mark.parametrize("density", FAMILIES)
def test_an_unknown_level_says_nothing_and_explanations_add_up(density):
    rng = np.random.default_rng(2)
    table = pa.table({"x": rng.normal(size=60), "c": rng.choice(["u", "v"], 60), "y": rng.choice(["no", "yes"], 60)})
    model = fitted(table, "y", density, smoothing=1)
    rows = pa.table({"x": [0.1, 0.1], "c": ["u", "never seen"]})
    raw = model.preparation.matrix(model.preparation.raw(rows))
    assert (raw[1, 1:] == 0).all()
    for row, shares in zip(
        model.algorithm.explain(model.params, model.state, raw), model.predict(rows).probabilities, strict=True
    ):
        joint = np.add(row["log_priors"], row["log_densities"]) - row["log_evidence"]
        np.testing.assert_allclose(np.exp(joint), shares, rtol=1e-9)


def outer_learners():
    """Every classifier with learners within it, with these densities in place of each that it may have."""
    density, plain = {"name": "generative_bayes"}, {"name": "knn"}
    for name, entry in catalogue().items():
        fields = entry.algorithm.params.model_fields
        if entry.algorithm.members is None or Task.CLASSIFICATION not in entry.algorithm.tasks:
            continue
        inner = {"estimator": density, "estimators": [density, plain], "final_estimator": density}
        chosen = {field: value for field, value in inner.items() if field in fields}
        if chosen:
            yield pytest.param({"name": name, **chosen}, id=name)


@pytest.mark.parametrize("algorithm", outer_learners())
def test_within_another_learner_categories_are_those_of_its_own_columns(algorithm):
    """Whatever columns the outer learner hands on: all of them, some, coordinates, or predictions of others."""
    rng = np.random.default_rng(3)
    codes, levels = rng.integers(0, 2, 90), np.array(["u", "v"])
    columns = {"x": rng.normal(codes), "c": levels[codes], "flag": rng.random(90) < 0.5, "z": rng.normal(size=90)}
    table = pa.table(columns | {"y": np.array(["no", "yes"])[codes]})
    spec = TrainSpec.model_validate({"target": "y", "algorithm": algorithm})
    model = decode(train(plan(spec, sheet(table), table.num_rows), table, data_digest="sha256:0").blob)
    shares = model.predict(table).probabilities
    assert np.isfinite(shares).all()
    assert (shares.argmax(axis=1) == codes).mean() > 0.8
