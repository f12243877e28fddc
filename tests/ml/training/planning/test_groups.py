"""Groups of rows that belong together stay on one side of every split: no relative gives a target away."""

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import InvalidRequest
from app.ml.contract.algorithm import Data, Task
from app.ml.contract.progress import unheard
from app.ml.evaluation.evaluation import evaluate as measure
from app.ml.evaluation.predictions import Predictions
from app.ml.evaluation.validation import Validation
from app.ml.jobs import bootstrap, search
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.training.fitting.cross_validation import Fits, validate
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from tests.ml.jobs.test_evaluate import NOWHERE, Evaluated, sheet

PATIENTS, VISITS = 40, 5
NEIGHBOUR = {"name": "knn", "n_neighbors": 1}


def visits(patients=PATIENTS):
    """The target is the patient's own and has nothing to do with the inputs, which give the patient away."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(patients), VISITS)
    gene = rng.normal(size=patients)[patient] + rng.normal(0, 1e-6, patient.size)
    predicted = rng.normal(size=patients)[patient]
    names = [f"p{number}" for number in patient]
    table = pa.table({"gene": gene, "score": predicted, "ill": np.where(predicted > 0, "yes", "no"), "patient": names})
    return table.take(rng.permutation(patient.size))


def train_request(target="score", algorithm=NEIGHBOUR, **validation):
    return {"target": target, "features": None, "algorithm": algorithm, "validation": validation}


def evaluate(**how):
    return Evaluated(visits().drop_columns(["ill"]), **train_request(**how))


def rmse(metrics):
    return next(metric.value for metric in metrics if metric.name == "rmse")


def test_relatives_no_longer_give_the_target_away():
    by_rows, by_patients = (evaluate(group=group).trained.report for group in (None, "patient"))
    assert rmse(by_rows.test) < 0.1
    assert rmse(by_patients.test) > 0.7
    assert "in whole groups by column 'patient'" in by_patients.evidence


def test_error_bars_are_by_groups():
    """All rows of a group with one error: as many independent errors as there are groups."""
    error = np.repeat(np.random.default_rng(0).normal(size=200), 10)
    data, groups = Data.of(Task.REGRESSION, np.zeros((2000, 1)), np.zeros(2000)), np.repeat(np.arange(200), 10)
    widths = []
    for codes in (None, groups):
        rng = np.random.default_rng(1)
        _, mae, _ = measure(data, Predictions(error), (), rng, groups=codes).metrics
        widths.append(np.log(mae.upper / mae.lower))
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(10), rel=0.3)


def test_few_groups_are_warned_about():
    few = evaluate(group="patient", test_fraction=0.2).trained.report
    assert any("fewer than 20" in warning for warning in few.warnings) == (few.rows_test < 20 * VISITS)


def test_the_group_is_no_feature_unless_it_is_named():
    assert [column.name for column in evaluate(group="patient").version.header.inputs] == ["gene"]
    assert [column.name for column in evaluate().version.header.inputs] == ["gene", "patient"]
    named = TrainSpec.model_validate(train_request(group="patient") | {"features": ["gene", "patient"]})
    planned = plan(named, sheet(visits()).columns, PATIENTS * VISITS)
    assert planned.features == ("gene", "patient")
    assert any("names the groups and is a feature too" in warning for warning in planned.warnings)


@pytest.mark.parametrize("method", ["kfold", "loo", "bootstrap"])
@pytest.mark.parametrize("target", ["score", "ill"])
def test_every_validation_keeps_groups_together(method, target):
    how = {"method": method, "group": "patient", "resamples": 10}
    table = visits().drop_columns(["ill" if target == "score" else "score"])
    report = Evaluated(table, **train_request(target, **how)).trained.report
    values = {metric.name: metric.value for metric in report.cross_validation}
    assert values["rmse"] > 0.7 if target == "score" else values["accuracy"] < 0.75
    assert "group" in report.evidence.split("; ")[1]


def test_leave_one_group_out_is_brute_force():
    table = visits(6)
    spec = TrainSpec.model_validate(train_request(algorithm={"name": "linear"}, method="loo", group="patient"))
    columns = sheet(table).columns
    training_set = TrainingSet.read(plan(spec, columns, table.num_rows), table)
    fits = Fits(training_set, np.arange(1, 30), 0, np.random.default_rng(0), lambda *_: None)
    patients = np.array(table["patient"].to_pylist())[1:]
    predicted = np.empty(29)
    for patient in np.unique(patients):
        own = np.flatnonzero(patients == patient)
        fitted = fits.of(np.setdiff1d(np.arange(29), own))
        predicted[own] = fitted.learned.predict(training_set.data(fitted.preparation, 1 + own).x)
    result = validate(fits, Validation(method="loo", group="patient"))
    assert rmse(result.metrics) == pytest.approx(
        np.sqrt(np.mean((predicted - training_set.target.y[1:]) ** 2)), rel=1e-12
    )


@pytest.mark.parametrize("target", ["score", "ill"])
def test_an_evaluation_on_the_same_table_evaluates_the_same_groups(target):
    table = visits().drop_columns(["ill" if target == "score" else "score"])
    evaluated = Evaluated(table, **train_request(target, group="patient"))
    result, report = evaluated.result(), evaluated.trained.report
    assert (result.rows, result.reuse, result.warnings) == (report.rows_test, report.reuse, [])
    assert [metric.value for metric in result.metrics] == pytest.approx([metric.value for metric in report.test])
    assert "by group 'patient'" in report.reuse.rows
    widths = [np.subtract(metric.upper, metric.lower) for metric in (result.metrics[0], report.test[0])]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def run(kind, request, table=None):
    table = (table or visits()).drop_columns(["ill"])
    request = kind.request.model_validate({"dataset": NOWHERE} | request)
    kind.check(request, JobContext((sheet(table),), memory_bytes=1e12))
    return kind.run(request, Inputs((Source(sheet(table), iter([table])),)), unheard).result


def test_a_search_warns_of_copies_in_other_folds():
    table = pa.concat_tables([visits()] * 2)
    (warning,) = run(search.KIND, train_request(method="kfold"), table).warnings
    assert "of the evaluated rows equal a training row" in warning


def test_a_search_validates_by_groups():
    scores = [
        rmse([run(search.KIND, train_request(method="kfold", group=group)).candidates[0].validation])
        for group in (None, "patient")
    ]
    assert scores[0] < 0.1
    assert scores[1] > 0.7


def test_a_bootstrap_draws_groups():
    result = [
        run(bootstrap.KIND, {"training": train_request(group=group), "resamples": 50, "interval": interval})
        for group, interval in ((None, "percentile"), ("patient", "percentile"), ("patient", "accelerated"))
    ]
    errors = [next(one.estimate for one in each.measures if one.name == "rmse") for each in result]
    assert errors[0] < 0.1
    assert min(errors[1:]) > 0.7
    assert "in whole groups by column 'patient'" in result[1].evidence


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("patent", "did you mean 'patient'"),
        ("score", "target cannot name the groups"),
        ("same", "All rows are of one"),
    ],
)
def test_columns_that_name_no_groups_are_refused(group, message):
    table = visits().append_column("same", pa.array(["x"] * PATIENTS * VISITS))
    spec = TrainSpec.model_validate(train_request(group=group))
    with pytest.raises(InvalidRequest) as refusal:
        plan(spec, sheet(table).columns, table.num_rows)
    faults = [fault for fault in refusal.value.faults if fault.pointer == "/validation/group"]
    assert len(faults) == 1
    assert message in faults[0].detail


def test_a_table_beyond_memory_is_not_split_by_groups():
    spec = TrainSpec.model_validate(train_request(algorithm={"name": "linear_sgd"}, group="patient"))
    with pytest.raises(InvalidRequest) as refusal:
        plan(spec, sheet(visits()).columns, 100_000_000, 1e9)
    assert [fault.pointer for fault in refusal.value.faults] == ["/validation/group"]


def test_fewer_groups_than_folds_are_announced():
    spec = TrainSpec.model_validate(train_request(method="kfold", folds=50, group="patient"))
    planned = plan(spec, sheet(visits()).columns, PATIENTS * VISITS)
    assert any("40 groups, fewer than the 50 folds" in warning for warning in planned.warnings)


def test_estimates_count_groups():
    table = visits().drop_columns(["ill"])
    sheets = JobContext((sheet(table),), memory_bytes=1e12)
    by_group, by_row = (
        plan(TrainSpec.model_validate(train_request(method="loo", group=group)), sheet(table).columns, table.num_rows)
        for group in ("patient", None)
    )
    assert (by_group.units, by_row.units) == (PATIENTS, PATIENTS * VISITS)
    assert by_group.seconds < by_row.seconds
    request = {
        "training": train_request(group="patient"),
        "resamples": 50,
        "interval": "accelerated",
        "dataset": NOWHERE,
    }
    checked = bootstrap.KIND.check(bootstrap.KIND.request.model_validate(request), sheets)
    assert checked.estimate.fits == 1 + 50 + PATIENTS
