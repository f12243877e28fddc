"""Folds, leave-one-out and bootstrap evaluate by rows that were not seen, whatever preparation learns."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.evaluation.bootstrap_estimate import corrected
from app.ml.evaluation.splits import resample
from app.ml.evaluation.validation import Validation
from app.ml.training.fitting.cross_validation import Fits, validate
from app.ml.training.fitting.fit import fit_rows
from app.ml.training.fitting.leave_one_out import closed_form
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet

N = 24


def rng(seed=0):
    return np.random.default_rng(seed)


def columns():
    draw = rng(3)
    a, b = draw.normal(50, 9, N), draw.integers(0, 9, N) / 4
    city = draw.choice(["x", "y", "z"], N).astype(object)
    city[5] = "alone"
    gaps = a.copy().astype(object)
    gaps[7] = None
    y = a / 9 + b + (city == "x") + draw.normal(size=N)
    return {
        "a": a,
        "b": b,
        "city": city,
        "gaps": pa.array(gaps, pa.float64()),
        "y": y,
        "kind": np.where(y > 7, "p", "q"),
    }


def fits(features, algorithm, *, target="y", **preprocessing):
    table = pa.table(columns())
    sheet = [
        TableColumn(name, "categorical" if pa.types.is_string(cells.type) else "numeric", cells.null_count, 5)
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]
    request = {"target": target, "features": features, "algorithm": algorithm, "preprocessing": preprocessing}
    spec = TrainSpec.model_validate(request | {"validation": {"method": "loo"}})
    planned = plan(spec, sheet, N)
    training_set = TrainingSet.read(planned, table)
    return Fits(training_set, np.arange(N), 0, rng(), lambda *_: None), plan(spec, sheet, 100_000)


LINEAR, RIDGE, KNN = (
    {"name": "linear"},
    {"name": "ridge", "l2": 2.0},
    {"name": "knn", "n_neighbors": 3, "weights": "distance"},
)
PLAIN, MIXED, RARE, GAPS = ["a", "b"], ["a", "city"], ["b", "city"], ["a", "gaps"]


@pytest.mark.parametrize(
    ("features", "algorithm", "how", "closed"),
    [
        (PLAIN, LINEAR, {"scaling": "standard"}, N),
        (PLAIN, LINEAR, {"scaling": "minmax"}, N),
        (PLAIN, LINEAR | {"fit_intercept": False}, {"scaling": "standard"}, None),
        (PLAIN, LINEAR | {"fit_intercept": False}, {"scaling": "none"}, N),
        (PLAIN, RIDGE, {"scaling": "standard"}, None),
        (PLAIN, RIDGE, {"scaling": "none"}, N),
        (PLAIN, RIDGE | {"l2": 0.0}, {"scaling": "standard"}, N),
        (PLAIN, KNN, {"scaling": "standard"}, None),
        (PLAIN, KNN, {"scaling": "none"}, N),
        (PLAIN, KNN | {"prototypes": 2}, {"scaling": "none"}, 0),
        (MIXED, LINEAR, {"scaling": "standard"}, N - 1),
        (MIXED, KNN, {"scaling": "none"}, N - 1),
        (RARE, RIDGE, {"scaling": "none", "max_levels": 3}, None),
        (GAPS, LINEAR, {"scaling": "none"}, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", ["y", "kind"])
def test_leave_one_out_in_closed_form_is_brute_force_or_not_taken(features, algorithm, how, closed, target):
    fitted, planned = fits(features, algorithm, target=target, **how)
    quick = closed_form(fitted.training_set, fitted.rows)
    assert (planned.seconds < 60) == (closed is not None), "the plan foresees how many fits there are"
    if closed is None:
        assert quick is None
        return
    result = ~np.isnan(quick.reshape(N, -1)).any(axis=1)
    assert result.sum() == closed
    slow = np.array([fitted.predicted(np.array([row])).value[0] for row in np.flatnonzero(result)]).reshape(
        closed, *quick.shape[1:]
    )
    np.testing.assert_allclose(quick[result], slow, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("target", ["y", "kind"])
def test_leave_one_out_metrics_are_those_of_brute_force(target):
    fitted, _ = fits(MIXED, LINEAR, target=target)
    result = validate(fitted, Validation(method="loo"))
    assert (
        result.evidence
        == "Leave-one-out predicts each of these by a fit of all the others, in closed form but for 1 rows."
    )
    predictions = np.array([fitted.predicted(np.array([row])).value[0] for row in range(N)])
    training_set = fitted.training_set
    first = result.metrics[0]
    wrong = (
        predictions.argmax(axis=1) == training_set.target.codes
        if target == "kind"
        else (predictions - training_set.target.y) ** 2
    )
    expected = wrong.mean() if target == "kind" else np.sqrt(wrong.mean())
    assert first.value == pytest.approx(expected, rel=1e-10)
    assert first.lower < first.value < first.upper
    assert first.n == N


def test_rows_left_out_teach_nothing():
    """Preparation neither: the mean that fills a gap and the scale come from the other rows."""
    fitted, _ = fits(GAPS, RIDGE)
    whole = fit_rows(fitted.training_set, np.arange(N), 0).preparation.learned
    part = fitted.of(np.arange(N - 1)).preparation.learned
    assert (whole.fill != part.fill).all()
    assert (whole.scale != part.scale).all()


def test_kfold():
    fitted, _ = fits(PLAIN, LINEAR)
    result = validate(fitted, Validation(method="kfold", folds=4))
    assert [fold.rows for fold in result.folds] == [6] * 4
    assert result.metrics[0].value == pytest.approx(np.mean([fold.metrics[0].value for fold in result.folds]))
    assert "4 folds" in result.evidence


def test_bootstrap():
    """Rows left out are about 0.368 of all (LION 5.3), and evaluate more strictly than the .632 rule assumes."""
    fitted, _ = fits(PLAIN, LINEAR)
    result = validate(fitted, Validation(method="bootstrap", resamples=40))
    assert (result.metrics[0].n, result.metrics[0].interval) == (40, "bootstrap (approximate)")
    assert result.metrics[0].lower < result.metrics[0].value < result.metrics[0].upper
    assert result.evidence.startswith("40 more models")
    drawn = [resample(50, rng(seed)) for seed in range(400)]
    assert np.mean([split.test.size for split in drawn]) / 50 == pytest.approx(0.3641697, abs=0.01)
    for split in drawn[:5]:
        assert split.train.size == 50
        assert sorted({*split.train.tolist(), *split.test.tolist()}) == list(range(50))
        assert not set(split.train.tolist()) & set(split.test.tolist())


def test_the_632_rule():
    fitted, _ = fits(PLAIN, LINEAR)
    unseen = validate(fitted, Validation(method="bootstrap", resamples=10)).metrics[0]
    seen = unseen.model_copy(update={"value": unseen.value / 2})
    (result,) = corrected([seen], [unseen])
    assert result.value == pytest.approx(0.632 * unseen.value + 0.368 * seen.value)
    assert result.upper - result.lower == pytest.approx(unseen.upper - unseen.lower)


@pytest.mark.parametrize("method", ["kfold", "loo", "bootstrap"])
def test_the_seed_decides_and_the_report_tells(report_of, method):
    expected = {"target": "y", "features": ["a", "b", "city"], "validation": {"method": method, "resamples": 10}}
    one, same = (report_of(columns(), **expected) for _ in range(2))
    assert one == same
    assert one.cross_validation[0].display
    assert (one.folds is not None) == (method == "kfold")
    assert (one.bootstrap_632 is not None) == (method == "bootstrap")
    plain = report_of(columns(), **expected | {"validation": {}})
    assert plain.cross_validation is None
    assert plain.summary == one.summary, "the model is the same, however it is evaluated"


def test_without_a_target_there_is_nothing_to_leave_out(report_of):
    with pytest.raises(InvalidRequest) as caught:
        report_of(columns(), features=PLAIN, algorithm={"name": "kmeans"}, validation={"method": "loo"})
    assert [fault.pointer for fault in caught.value.faults] == ["/validation/method"]
    result = report_of(columns(), features=PLAIN, algorithm={"name": "kmeans"}, validation={"method": "bootstrap"})
    assert {metric.name for metric in result.cross_validation} == {"silhouette", "davies_bouldin", "mean_inertia"}


def test_many_fits_are_announced():
    spec = {"target": "y", "algorithm": {"name": "knn"}, "validation": {"method": "loo"}}
    sheet = [TableColumn(name, "numeric", 0, 9000) for name in "ay"]
    planned = plan(TrainSpec.model_validate(spec), sheet, 9000)
    assert "The model is fitted about 7201 times." in planned.warnings
    quick = plan(TrainSpec.model_validate(spec | {"preprocessing": {"scaling": "none"}}), sheet, 9000)
    assert not quick.warnings
    assert quick.seconds < planned.seconds / 100
