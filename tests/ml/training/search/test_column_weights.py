"""Importance of table columns in a fit: grouped indicators, units, and the results of selections in forks."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.models import state_format
from app.ml.training.fitting.fit import fit_rows
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from app.ml.training.search.column_selection import _Eliminated
from app.ml.training.search.column_subsets import SubsetScore
from app.ml.training.search.column_weights import column_weights
from tests.ml.jobs.test_combine import flats
from tests.ml.jobs.test_evaluate import sheet


def weights(table, **spec):
    requested = TrainSpec.model_validate({"target": "rent", "features": ["size", "rooms", "place", "garden"]} | spec)
    training_set = TrainingSet.read(plan(requested, sheet(table).columns, table.num_rows), table)
    fitted = fit_rows(training_set, np.arange(training_set.rows), 0)
    return training_set, fitted, column_weights(training_set, fitted)


@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_a_column_counts_by_the_variance_of_what_it_contributes(scaling):
    table = flats(200)
    training_set, fitted, found = weights(table, algorithm={"name": "linear"}, preprocessing={"scaling": scaling})
    names, coef = fitted.preparation.layout.names, training_set.algorithm.linear(fitted.fit.state).coef[:, 0]
    for place, name in enumerate(["size", "rooms", "place", "garden"]):
        own = [at for at, column in enumerate(names) if column == name or column.startswith(f"{name}=")]
        assert found[place] == pytest.approx((fitted.data.x[:, own] @ coef[own]).var(), rel=1e-9)
    assert found.argmax() == 0


def test_units_play_no_part():
    table = flats(200)
    larger = table.set_column(1, "rooms", pa.array(1000 * table["rooms"].to_numpy()))
    one, other = (weights(own, algorithm={"name": "linear"}, preprocessing={"scaling": "none"})[2]
                  for own in (table, larger))  # fmt: skip
    np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", ["decision_tree", "gradient_boosting", "random_forest"])
def test_declared_importances_are_those_of_the_report(name):
    training_set, fitted, found = weights(flats(200), algorithm={"name": name})
    listed = training_set.algorithm.summary(training_set.params, fitted.fit.state)["importances"]
    names, expected = fitted.preparation.layout.names, np.zeros(4)
    for one in listed:
        place = ["size", "rooms", "place", "garden"].index(names[one["column"]].partition("=")[0])
        expected[place] += one.get("importance", one.get("increase"))
    np.testing.assert_allclose(found, expected)
    assert found.argmax() == 0


@pytest.mark.parametrize(
    "one",
    [
        SubsetScore(np.array([1.0, 2.0])),
        SubsetScore(np.zeros(0), "It cannot."),
        _Eliminated([np.arange(3), np.arange(2)], np.array([np.nan, 0.5])),
    ],
)
def test_results_pass_between_processes(one):
    arrays = {}
    found = state_format.unpack(type(one), state_format.pack(one, "one", arrays), arrays)
    for before, after in zip(one, found, strict=True):
        np.testing.assert_equal(after, before)
