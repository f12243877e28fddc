"""Reports say how far coefficients can be trusted (LION 4.7), and what to do about it."""

import numpy as np
import pytest

N = 60


def rng(seed=0):
    return np.random.default_rng(seed)


def dependent(noise):
    """Two inputs that are the same but for `noise`; the target is twice the first (LION 4.7)."""
    x = rng(1).normal(size=N)
    return {"a": x, "b": x + noise * rng(2).normal(size=N), "y": 2 * x + 0.1 * rng(3).normal(size=N)}


def warned(report_of, columns, name="linear", **params):
    return report_of(columns, target="y", algorithm={"name": name} | params)


def test_independent_inputs_are_stable(report_of):
    columns = {"a": rng(1).normal(size=N), "b": rng(2).normal(size=N)}
    report = warned(report_of, columns | {"y": columns["a"] - columns["b"] + 0.1 * rng(3).normal(size=N)})
    found = report.conditioning
    assert found.scaled_condition_number < 2
    assert found.rank == 2
    assert max(found.variance_inflation) < 1.2
    assert found.jitter.amplification < 1
    assert not any("take ridge" in warning for warning in report.warnings)


def test_inputs_that_say_the_same_are_not(report_of):
    report = warned(report_of, dependent(1e-3))
    found = report.conditioning
    assert found.scaled_condition_number == pytest.approx(2000, rel=0.5)
    assert min(found.variance_inflation) > 1e5
    assert found.jitter.amplification > 10
    assert max(found.jitter.spread) > 0.01
    assert any("take ridge" in warning for warning in report.warnings)


def test_ridge_calms_them(report_of):
    """B4.9: of a collinear pair, a small penalty gives both the same coefficient, and jitter leaves it alone."""
    wild, calm = (warned(report_of, dependent(1e-9), "ridge", l2=penalty) for penalty in (0.0, 1.0))
    assert calm.conditioning.jitter.amplification < 1
    assert wild.conditioning.jitter.amplification > 10
    one, other = calm.summary["coefficients"]
    assert one == pytest.approx(other, rel=1e-6)
    assert not any("penalty" in warning for warning in calm.warnings)


def test_exactly_dependent_inputs(report_of):
    found = warned(report_of, dependent(0.0)).conditioning
    assert (found.condition_number, found.scaled_condition_number, found.rank) == (None, None, 1)
    assert found.variance_inflation == [None, None]


def test_indicators_are_not_jittered(report_of):
    columns = {"k": np.resize(["u", "v"], N), "y": rng().normal(size=N)}
    found = warned(report_of, columns).conditioning
    assert found.variance_inflation == [None, None]
    assert (found.jitter.amplification, found.jitter.spread) == (None, [0.0, 0.0])


def test_models_without_coefficients_say_nothing(report_of):
    assert warned(report_of, dependent(1.0), "knn").conditioning is None
    classes = dependent(1.0) | {"y": np.resize([0.0, 1.0], N)}
    found = report_of(classes, target="y", task="classification", algorithm={"name": "linear"}).conditioning
    assert found.jitter is None
    assert found.rank == 2


def test_large_data_is_not_jittered(report_of, monkeypatch):
    monkeypatch.setattr("app.ml.training.reporting.coefficient_stability.MOST_CELLS", 10)
    assert warned(report_of, dependent(1.0)).conditioning.jitter is None
    monkeypatch.setattr("app.ml.training.reporting.coefficient_stability.MOST_COLUMNS", 1)
    assert warned(report_of, dependent(1.0)).conditioning is None
