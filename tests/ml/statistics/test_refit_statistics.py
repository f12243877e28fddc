"""Refits on resamples: spread of coefficients, predictions and metrics (LION 5.3)."""

import json
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm
from scipy import stats

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.jobs.bootstrap import KIND
from app.ml.kinds.job import Inputs, JobContext, Sheet, Source
from app.ml.statistics.refit_statistics import distribution, ellipses, rectangle

N, NOWHERE = 120, UUID(int=0)


def rng(seed=0):
    return np.random.default_rng(seed)


def columns():
    draw = rng(1)
    a, b = draw.normal(100, 20, N), draw.normal(size=N)
    return {"a": a, "b": b, "city": draw.choice(["x", "y"], N), "y": 3 + a / 10 - 2 * b + draw.normal(size=N)}


def bootstrap_request(**changes):
    training = {"target": "y", "features": ["a", "b"], "algorithm": {"name": "linear"}}
    request = {"dataset": str(NOWHERE), "training": training | changes.pop("training", {}), "resamples": 300}
    return KIND.request.model_validate(request | changes)


def sheet(table):
    kinds = ["categorical" if pa.types.is_string(cells.type) else "numeric" for cells in table.columns]
    found = zip(table.column_names, kinds, table.columns, strict=True)
    return Sheet("sha256:0", len(table), tuple(TableColumn(n, k, c.null_count, len(c.unique())) for n, k, c in found))


def refitted(received=None, table=None, **changes):
    table = pa.table(columns() if table is None else table)
    request = bootstrap_request(**changes)
    KIND.check(request, JobContext((sheet(table),)))
    source = Source(sheet(table), iter([table]))
    return KIND.run(
        request, Inputs((source,)), (lambda *messages: received.append(messages)) if received is not None else silent
    ).result


def silent(*_):
    """Nobody listens."""


@pytest.fixture(scope="module")
def linear():
    return refitted(rows=[{"a": 100.0, "b": 0.0}, {"a": 150, "b": None}], resamples=1000)


def test_coefficients_spread_as_theory_says(linear):
    """Standard errors of the refits are the robust ones, which like resampled rows assume no equal noise."""
    data = columns()
    fit = sm.OLS(data["y"], sm.add_constant(np.column_stack([data["a"], data["b"]]))).fit(cov_type="HC3")
    assert [found.name for found in linear.coefficients] == ["(intercept)", "a", "b"]
    for found, value, error in zip(linear.coefficients, fit.params, fit.bse, strict=True):
        assert found.estimate == pytest.approx(value, rel=1e-9)
        assert found.standard_error == pytest.approx(error, rel=0.12)
        assert found.upper - found.lower == pytest.approx(2 * stats.norm.ppf(0.95) * error, rel=0.15)
        assert found.lower <= found.median <= found.upper, "erratum E7: percentiles, which hold the median"
        assert sum(part.count for part in found.histogram) == found.defined == 1000
        assert found.interval == "bootstrap (percentile)"
        assert "±" in found.display


@pytest.mark.slow
def test_simulated_noise_spreads_as_the_textbook_says():
    """Refits of targets that the model itself could have given: the standard errors of equal, normal noise."""
    data = columns()
    fit = sm.OLS(data["y"], sm.add_constant(np.column_stack([data["a"], data["b"]]))).fit()
    found = refitted(draw="noise", resamples=1500)
    for one, error in zip(found.coefficients, fit.bse, strict=True):
        assert one.standard_error == pytest.approx(error, rel=0.06)
    assert found.measures == []
    with pytest.raises(InvalidRequest) as caught:
        refitted(draw="noise", interval="accelerated", training={"target": "city"})
    assert [fault.pointer for fault in caught.value.faults] == ["/draw", "/interval"]


def test_predictions_have_error_bars(linear):
    one, other = linear.predictions
    assert (one.row, other.row, one.name) == (0, 1, "prediction")
    assert one.estimate == pytest.approx(13, abs=0.3)
    assert one.standard_error < other.standard_error, "far from the middle of the data less is known"


def test_measures_are_of_rows_not_drawn(linear):
    found = {measure.name: measure for measure in linear.measures}
    assert set(found) == {"rmse", "mae", "r2"}
    assert found["rmse"].lower < 1.0 < found["rmse"].upper
    assert found["rmse"].estimate == found["rmse"].mean


def test_a_rectangle_holds_all_at_once_and_is_wider(linear):
    region = linear.rectangle
    assert 0.9 <= region.holds < 0.95
    for place, found in enumerate(linear.coefficients):
        assert region.lower[place] < found.lower < found.upper < region.upper[place]


def test_ellipses_lean_with_the_correlation(linear):
    first, *_ = linear.ellipses
    assert first.names == ["(intercept)", "a"]
    assert len(linear.ellipses) == 3
    assert first.covariance[0][1] < 0
    assert first.radius == pytest.approx(first.normal_radius, rel=0.1)
    assert first.normal_radius == pytest.approx(np.sqrt(stats.chi2.ppf(0.9, 2)), rel=1e-12)


def test_an_ellipse_by_hand():
    """A cross of four points in each direction: axes 2:1, turned by 45 degrees."""
    turned = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    points = rng().normal(size=(20_000, 2)) * [2.0, 1.0] @ turned
    (found,) = ellipses(["u", "v"], points, 0.954)
    assert found.angle == pytest.approx(45, abs=1)
    assert found.semi_axes == pytest.approx(np.array([2, 1]) * found.radius, rel=0.03)
    assert found.radius == pytest.approx(found.normal_radius, rel=0.02)
    away = points - found.centre
    inside = (away @ np.linalg.inv(found.covariance) * away).sum(axis=1) <= found.radius**2
    assert inside.mean() == pytest.approx(0.954, abs=1e-3)


@pytest.mark.parametrize("confidence", [0.683, 0.9, 0.954, 0.99])
def test_rectangles_hold_their_share(confidence):
    draws = rng().exponential(size=(2000, 3)) + rng(1).normal(size=(2000, 1))
    found = rectangle(draws, confidence)
    assert confidence <= found.holds < confidence + 0.02
    inside = ((draws >= found.lower) & (draws <= found.upper)).all(axis=1)
    assert inside.mean() == found.holds


def test_intervals_of_a_mean_hold_it():
    """A skewed law at 90 %: refits of the mean of 40 exponential values, 400 times."""
    held, draws = np.zeros(2), rng().integers(0, 40, (300, 40))
    for seed in range(400):
        values = rng(seed).exponential(size=40)
        left_out = (values.sum() - values) / 39
        refits = values[draws].mean(axis=1)
        for place, jackknife in enumerate((None, left_out)):
            found = distribution(values.mean(), refits, jackknife, 0.9, name="mean")
            held[place] += found.lower <= 1 <= found.upper
    assert (held / 400 > 0.84).all()
    assert 0.87 <= held[1] / 400 <= 0.94


def test_few_and_constant_refits():
    few = distribution(1.0, np.append(np.ones(5), np.full(95, np.nan)), None, 0.9, name="u")
    assert (few.lower, few.defined, few.display) == (None, 5, "1")
    alike = distribution(2.0, np.full(60, 2.0), None, 0.9, name="u")
    assert (alike.lower, alike.upper, alike.standard_error, alike.display) == (2.0, 2.0, 0.0, "2")
    assert [part.count for part in alike.histogram] == [60]
    nothing = distribution(np.nan, np.full(60, np.nan), None, 0.9, name="u")
    assert (nothing.estimate, nothing.display) == (None, "undefined")
    assert ellipses(["u", "v"], np.ones((60, 2)), 0.9) == []
    assert ellipses(["u", "v"], np.outer(np.arange(60.0), [1, 2]), 0.9) == []
    assert rectangle(np.full((60, 2), np.nan), 0.9) is None


def test_accelerated_intervals_leave_each_row_out_once():
    received = []
    found = refitted(received, interval="accelerated", resamples=200)
    assert {one.interval for one in found.coefficients} == {"bootstrap (accelerated)"}
    assert received[-1][1] == f"fit {1 + 200 + N} of {1 + 200 + N}"
    assert found.coefficients[1].lower < 0.1 < found.coefficients[1].upper


@pytest.mark.parametrize("name", ["logistic", "ridge", "knn", "decision_tree"])
def test_classes(name):
    training = {"target": "city", "algorithm": {"name": name}}
    found = refitted(training=training, rows=[{"a": 90, "b": 0}], resamples=50)
    assert [(one.label, one.name) for one in found.predictions] == [("x", "probability"), ("y", "probability")]
    assert sum(one.estimate for one in found.predictions) == pytest.approx(1)
    labels = {one.label for one in found.coefficients}
    assert labels == {"logistic": {"y"}, "ridge": {"x", "y"}}.get(name, set())
    assert {"accuracy", "log_loss"} <= {one.name for one in found.measures}
    averaged = {(one.name, one.label) for one in found.measures if one.average == "macro"}
    assert {("f1", None), ("precision", None), ("recall", None)} <= averaged
    assert len({(one.name, one.label) for one in found.measures}) == len(found.measures)


@pytest.mark.parametrize("name", ["lasso", "linear_sgd"])
def test_whoever_has_a_coefficient_for_each_column(name):
    found = refitted(training={"algorithm": {"name": name}}, resamples=50)
    assert [(one.name, one.label) for one in found.coefficients] == [("(intercept)", None), ("a", None), ("b", None)]
    assert found.coefficients[1].lower < 0.1 + 0.03
    assert found.coefficients[1].upper > 0.1 - 0.03


def test_a_square_of_coefficients_is_read_only_by_those_who_say_how():
    table = columns() | {"city": np.resize(["x", "y"], N)}
    names = {"training": {"target": "city", "algorithm": {"name": "ridge"}}}
    found = {(one.name, one.label): one.estimate for one in refitted(table=table, resamples=50, **names).coefficients}
    assert found["a", "x"] == pytest.approx(-found["a", "y"], rel=1e-6), "two columns, two classes"


def test_a_category_may_be_absent_from_a_resample():
    table = columns()
    table["city"][0] = "z"
    training = {"features": ["a", "city"], "algorithm": {"name": "ridge"}}
    found = {one.name: one for one in refitted(table=table, training=training, resamples=200).coefficients}
    assert found["city=z"].defined == pytest.approx(200 * (1 - (1 - 1 / N) ** N), abs=30)
    assert found["a"].defined == 200


@pytest.mark.parametrize("algorithm", ["kmeans", "pca"])
def test_without_a_target(algorithm):
    training = {"target": None, "algorithm": {"name": algorithm}}
    found = refitted(training=training, resamples=50)
    assert found.coefficients == found.predictions == []
    assert found.measures[0].defined == 50
    with pytest.raises(InvalidRequest) as caught:
        refitted(training=training, rows=[{"a": 1, "b": 2}])
    assert [fault.pointer for fault in caught.value.faults] == ["/rows"]


def test_the_seed_decides_and_progress_never_goes_back():
    received = []
    one, same, other = (refitted(received, resamples=50, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert json.loads(one.model_dump_json())["coefficients"]
    fractions = [fraction for fraction, _, _ in received[: len(received) // 3]]
    assert fractions == sorted(fractions)
    assert received[5][2].keys() == {"rmse", "mae", "r2"}


def test_faults_point_into_the_request():
    known = JobContext((sheet(pa.table(columns())),))
    with pytest.raises(InvalidRequest) as caught:
        KIND.check(bootstrap_request(training={"target": "nowhere"}), known)
    assert [fault.pointer for fault in caught.value.faults] == ["/training/target"]
    with pytest.raises(InvalidData) as caught:
        KIND.check(bootstrap_request(rows=[{"a": "wide", "b": 1}]), known)
    assert [fault.pointer for fault in caught.value.faults] == ["/rows/0/a"]
    for changes in ({"training": None}, {"model": "m"}):
        request = KIND.request.model_validate(
            {"dataset": str(NOWHERE), "training": bootstrap_request().training} | changes
        )
        with pytest.raises(InvalidRequest) as caught:
            KIND.needs(request)
        assert [fault.pointer for fault in caught.value.faults] == ["/training"]


def test_the_estimate_counts_fits():
    table = pa.table(columns())
    one, more = (
        KIND.check(bootstrap_request(interval=interval), JobContext((sheet(table),))).estimate
        for interval in ("percentile", "accelerated")
    )
    assert (one.fits, more.fits) == (301, 301 + N)
    assert more.seconds >= one.seconds
