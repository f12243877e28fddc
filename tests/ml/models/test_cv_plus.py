"""CV+ intervals: equal to a textbook loop, covered as promised, stored with the model of a small table."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import CorruptModel
from app.ml.contract.columns import TableColumn
from app.ml.evaluation.splits import holdout, kfold
from app.ml.models import cv_plus, safetensors_format, state_format
from app.ml.models.cv_plus import guaranteed
from app.ml.models.model import decode, encode
from app.ml.statistics.error_by_prediction import error_of_predictions, error_spread
from app.ml.training.fitting.fold_calibration import ScoredFold
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROWS, SEED = 50, 3
COMMITTEE = {"name": "committee", "estimators": [{"name": "ridge"}, {"name": "knn"}]}


def line(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": x @ [2.0, -1.0, 0.5] + rng.normal(size=n)})


def messy(n, seed=0):
    """Missing values, rare categories, and errors that grow with the target, which is positive."""
    rng = np.random.default_rng(seed)
    a, city = rng.normal(size=n), rng.choice(["x", "y", "z", "rare"], n, p=[0.55, 0.3, 0.12, 0.03]).astype(object)
    y = np.exp(1 + a + (city == "x") + 0.3 * rng.normal(size=n))
    gaps, cities = a.astype(object), city.copy()
    gaps[rng.random(n) < 0.1] = None
    cities[rng.random(n) < 0.1] = None
    return pa.table({"a": pa.array(gaps, pa.float64()), "city": pa.array(cities, pa.string()), "y": y})


def trained(table, algorithm="ridge", *, folds=5, test_fraction=0.0, how=None, **validation):
    spec = {
        "target": "y",
        "algorithm": algorithm if isinstance(algorithm, dict) else {"name": algorithm},
        "seed": SEED,
        "preprocessing": how or {},
    }
    spec["validation"] = {"method": "kfold", "folds": folds, "test_fraction": test_fraction} | validation
    columns = [
        TableColumn(name, "categorical" if pa.types.is_string(cells.type) else "numeric", cells.null_count, 5)
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]
    return train(plan(TrainSpec.model_validate(spec), columns, table.num_rows), table, data_digest="sha256:0")


def splits(n, folds, test_fraction=0.0):
    """Training rows, and splits of them, as of the seed."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    rows = holdout(n, test_fraction, rng).train
    return rows, kfold(rows.size, folds, rng)


def textbook(predictions, spreads, truth, fresh, confidence):
    """Ends for m new rows, one after the other. predictions, spreads: of each fold's rows (n,), fresh: (n, m) twice."""
    scores, n = np.abs(truth - predictions) / spreads, len(truth)
    ends = []
    for centre, width in zip(fresh[0].T, fresh[1].T, strict=True):
        low, high = np.sort(centre - width * scores), np.sort(centre + width * scores)
        upper = int(np.ceil((n + 1) * confidence - 1e-9))
        ends.append((low[n - upper], high[upper - 1]) if upper <= n else (-np.inf, np.inf))
    return np.array(ends)


def ridge(x, y):
    """Least squares on scaled columns with a penalty of 1; the intercept is free."""
    mean, scale = x.mean(0), x.std(0)
    z = (x - mean) / scale
    coef = np.linalg.solve(z.T @ z + np.eye(x.shape[1]), z.T @ (y - y.mean()))
    return lambda new: (new - mean) / scale @ coef + y.mean()


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("folds", [5, 7])
def test_ends_are_those_of_the_textbook(folds, confidence):
    table, fresh = line(ROWS), line(40, 1)
    x, new = (np.column_stack([one[name] for name in "abc"]) for one in (table, fresh))
    y = table["y"].to_numpy()
    predictions, centres = np.empty(ROWS), np.empty((ROWS, 40))
    for split in splits(ROWS, folds)[1]:
        fit = ridge(x[split.train], y[split.train])
        predictions[split.test], centres[split.test] = fit(x[split.test]), fit(new)
    expected = textbook(predictions, np.ones(ROWS), y, (centres, np.ones_like(centres)), confidence)
    predicted = decode(trained(table, folds=folds).blob).predict(fresh, confidence)
    expected[:, 0], expected[:, 1] = (
        np.minimum(expected[:, 0], predicted.values),
        np.maximum(expected[:, 1], predicted.values),
    )
    np.testing.assert_allclose(predicted.intervals, expected, rtol=1e-9)


@pytest.mark.parametrize("how", [{}, {"target": "log"}, {"max_levels": 3}])
@pytest.mark.parametrize("algorithm", ["ridge", "knn", "gradient_boosting"])
def test_every_fold_has_its_own_preparation_and_spread(algorithm, how):
    """Against models trained on the rows of the other folds alone, which see missing values and unknown categories."""
    table, fresh = messy(100), messy(60, 1).append_column("new", pa.array(np.zeros(60)))
    fresh = fresh.set_column(1, "city", pa.array(["nowhere", *fresh["city"].to_pylist()[1:]]))
    model = decode(trained(table, algorithm, how=how).blob)
    forward, back = (np.log, np.exp) if "target" in how else (np.asarray, np.asarray)
    y = forward(table["y"].to_numpy())
    predictions, spreads = np.empty(100), np.empty(100)
    centres, widths = np.empty((100, 60)), np.empty((100, 60))
    for split in splits(100, 5)[1]:
        rest = table.take(pa.array(split.train))
        alone = decode(trained(rest, algorithm, how=how, method="holdout").blob)
        inside = forward(alone.predict(rest).values)
        spread = error_spread(inside, np.abs(forward(rest["y"].to_numpy()) - inside))
        mean = error_of_predictions(spread, inside).mean() if spread.size else 1.0
        predictions[split.test] = forward(alone.predict(table.take(pa.array(split.test))).values)
        centres[split.test] = forward(alone.predict(fresh).values)
        spreads[split.test] = error_of_predictions(spread, predictions[split.test]) / mean
        widths[split.test] = error_of_predictions(spread, centres[split.test][0]) / mean
    predicted = model.predict(fresh, 0.9)
    expected = np.clip(back(textbook(predictions, spreads, y, (centres, widths), 0.9)), *model.limits)
    expected[:, 0] = np.minimum(expected[:, 0], np.clip(predicted.values, *model.limits))
    expected[:, 1] = np.maximum(expected[:, 1], np.clip(predicted.values, *model.limits))
    assert model.interval_name == "cv-plus"
    np.testing.assert_allclose(predicted.intervals, expected, rtol=1e-7)


def covered(algorithm, repetitions, **how):
    shares = []
    for seed in range(repetitions):
        fresh = line(300, 10_000 + seed)
        low, high = decode(trained(line(60, seed), algorithm, **how).blob).predict(fresh, 0.9).intervals.T
        y = fresh["y"].to_numpy()
        shares.append(((low <= y) & (y <= high)).mean())
    return np.mean(shares)


@pytest.mark.parametrize("folds", [5, 10])
def test_new_targets_lie_within_on_a_small_table(folds):
    assert 0.89 <= covered("ridge", 30, folds=folds) <= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ridge", "knn", "decision_tree", "gradient_boosting"])
def test_new_targets_lie_within_over_many_tables(algorithm):
    assert 0.89 <= covered(algorithm, 200) <= 0.96


def test_what_is_guaranteed():
    assert guaranteed(np.array([10] * 5), 0.95) == pytest.approx(0.9 - min(2 * 0.95 * 4 / 55, 0.9 / 6))
    assert guaranteed(np.array([5] * 10), 0.95) == pytest.approx(0.9 - 0.8 / 11)  # the second term, of equal folds
    assert guaranteed(np.array([5] * 9 + [6]), 0.95) == pytest.approx(0.9 - 2 * 0.95 * 9 / 61)
    assert guaranteed(np.array([2] * 9), 0.5) == 0


def test_the_report_states_the_guarantee():
    report = trained(line(60), test_fraction=0.2, folds=6).report.intervals
    assert report.interval == "cv-plus"
    assert report.coverage.n == 12
    assert "With 48 rows in 6 folds 95 % intervals surely cover" in report.guarantee
    assert f"{guaranteed(np.array([8] * 6), 0.95):.1%}" in report.guarantee


@pytest.mark.parametrize("algorithm", ["ridge", COMMITTEE], ids=["ridge", "committee"])
def test_the_fits_travel_with_the_model_and_nothing_else_of_it_changes(algorithm):
    done = trained(messy(60), algorithm)
    model = decode(done.blob)
    assert encode(model) == done.blob
    fresh = messy(30, 1)
    plain = decode(trained(messy(60), algorithm, method="holdout").blob)
    assert "folds" not in safetensors_format.read_document(encode(plain))
    assert model.predict(fresh).values.tolist() == plain.predict(fresh).values.tolist()
    one_by_one = [model.predict(fresh.slice(row, 1), 0.9).intervals[0] for row in range(30)]
    np.testing.assert_allclose(one_by_one, model.predict(fresh, 0.9).intervals, rtol=1e-9)


def test_intervals_hold_the_prediction_and_grow_with_the_confidence():
    model, fresh = decode(trained(messy(60), "decision_tree").blob), messy(200, 1)
    before = np.tile([np.inf, -np.inf], (200, 1))
    for confidence in (0.01, 0.3, 0.6, 0.9, 0.95, 0.99):
        predicted = model.predict(fresh, confidence)
        low, high = predicted.intervals.T
        assert (low <= np.clip(predicted.values, *model.limits)).all()
        assert (predicted.values <= high).all()
        assert (low <= before[:, 0]).all()
        assert (high >= before[:, 1]).all()
        before = predicted.intervals
    assert np.isinf(high).all()  # 61 · 0.99 > 60
    assert low.min() >= model.limits[0]


def test_a_constant_target():
    table = line(40)
    model = decode(trained(table.set_column(3, "y", pa.array(np.full(40, 7.0)))).blob)
    np.testing.assert_allclose(model.predict(line(5, 1), 0.9).intervals, 7.0)


@pytest.mark.parametrize(
    ("rows", "how", "name"),
    [
        (18, {}, "split-conformal"),
        (19, {}, "cv-plus"),
        (40, {"folds": 10}, "cv-plus"),
        (40, {"folds": 11}, "cross-validation"),
        (100, {"test_fraction": 0.2}, "split-conformal"),
        (cv_plus.MOST_ROWS, {}, "cv-plus"),
        (cv_plus.MOST_ROWS + 1, {}, "cross-validation"),
    ],
)
def test_only_small_tables_store_the_fits(rows, how, name):
    assert decode(trained(line(rows), **how).blob).interval_name == name


def test_groups_large_fits_and_own_intervals_store_none(monkeypatch):
    table = line(40)
    grouped = table.append_column("g", pa.array(np.arange(40.0) // 4))
    assert decode(trained(grouped, group="g").blob).interval_name == "cross-validation"
    linear = trained(table, "linear")
    assert "folds" not in safetensors_format.read_document(linear.blob)
    monkeypatch.setattr("app.ml.training.fitting.fold_calibration.MOST_BYTES", 1000)
    assert decode(trained(table, "knn").blob).interval_name == "cross-validation"


def test_a_level_that_only_a_fold_keeps_stores_none():
    """Of two levels as frequent, all rows keep another one than some folds do."""
    rng = np.random.default_rng(0)
    table = line(40).append_column("city", pa.array(rng.permutation(["x", "y", "z", "v"] * 10).tolist()))
    assert decode(trained(table, how={"max_levels": 2}).blob).interval_name == "cross-validation"


def test_stored_fits_that_do_not_fit_are_refused():
    document, arrays = safetensors_format.read(trained(messy(60)).blob)
    name = "folds.fold"
    for wrong in (arrays[name][1:], arrays[name] + 1, arrays[name] - 1, arrays[name].astype(float)):
        with pytest.raises(CorruptModel):
            decode(safetensors_format.write(document, arrays | {name: wrong.copy()}))
    places = next(name for name in arrays if name.startswith("folds") and name.endswith("places"))
    with pytest.raises(CorruptModel):
        decode(safetensors_format.write(document, arrays | {places: arrays[places] + 1}))


def test_a_fold_fitted_by_another_process_arrives_whole():
    """Results of forks are packed as states are."""
    arrays = {}
    model = decode(trained(messy(60), COMMITTEE).blob)
    made = ScoredFold(model.calibration.folds.fits[0], np.array([1.0, np.inf]))
    received = state_format.unpack(ScoredFold, state_format.pack(made, "made", arrays), arrays)
    raw = model.preparation.raw(messy(9, 1))
    assert received.scores.tolist() == [1.0, np.inf]
    assert received.fit.learned.predict(raw).tolist() == made.fit.learned.predict(raw).tolist()
    assert received.fit.spread.tolist() == made.fit.spread.tolist()
