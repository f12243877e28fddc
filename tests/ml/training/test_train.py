"""From a table to a model, its report and its golden rows."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from app.base.errors import GoldenMismatch, InvalidData, InvalidRequest
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.algorithm import Task
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages
from app.ml.evaluation.splits import holdout
from app.ml.models.conformal import UNCALIBRATED
from app.ml.models.golden import check_golden
from app.ml.models.header import read_header
from app.ml.models.model import decode, encode
from app.ml.numerics import jit
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

KINDS = {pa.string(): "categorical", pa.bool_(): "boolean", pa.timestamp("us", "UTC"): "datetime"}


def sheet(table):
    columns = zip(table.column_names, table.columns, strict=True)
    return [
        TableColumn(name, KINDS.get(cells.type, "numeric"), cells.null_count, len(cells.unique().drop_null()))
        for name, cells in columns
    ]


def run(table, algorithm="ridge", progress=None, params=None, **spec):
    spec = TrainSpec.model_validate({"algorithm": {"name": algorithm} | (params or {})} | spec)
    received = {} if progress is None else {"progress": progress}
    return train(plan(spec, sheet(table), table.num_rows), table, data_digest="sha256:0", **received)


def frame(bunch, target="target"):
    names = [str(name) for name in bunch.feature_names]
    labels = [str(bunch.target_names[code]) for code in bunch.target] if "target_names" in bunch else bunch.target
    return pa.table({**dict(zip(names, bunch.data.T, strict=True)), target: labels})


IRIS, WINE, CANCER, DIABETES = map(frame, (load_iris(), load_wine(), load_breast_cancer(), load_diabetes()))
MIXED = pa.table(
    {
        "größe, cm": pa.array([1.5, None, 3.0, 4.5, 5.0, 6.5] * 20),
        "stadt": pa.array(["Köln", "Bonn", None, "Köln", "Ulm", "Bonn"] * 20),
        "neu": pa.array([True, False, None, True, False, True] * 20),
        "seit": pa.array([10**15, 2 * 10**15, None] * 40, pa.timestamp("us", "UTC")),
        "n": pa.array(range(120)),
        "ja": pa.array(["ja", "nein", "ja", "ja", "nein", None] * 20),
    }
)
CASES = [(name, task) for name, entry in catalogue().items() for task in sorted(entry.algorithm.tasks)]


def of(task):
    """A table and the part of a request that makes this task of it."""
    if task is Task.REGRESSION:
        return DIABETES, {"target": "target"}
    if task is Task.CLASSIFICATION:
        return WINE, {"target": "target"}
    return WINE.drop_columns(["target"]), {"task": task}


def with_target(algorithm, task):
    """The same; and with the target for a task that needs one here."""
    if task in catalogue()[algorithm].algorithm.targets:
        return WINE, {"target": "target", "task": task}
    return of(task)


@pytest.mark.parametrize(("algorithm", "task"), CASES)
def test_every_algorithm_from_table_to_prediction(algorithm, task):
    table, spec = with_target(algorithm, task)
    trained = run(table, algorithm, **spec)
    model = decode(trained.blob)
    check_golden(model, trained.golden)
    assert model.task is task
    assert trained.report.rows_train + trained.report.rows_test == table.num_rows
    held_out = task.record.test_fraction > 0
    assert (trained.report.rows_test > 0) is bool(trained.report.test) is bool(trained.report.gaps) is held_out
    assert trained.report.train
    assert len(model.predict(table).predictions) == table.num_rows
    assert trained.blob == run(table, algorithm, **spec).blob


@pytest.mark.parametrize(("algorithm", "task"), CASES)
def test_every_algorithm_on_a_table_with_everything(algorithm, task):
    spec = {Task.REGRESSION: {"target": "n"}, Task.CLASSIFICATION: {"target": "ja"}}.get(task, {"task": task})
    if task in catalogue()[algorithm].algorithm.targets:
        spec["target"] = "ja"
    trained = run(MIXED, algorithm, validation={"method": "kfold", "folds": 3}, **spec)
    check_golden(decode(trained.blob), trained.golden)
    assert len(trained.report.folds) == 3
    assert trained.report.cross_validation


def test_the_report_names_the_rows_behind_each_count():
    """By their numbers in the dataset, where rows without a target are counted as well."""
    table = WINE.to_pydict()
    table["target"][:40] = [None] * 40
    report = run(pa.table(table), "decision_tree", target="target", params={"max_depth": 1}).report
    matrix = report.confusion_matrix
    assert sum(cell.count for cell in matrix.cells) == report.rows_test
    for cell in matrix.cells:
        assert cell.count == matrix.counts[cell.truth][cell.assigned]
        assert {table["target"][row] for row in cell.rows} == {matrix.classes[cell.truth]}
        assert len(cell.rows) == min(cell.count, 20)


def rmse(metrics):
    return next(metric for metric in metrics if metric.name == "rmse")


def test_the_report_is_about_the_very_model():
    trained = run(DIABETES, target="target")
    assert (trained.report.rows_train, trained.report.rows_test) == (354, 88)
    total = np.sum((decode(trained.blob).predict(DIABETES).values - DIABETES["target"].to_numpy()) ** 2)
    result = [rmse(metrics) for metrics in (trained.report.train, trained.report.test)]
    assert sum(metric.value**2 * metric.n for metric in result) == pytest.approx(total, rel=1e-12)


def test_it_is_what_the_peer_fits_on_the_training_rows():
    x, y = load_diabetes(return_X_y=True)
    rows = holdout(len(y), 0.2, np.random.Generator(np.random.PCG64(7))).train
    scaler = StandardScaler().fit(x[rows])
    peer = Ridge(1.0).fit(scaler.transform(x[rows]), y[rows])
    ours = decode(run(DIABETES, target="target", seed=7).blob).predict(DIABETES)
    np.testing.assert_allclose(ours.values, peer.predict(scaler.transform(x)), rtol=1e-9)


def test_rows_held_out_teach_nothing():
    """Not the fit, not the scaling, not the levels: whatever they hold, the model is the same, but for its errors."""
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=100), "c": ["x", "y"] * 50, "y": rng.normal(size=100)})
    held = holdout(100, 0.2, np.random.Generator(np.random.PCG64(0))).test
    spoilt = {name: table[name].to_pylist() for name in table.column_names}
    for row in held:
        spoilt["a"][row], spoilt["c"][row], spoilt["y"][row] = 1e6, "never", -1e6
    clean, dirty = run(table, target="y"), run(pa.table(spoilt), target="y")
    assert clean.blob != dirty.blob
    train_mask = [encode(replace(decode(made.blob), calibration=UNCALIBRATED)) for made in (clean, dirty)]
    assert train_mask[0] == train_mask[1]
    assert rmse(clean.report.test).value < rmse(dirty.report.test).value


def test_folds_prepare_anew():
    """K = n on rows that differ wildly: no fold knows the scale of the row it is evaluated on."""
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 1e9], "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    report = run(table, target="y", validation={"method": "kfold", "folds": 100}).report
    assert len(report.folds) == report.rows_train == 5
    assert [fold.rows for fold in report.folds] == [1] * 5


def test_leaving_one_out_is_what_the_hat_matrix_says():
    """B3.14: the residual of a row left out is e/(1 - h), h the diagonal of X(XᵀX)⁻¹Xᵀ."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y})
    kfold = {"method": "kfold", "folds": 100}
    result = run(table, params={"l2": 0.0}, target="y", validation=kfold).report.cross_validation
    rows = holdout(30, 0.2, np.random.Generator(np.random.PCG64(0))).train
    design = np.column_stack([np.ones(rows.size), x[rows]])
    hat = design @ np.linalg.pinv(design)
    left_out = (y[rows] - hat @ y[rows]) / (1 - hat.diagonal())
    assert rmse(result).value == pytest.approx(np.abs(left_out).mean(), rel=1e-9)


ORIGIN = [
    ("linear", {}),
    ("ridge", {"l2": 0}),
    ("lasso", {"l1": 1e-6}),
    ("linear_sgd", {}),
    ("bagging", {"estimator": {"name": "ridge", "l2": 0, "fit_intercept": False}, "n_estimators": 3}),
]


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
@pytest.mark.parametrize(("name", "params"), ORIGIN, ids=[name for name, _ in ORIGIN])
def test_without_an_intercept_scaling_leaves_zero_where_it_is(name, params, scaling):
    x = np.linspace(50, 60, 40)
    own = params if "estimator" in params else {"fit_intercept": False, **params}
    model = decode(
        run(
            pa.table({"x": x, "same": np.full(40, 7.0), "y": 3 * x}),
            name,
            params=own,
            target="y",
            features=["x"],
            preprocessing={"scaling": scaling},
        ).blob
    )
    new = np.array([0.0, 1.0, 55.0, -20.0])
    np.testing.assert_allclose(model.predict(pa.table({"x": new})).predictions, 3 * new, rtol=1e-3, atol=1e-9)


def test_a_constant_column_serves_as_an_intercept_where_there_is_none():
    x = np.linspace(50, 60, 40)
    table = pa.table({"x": x, "same": np.full(40, 7.0), "y": 3 * x + 14})
    model = decode(run(table, "linear", params={"fit_intercept": False}, target="y", features=["x", "same"]).blob)
    np.testing.assert_allclose(model.predict(table).predictions, 3 * x + 14, rtol=1e-9)


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=40), "y": rng.normal(size=40), "w": rng.integers(1, 4, 40).astype(float)})
    plain, weighted = run(table.select(["a", "y"]), target="y"), run(table, target="y", weights="w")
    assert decode(plain.blob).state.coef != decode(weighted.blob).state.coef
    same = run(table.set_column(2, "w", pa.array(np.ones(40))), target="y", weights="w")
    assert decode(plain.blob).state.coef == decode(same.blob).state.coef


def test_bad_weights_are_named():
    table = pa.table({"a": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0], "w": [1.0, -1.0, 0.0]})
    with pytest.raises(InvalidData) as refusal:
        run(table, target="y", weights="w")
    assert [fault.pointer for fault in refusal.value.faults] == ["/rows/1/w", "/rows/2/w"]


def test_labels_come_back_in_their_types():
    for labels in ([0, 1], [0.5, 1.5], [True, False], ["1", "2"]):
        table = pa.table({"a": [float(i % 2) for i in range(40)], "y": labels * 20})
        trained = run(table, target="y", task="classification")
        model = decode(trained.blob)
        assert model.predict(table).predictions == labels * 20
        assert list(map(type, model.classes)) == list(map(type, sorted(labels)))


def test_rows_without_a_target_are_counted():
    trained = run(MIXED, target="ja")
    assert trained.report.rows_train + trained.report.rows_test == 100
    assert "20 rows without a target are not used." in trained.report.warnings


SMALL = {
    "two numbers": ([1.0, 2.0], (1, 1)),
    "three numbers": ([1.0, 2.0, 3.0], (2, 1)),
    "two classes of one": (["a", "b"], (2, 0)),
    "one class of one": (["a", "a", "b"], (2, 1)),
}


@pytest.mark.parametrize(("targets", "sizes"), SMALL.values(), ids=SMALL.keys())
@pytest.mark.parametrize("method", ["holdout", "kfold"])
def test_few_rows_have_a_prediction(targets, sizes, method):
    table = pa.table({"a": [float(i) for i in range(len(targets))], "y": targets})
    trained = run(table, target="y", validation={"method": method})
    assert (trained.report.rows_train, trained.report.rows_test) == sizes
    check_golden(decode(trained.blob), trained.golden)
    result = " ".join(trained.report.warnings)
    assert ("No row could be held out" in result) == (sizes[1] == 0)
    assert ("with a single row" in result) == ("b" in targets)


def test_progress_never_goes_back_and_says_what_is_done():
    received = []
    run(CANCER, "logistic", lambda *result: received.append(result), target="target", validation={"method": "kfold"})
    fractions = [fraction for fraction, _, _ in received]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert fractions[-1] <= 1
    messages = list(dict.fromkeys(message for _, message, _ in received))
    assert messages[0] == "reading the table"
    assert [m for m in messages if m.startswith("fitting")][-1] == "fitting"
    assert messages[-2:] == ["evaluating", "writing the model"]
    assert any(measures for _, message, measures in received if message == "fitting")


def test_a_fit_that_loses_its_way_does_not_take_progress_back():
    received = []
    progress = Stages(lambda *result: received.append(result)).within(0.5, 0.7, "fitting")
    progress(0.5, loss=2.0)
    progress(0.1, loss=np.nan)
    progress(7.0)
    assert [fraction for fraction, _, _ in received] == pytest.approx([0.5, 0.6, 0.6, 0.7])
    assert [measures for _, _, measures in received] == [{}, {"loss": 2.0}, {}, {}]


def test_the_receipt_says_what_it_takes_to_get_the_same_bytes():
    trained = run(IRIS, target="target", seed=3)
    receipt = read_header(trained.blob).receipt
    assert receipt["seed"] == 3
    assert receipt["data_digest"] == "sha256:0"
    assert receipt["libraries"].keys() == {"valiant", "numpy", "scipy", "numba", "python"}
    again = train(
        plan(TrainSpec.model_validate(receipt["spec"]), sheet(IRIS), IRIS.num_rows),
        IRIS,
        data_digest=receipt["data_digest"],
    )
    assert again.blob == trained.blob
    assert run(IRIS, target="target", seed=4).blob != trained.blob


PROGRAM = """
import pyarrow as pa
from app.ml.models.model import digest
from app.ml.contract.columns import TableColumn
from app.ml.evaluation.splits import holdout
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.planning.plan import plan
from app.ml.training.train import train
table = pa.table({"a": [float(i * i % 17) for i in range(60)], "c": ["x", "y", "z"] * 20, "y": ["p", "q"] * 30})
columns = [TableColumn(name, kind, 0, 3) for name, kind in zip("acy", ["numeric", "categorical", "categorical"])]
spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": "logistic"}})
print(digest(train(plan(spec, columns, 60), table, data_digest="sha256:0").blob))
"""


def test_another_process_writes_the_same_bytes():
    def printed(seed):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True).stdout

    assert printed("1") == printed("2")


def test_golden_rows_that_changed_do_not_pass():
    trained = run(IRIS, target="target")
    model = decode(trained.blob)
    assert 0 < len(trained.golden["data"]) <= 8
    other = dict(trained.golden, predictions=trained.golden["predictions"][::-1])
    with pytest.raises(GoldenMismatch):
        check_golden(model, other)
    shares = np.array(trained.golden["probabilities"])
    check_golden(model, dict(trained.golden, probabilities=(shares * (1 + 1e-12)).tolist()))
    for wrong in (shares * (1 + 1e-6), shares[:, :2], shares[:3]):
        with pytest.raises(GoldenMismatch):
            check_golden(model, dict(trained.golden, probabilities=wrong.tolist()))
    with pytest.raises(GoldenMismatch):
        check_golden(model, dict(trained.golden, columns=["a", "b", "c", "d"]))
    numbers = run(DIABETES, target="target")
    with pytest.raises(GoldenMismatch):
        check_golden(
            decode(numbers.blob),
            dict(numbers.golden, predictions=[value + 1e-5 for value in numbers.golden["predictions"]]),
        )


def test_whose_golden_rows_were_checked_waits_for_no_compiler(monkeypatch):
    """Be they few or many, with gaps or without."""
    trained = run(IRIS, target="target", algorithm="random_forest", params={"n_estimators": 3})
    for kernel in jit._kernels:
        monkeypatch.setattr(kernel, "_compiled", None)  # as in a process that has compiled nothing yet
        monkeypatch.setattr(kernel, "lean", kernel._first)
    model = decode(trained.blob)
    check_golden(model, trained.golden)
    ready = jit.made()
    assert ready > 0
    for value in (1.0, np.nan):
        for rows in (1, 50):
            model.predict_raw(np.full((rows, len(model.inputs)), value))
            assert jit.made() == ready


def test_faults_of_the_request_are_found_by_the_worker_too():
    with pytest.raises(InvalidRequest):
        run(IRIS, target="nothing")


def test_the_table_is_free_while_it_is_fitted():
    """Memory of a fit is the raw matrix and the matrix, not the table they came from."""
    held = []

    def listen(fraction, message, measures):
        if message == "fitting":
            held.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    spec = TrainSpec.model_validate({"target": "y", "algorithm": {"name": "ridge"}})
    columns = [TableColumn(name, "numeric", 0, None) for name in "ay"]
    cells = pc.random(200_000)
    train(
        plan(spec, columns, 200_000),
        pa.table({"a": cells, "y": pc.random(200_000)}),
        data_digest="",
        progress=listen,
    )
    assert min(held) - before < 2 * cells.nbytes


def test_units_change_the_coefficients_of_the_table_and_nothing_else():
    """B4.11: kilometres or millimetres, the scaled weights stay and the raw weight goes by 1e6."""
    random = np.random.default_rng(0)
    km, other = random.uniform(1, 90, 200), random.normal(size=200)
    target = 3 * km - other + random.normal(size=200)
    result = [run(pa.table({"way": km * unit, "other": other, "y": target}), target="y").report for unit in (1.0, 1e6)]
    in_km, in_mm = (np.ravel(report.summary["coefficients"]) for report in result)
    np.testing.assert_allclose(in_mm, in_km, rtol=1e-9)
    raw_km, raw_mm = in_km / result[0].scales, in_mm / result[1].scales
    np.testing.assert_allclose(raw_km / raw_mm, [1e6, 1.0], rtol=1e-9)
    assert raw_km[0] == pytest.approx(3, rel=0.05)
    assert result[0].offsets[0] == pytest.approx(km.mean(), rel=0.1)


def test_given_rules_speak_of_names_from_table_to_prediction():
    """And stay what they say, whatever the data says."""
    test = {"column": "stadt", "op": "not in", "values": ["Bonn", "Atlantis"]}
    result = {"given": [{"tests": [test, {"column": "neu", "op": "==", "value": True}], "then": "nein"}]}
    trained = run(MIXED, "rules", target="ja", params=result | {"otherwise": "ja"})
    model = decode(trained.blob)
    assert model.predict(MIXED.slice(0, 6)).predictions == ["nein", "ja", "ja", "nein", "ja", "ja"]
