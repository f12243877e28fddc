"""Least squares as springs at rest (LION 4.6), against the fit's own metrics."""

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

X, Y = np.arange(5.0), np.array([1.1, 1.9, 5.2, 9.8, 17.1])
SIGMA = np.array([0.1, 0.1, 0.2, 0.2, 0.4])


def report(algorithm, x=X, y=Y, *, preprocessing=None, **spec):
    columns = {"x": x, "z": np.cos(3 * x), "y": y, "error": SIGMA if x is X else np.ones(len(x))}
    table = pa.table(columns)
    request = {
        "algorithm": {"name": "linear"} | algorithm,
        "target": "y",
        "features": ["x", "z"] if x is not X else ["x"],
        "validation": {"test_fraction": 0},
        "preprocessing": {"scaling": "none"} | (preprocessing or {}),
    }
    sheet = [TableColumn(name, "numeric", 0, len(x)) for name in columns]
    return train(
        plan(TrainSpec.model_validate(request | spec), sheet, table.num_rows), table, data_digest="sha256:0"
    ).report


def test_strength_is_one_over_the_squared_error_and_energy_half_of_chi2():
    """The line of B5.1: χ² = 432.451735."""
    result = report({}, sigma="error")
    springs = result.springs
    assert springs.strengths == pytest.approx(1 / SIGMA**2)
    assert springs.energy == pytest.approx(432.451735 / 2, rel=2e-8) == pytest.approx(result.summary["chi2"] / 2)
    assert springs.energy == pytest.approx(sum(springs.energies))
    assert (springs.rows, springs.observed) == ([0, 1, 2, 3, 4], Y.tolist())
    lengths = np.subtract(springs.observed, springs.fitted)
    np.testing.assert_allclose(springs.energies, lengths**2 / SIGMA**2 / 2)
    np.testing.assert_allclose(springs.fitted, 0.1021692 + 3.02277657 * X, atol=1e-7)
    assert (springs.force, *springs.torques) == pytest.approx((0, 0), abs=1e-9)
    assert springs.at_rest


def rows(n=60):
    rng = np.random.default_rng(3)
    x = rng.normal(5, 2, n)
    return x, 1 + 2 * x + np.cos(3 * x) + rng.normal(size=n)


def test_springs_of_equal_strength_are_plain_least_squares():
    springs = report({}, *rows()).springs
    assert set(springs.strengths) == {1.0}
    assert springs.at_rest


def test_a_penalty_holds_what_the_springs_turn():
    """Ridge rests where Xᵀ(y − Xβ − b) = λβ."""
    result = report({"name": "ridge", "l2": 30.0}, *rows())
    np.testing.assert_allclose(result.springs.torques, 30 * np.array(result.summary["coefficients"]), rtol=1e-9)
    assert result.springs.force == pytest.approx(0, abs=1e-9)
    assert not result.springs.at_rest


def test_without_an_intercept_the_bar_may_rise_but_does_not_turn():
    springs = report({"fit_intercept": False}, *rows()).springs
    assert abs(springs.force) > 0.1
    assert springs.torques == pytest.approx([0, 0], abs=1e-9)
    assert springs.at_rest


def test_a_perfect_fit_rests_in_spite_of_rounding():
    x = rows()[0]
    assert report({}, x, 1e6 + 3 * x).springs.at_rest


def test_they_pull_in_the_units_of_the_fit():
    x, _ = rows()
    springs = report({}, x, np.exp(x / 4), preprocessing={"target": "log"}).springs
    np.testing.assert_allclose(springs.observed, x / 4)
    assert springs.at_rest


def test_other_models_have_none():
    assert report({"name": "knn"}, *rows()).springs is None
