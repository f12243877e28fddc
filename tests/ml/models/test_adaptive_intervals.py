"""Intervals whose width follows the prediction, that end where the target does, and whose coverage is reported."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import CorruptModel, InvalidData, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.models import safetensors_format
from app.ml.models.conformal import Calibration, chosen
from app.ml.models.model import decode, encode
from app.ml.statistics.error_by_prediction import error_of_predictions, error_spread
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.reporting.interval_report import interval_report, warnings
from app.ml.training.train import train

COLUMNS = [TableColumn(name, "numeric", 0, 1000) for name in ("a", "b", "price")]


def prices(n, seed):
    """Prices about 1 + 10 a, log-normal noise of 30 %: a model of `a` is right, and its errors grow with the price."""
    rng = np.random.default_rng(seed)
    a, b = rng.exponential(size=n), rng.normal(size=n)
    return pa.table({"a": a, "b": b, "price": (1 + 10 * a) * np.exp(0.3 * rng.normal(size=n) - 0.045)})


def trained(table, algorithm="ridge", *, validation=None, **preprocessing):
    spec = {"target": "price", "algorithm": {"name": algorithm}, "preprocessing": preprocessing}
    spec |= {"validation": validation or {}}
    return train(plan(TrainSpec.model_validate(spec), COLUMNS, table.num_rows), table, data_digest="sha256:0")


def fifths(predicted, ends, truth):
    """Coverage by fifths of the prediction."""
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return np.array([inside[rows].mean() for rows in np.array_split(np.argsort(predicted), 5)])


def simulated(m, repetitions, *, adaptive):
    """Mean coverage of 1,000 fresh rows by fifths, with the true price as the prediction."""
    covered = np.zeros(5)
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        price = np.exp(rng.normal(size=m + 1000))
        truth = price * np.exp(0.3 * rng.normal(size=price.size))
        found = Calibration.of(price[:m], truth[:m])
        if not adaptive:
            found = Calibration(np.sort(np.abs(price[:m] - truth[:m])))
        covered += fifths(price[m:], found.ends(price[m:], 0.95), truth[m:]) / repetitions
    return covered


@pytest.mark.parametrize("m", [300, 1000])
def test_every_fifth_is_covered(m):
    covered = simulated(m, 100, adaptive=True)
    assert covered.min() >= 0.90
    assert 0.94 <= covered.mean() <= 0.96
    assert simulated(m, 100, adaptive=False).min() < 0.80  # of constant width


@pytest.mark.slow
@pytest.mark.parametrize("m", [200, 300, 1000])
def test_every_fifth_is_covered_in_a_thousand_repetitions(m):
    covered = simulated(m, 1000, adaptive=True)
    assert covered.min() >= 0.90
    assert 0.945 <= covered.mean() <= 0.96


@pytest.mark.parametrize("algorithm", ["ridge", "knn", pytest.param("random_forest", marks=pytest.mark.slow)])
def test_the_dearest_fifth_of_a_trained_model_is_covered(algorithm):
    covered = []
    for seed in range(10):
        fresh = prices(2000, 100 + seed)
        predicted = decode(trained(prices(1500, seed), algorithm).blob).predict(fresh, 0.95)
        covered.append(fifths(predicted.values, predicted.intervals, fresh["price"].to_numpy()))
        assert predicted.intervals.min() >= 0
    assert np.mean(covered, axis=0).min() >= 0.90


def test_confidence_only_widens():
    rng = np.random.default_rng(0)
    found, x = Calibration.of(rng.normal(size=200), rng.normal(size=200)), np.linspace(-3, 3, 50)
    ends = [found.ends(x, confidence) for confidence in (0.5, 0.8, 0.9, 0.95, 0.99)]
    for narrow, wide in pairwise(ends):
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (narrow[:, 1] <= wide[:, 1]).all()


def test_the_spread_is_found():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 20_000)
    spread = error_spread(x, np.abs(x * rng.normal(size=x.size)))
    np.testing.assert_allclose(
        error_of_predictions(spread, np.array([1.5, 3.0, 4.5])), np.sqrt(2 / np.pi) * np.array([1.5, 3, 4.5]), rtol=0.1
    )


@pytest.mark.parametrize("predicted", [np.ones(100), np.full(100, np.nan), np.append(np.zeros(99), np.inf)])
def test_predictions_without_spread_have_intervals_of_constant_width(predicted):
    found = Calibration.of(predicted, np.arange(100.0))
    assert found.spread.shape == (2, 0)
    assert found.scores.size == 100


def test_an_exact_fit_has_no_spread():
    found = Calibration.of(np.arange(100.0), np.arange(100.0))
    assert found.ends(np.array([3.0]), 0.95).tolist() == [[3.0, 3.0]]


def test_the_99_percent_interval_is_bounded_wherever_enough_errors_are_left():
    for m in (119, 148, 300):
        x = np.random.default_rng(m).normal(size=m)
        assert np.isfinite(Calibration.of(x, x + np.sin(9 * x)).ends(x, 0.99)).all()


def test_the_spread_travels_with_the_model_and_earlier_bytes_are_read():
    model = decode(trained(prices(600, 0)).blob)
    assert decode(encode(model)).calibration.spread.tolist() == model.calibration.spread.tolist() != [[], []]
    document, arrays = safetensors_format.read(encode(model))
    for wrong in (arrays["spread"][::-1, ::-1], arrays["spread"] * [[1], [-1]], arrays["spread"] * np.nan):
        with pytest.raises(CorruptModel):
            decode(safetensors_format.write(document, arrays | {"spread": wrong.copy()}))
    with pytest.raises(CorruptModel):
        decode(safetensors_format.write(document | {"limits": [1.0, 0.0]}, arrays))
    del document["spread"], document["limits"], arrays["spread"]
    earlier = decode(safetensors_format.write(document, arrays))
    assert np.ptp(np.diff(earlier.predict(prices(50, 1), 0.9).intervals, axis=1)) < 1e-9


def test_intervals_end_where_the_target_does():
    table, fresh = prices(400, 0), prices(500, 1)
    free = decode(trained(table, detect_target_minimum=False).blob).predict(fresh, 0.99)
    assert free.intervals[:, 0].min() < 0
    for given, limits in (
        ({}, (0, np.inf)),
        ({"target_minimum": -1.5, "target_maximum": 500}, (-1.5, 500)),
    ):
        done = trained(table, **given)
        predicted = decode(done.blob).predict(fresh, 0.99)
        assert predicted.values.tolist() == free.values.tolist()
        np.testing.assert_array_equal(predicted.intervals, np.clip(free.intervals, *limits))
        assert done.report.intervals.target_minimum == limits[0]


@pytest.mark.parametrize("algorithm", ["linear", "bayesian_locally_weighted"])
def test_the_algorithms_own_intervals_end_there_too(algorithm):
    ends = decode(trained(prices(200, 0), algorithm).blob).predict(prices(100, 1), 0.99).intervals
    assert ends.min() == 0


def test_a_target_below_0_has_no_limit_nor_one_of_few_rows():
    assert decode(trained(prices(60, 0)).blob).limits == (-np.inf, np.inf)
    table = prices(200, 0)
    table = table.set_column(2, "price", pa.array(table["price"].to_numpy() - 20))
    assert decode(trained(table).blob).limits == (-np.inf, np.inf)


def test_limits_that_the_rows_contradict():
    with pytest.raises(InvalidData) as caught:
        trained(prices(200, 0), target_maximum=30)
    assert [fault.pointer for fault in caught.value.faults] == ["/preprocessing/target_maximum"]
    with pytest.raises(ValueError, match="target_maximum is not above target_minimum"):
        trained(prices(200, 0), target_minimum=3, target_maximum=2)


def test_classes_have_no_limits():
    spec = {"target": "a", "task": "classification", "algorithm": {"name": "ridge"}}
    table = pa.table({"a": ["x", "y"] * 20, "b": np.arange(40.0)})
    columns = [TableColumn("a", "categorical", 0, 2), TableColumn("b", "numeric", 0, 40)]
    spec = TrainSpec.model_validate(spec | {"preprocessing": {"target_minimum": 0}})
    with pytest.raises(InvalidRequest) as caught:
        train(plan(spec, columns, table.num_rows), table, data_digest="sha256:0")
    assert "/preprocessing/target_minimum" in [fault.pointer for fault in caught.value.faults]


@pytest.mark.parametrize("validation", [{"method": "kfold", "folds": 11}, {"method": "loo"}])
def test_small_tables_have_intervals_from_cross_validation(validation):
    covered = []
    for seed in range(20):
        table, fresh = prices(60, seed), prices(500, 1000 + seed)
        done = trained(table, validation=validation, target="log")
        model = decode(done.blob)
        assert model.interval_name == done.report.intervals.interval == "cross-validation"
        assert "not guaranteed" in done.report.intervals.guarantee
        low, high = model.predict(fresh, 0.95).intervals.T
        covered.append(((low <= fresh["price"].to_numpy()) & (fresh["price"].to_numpy() <= high)).mean())
    assert 0.92 <= np.mean(covered) <= 0.98


UNBOUNDED = "There are no prediction intervals"


@pytest.mark.parametrize("algorithm", ["ridge", "decision_tree", "gaussian_process"])
def test_folds_bound_a_small_table_that_is_not_cross_validated(algorithm):
    done, plain = (trained(prices(60, 0), algorithm, validation={"test_fraction": share}) for share in (0.2, 0))
    model, result = decode(done.blob), done.report
    assert (model.interval_name, result.intervals.coverage.n) == ("cv-plus", 12)
    assert "With 48 rows in 5 folds" in result.intervals.guarantee
    assert (result.cross_validation, result.folds) == (None, None)
    assert np.isfinite(model.predict(prices(50, 1), 0.95).intervals).all()
    assert not any(UNBOUNDED in warning for warning in result.warnings)
    assert decode(plain.blob).calibration.scores.size == 0
    assert encode(model) == done.blob


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ridge", "decision_tree"])
def test_default_trainings_of_small_tables_cover_new_targets(algorithm):
    covered = []
    for seed in range(40):
        fresh = prices(500, 1000 + seed)
        low, high = decode(trained(prices(60, seed), algorithm).blob).predict(fresh, 0.95).intervals.T
        covered.append(((low <= fresh["price"].to_numpy()) & (fresh["price"].to_numpy() <= high)).mean())
    assert 0.93 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize(("rows", "validation"), [(20, {}), (60, {"time": "b"})])
def test_too_few_rows_have_no_interval_and_are_warned_of(rows, validation):
    done = trained(prices(rows, 0), validation=validation)
    result = done.report.intervals
    assert (result.coverage.value, result.coverage.n, result.fifths) == (None, 0, [])
    assert [warning for warning in done.report.warnings if UNBOUNDED in warning]
    assert (decode(done.blob).predict(prices(5, 1), 0.95).intervals[:, 1] == np.inf).all()


def test_errors_held_out_count_before_those_of_folds():
    few, many = Calibration(np.ones(18)), Calibration(np.ones(19))
    crossed = Calibration(np.ones(50), crossed=True)
    assert (chosen(few, crossed).crossed, chosen(many, crossed).crossed) == (True, False)
    assert chosen(few, Calibration(np.ones(5), crossed=True)) is few


def test_the_report_has_the_coverage_of_every_fifth():
    result = trained(prices(1000, 0)).report.intervals
    assert (result.interval, result.confidence, result.coverage.n) == ("split-conformal", 0.95, 200)
    assert "follows the prediction" in result.guarantee
    assert [fifth.rows for fifth in result.fifths] == [40] * 5
    assert all(fifth.coverage.lower < fifth.coverage.value <= fifth.coverage.upper for fifth in result.fifths)
    widths = [fifth.mean_width for fifth in result.fifths]
    assert widths == sorted(widths)
    assert 3 * widths[0] < widths[-1]
    assert trained(prices(40, 0), validation={"test_fraction": 0.25}).report.intervals.fifths == []
    assert trained(prices(100, 0), validation={"test_fraction": 0}).report.intervals is None


def test_intervals_of_an_algorithm_are_scaled_by_errors_of_unseen_rows():
    """Its own take the noise to be the same everywhere."""
    fresh, rows = prices(5000, 1), prices(400, 0)
    scaled, plain = (decode(trained(rows, "linear", validation={"test_fraction": share}).blob) for share in (0.3, 0))
    assert (scaled.interval_name, plain.interval_name) == ("split-conformal", "algorithm")
    truth = fresh["price"].to_numpy()
    covered, before = (
        fifths(predicted.values, predicted.intervals, truth)
        for predicted in (model.predict(fresh, 0.95) for model in (scaled, plain))
    )
    assert covered[-1] >= 0.9
    assert before[-1] < 0.85
    assert encode(decode(encode(scaled))) == encode(scaled)


def test_few_rows_held_out_leave_the_textbook_intervals_alone():
    assert decode(trained(prices(190, 0), "linear").blob).interval_name == "algorithm"
    assert decode(trained(prices(195, 0), "linear").blob).interval_name == "split-conformal"
    assert decode(trained(prices(100, 0), "gaussian_process").blob).interval_name == "split-conformal"


def test_a_fifth_that_is_covered_too_seldom_is_warned_of():
    table = prices(1000, 1)
    model = decode(trained(prices(300, 0), "linear", validation={"test_fraction": 0}).blob)
    predicted = model.predict(table, 0.95)
    result = interval_report(model, predicted.values, predicted.intervals, table["price"].to_numpy())
    (warning,) = warnings(result, logarithm=True)
    assert "errors are larger there. Fit the logarithm of the target (preprocessing.target), or hold out" in warning
    (warning,) = warnings(result, logarithm=False)
    assert "errors are larger there. Hold out more rows." in warning
    assert not [*warnings(trained(prices(1000, 0)).report.intervals, logarithm=True)]
