"""An exported model predicts as the version does, in onnxruntime and with numpy alone."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.export_errors import ExportMismatch, ExportUnsupported
from app.ml.exports import parity
from app.ml.exports.export import export_model, golden_rows, onnx_metadata
from app.ml.exports.exported_graph import export_graph
from app.ml.exports.graph_script import run_graph
from app.ml.exports.numpy_script import graph_steps, script_of
from app.ml.exports.onnx_writer import onnx_bytes
from app.ml.exports.parity import Parity, drawn_rows, input_columns
from app.ml.models.golden import record_golden
from tests.ml.exports.conftest import drawn_table

ORIGIN = {"model": "m", "version": 1, "digest": "sha256:0", "valiant": "0"}
CASES = [
    (name, str(task))
    for name, entry in sorted(catalogue().items())
    if entry.algorithm.graph
    for task in sorted(entry.algorithm.tasks)
]
LOOSE = {"gaussian_process": 2e-11}
"""Its coefficients are large and cancel."""
SPECS = {
    "no scaling": ("ridge", "regression", {"preprocessing": {"scaling": "none"}}),
    "minmax": ("logistic", "classification", {"preprocessing": {"scaling": "minmax"}}),
    "imputation": ("ridge", "regression", {"preprocessing": {"imputation": {"x1": "median",
                                                                            "colour": "most_frequent"}}}),
    "imputation in trees": ("random_forest", "regression", {"preprocessing": {"imputation": {"x1": "mean"}}}),
    "dates": ("ridge", "regression", {"preprocessing": {"dates": ["year", "month", "weekday", "hour", "elapsed_days",
                                                                  "cyclic_month", "cyclic_weekday", "cyclic_hour"]}}),
    "polynomials": ("ridge", "regression", {"preprocessing": {"basis": [{"kind": "polynomial", "degree": 3}]}}),
    "formulas": ("linear", "regression", {"preprocessing": {"undefined": "impute", "basis": [
        {"kind": "expression", "expression": "log(x0 + 9) ** 2.5 - max(x1, x2, 0.5) / (1 + abs(x2)) ** 3"},
        {"kind": "expression", "expression": "sqrt(x1) + log10(x0 + 5) * tan(x2) - exp(-x0) + sin(cos(tanh(-x1)))"}]}}),
    "rare levels": ("ridge", "regression", {"preprocessing": {"max_levels": 2}}),
    "encoded levels": ("logistic", "classification", {"preprocessing": {"max_levels": 2, "categories": "target"}}),
    "log target": ("ridge", "regression", {"preprocessing": {"target": "log"}}),
    "log1p target": ("ridge", "regression", {"preprocessing": {"target": "log1p"}}),
    "sqrt target": ("ridge", "regression", {"preprocessing": {"target": "sqrt"}}),
    "square target": ("ridge", "regression", {"preprocessing": {"target": "square"}}),
    "reciprocal target": ("ridge", "regression", {"preprocessing": {"target": "reciprocal"}}),
    "oblique": ("decision_tree", "classification", {"params": {"oblique": 2}}),
    "linear leaves": ("decision_tree", "regression", {"params": {"leaf_model": "linear", "min_samples_leaf": 20}}),
    "both ways": ("decision_tree", "regression", {"params": {"missing": "both"}}),
    "hard votes": ("bagging", "classification", {"params": {"voting": "hard", "n_estimators": 5}}),
    "no calibration": ("random_forest", "classification", {"params": {"n_estimators": 7}}),
    "weighted neighbours": ("knn", "classification", {"params": {"weights": "distance", "n_neighbors": 4}}),
    "manhattan": ("knn", "regression", {"params": {"metric": "manhattan"}}),
    "chebyshev": ("knn", "regression", {"params": {"metric": "chebyshev"}}),
    "minkowski": ("knn", "regression", {"params": {"metric": "minkowski", "p": 3}}),
    "cosine": ("knn", "classification", {"params": {"metric": "cosine"}}),
    "mahalanobis": ("knn", "classification", {"params": {"metric": "mahalanobis"}}),
    **{f"kernel {kernel}": ("svr", "regression", {"params": {"kernel": kernel}})
       for kernel in ("linear", "poly", "anova")},
    "one against rest": ("svm", "classification", {"params": {"multiclass": "one_vs_rest"}}),
    "pairs": ("svm", "classification", {"params": {"cv": None}}),
    **{f"process {kernel}": ("gaussian_process", "regression", {"params": {"kernel": kernel}, "mixed": False})
       for kernel in ("matern52", "matern32", "matern12", "periodic", "locally_periodic")},
    **{f"density {density}": ("generative_bayes", "classification", {"params": {"density": density}})
       for density in ("shared_covariance", "full_covariance", "histogram", "kernel")},
    "diagonal": ("gaussian", "density", {"params": {"covariance": "diagonal"}}),
    **{f"decode {decode}": ("ecoc", "classification", {"params": {"decode": decode}})
       for decode in ("hamming", "likelihood")},
    **{f"activation {name}": ("mlp", "classification", {"params": {"activation": name, "epochs": 3}})
       for name in ("logistic", "relu", "identity")},
    **{f"loss {loss}": ("gradient_boosting", "regression", {"params": {"loss": loss, "n_estimators": 9}})
       for loss in ("absolute", "huber", "quantile", "poisson", "gamma", "tweedie")},
    "exposure": ("gradient_boosting", "regression", {"params": {"loss": "poisson"}, "exposure": "weeks"}),
    "offset": ("gradient_boosting", "classification", {"offset": "weeks", "classes": 2}),
    "focal": ("gradient_boosting", "classification", {"params": {"class_loss": "focal"}, "classes": 2}),
    "hinge": ("linear_sgd", "classification", {"params": {"class_loss": "hinge"}}),
    "backfitting": ("additive", "regression", {"params": {"fit": "backfitting"}, "mixed": False}),
}  # fmt: skip


def predicted_by_onnx(model, raw, content=None):
    exported = export_graph(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # several add trees in another order
    session = onnxruntime.InferenceSession(content or onnx_bytes(exported, {}), options)
    feed = {
        name: column.astype(object) if column.dtype.kind == "U" else column
        for name, column in input_columns(model.inputs, raw).items()
    }
    return dict(zip(exported.outputs, session.run(None, feed), strict=True))


def predicted_by_numpy(model, raw):
    exported = export_graph(model)
    outputs = {name: tensor.place for name, tensor in exported.outputs.items()}
    return run_graph(*graph_steps(exported), outputs, input_columns(model.inputs, raw))


def demand_equal(model, found, raw, *, all_rows):
    """Labels equal, numbers to 1e-12 of the largest; all_rows: none is without a prediction."""
    predicted = model.predict_raw(raw)
    numbers = predicted.values if predicted.probabilities is None else predicted.probabilities
    theirs = found["predict" if predicted.probabilities is None else "predict_proba"]
    assert theirs.shape == numbers.shape
    known = ~np.isnan(theirs.reshape(len(raw), -1).astype(float)).any(axis=1)
    unknown = np.isnan(numbers.reshape(len(raw), -1).astype(float)).any(axis=1)
    assert (known | unknown).all() or not all_rows
    assert (known | unknown)[: len(raw) // 2 - 20].sum() > 60  # most rows without gaps
    size = np.abs(numbers[known]).max()
    np.testing.assert_allclose(theirs[known], numbers[known], rtol=0, atol=LOOSE.get(model.name, 1e-12) * size)
    if predicted.probabilities is not None:
        top = np.sort(numbers, axis=1)
        clear = known & (top[:, -1] - top[:, -2] > 1e-12)
        assert found["predict"][clear].tolist() == [model.classes[code] for code in predicted.values[clear]]


@pytest.mark.parametrize(("name", "task"), CASES)
def test_onnxruntime_and_numpy_predict_as_the_version(trained, name, task):
    model = trained(name, task, classes=2 if name == "svm" else 3)
    raw = drawn_rows(model, seed=5)
    demand_equal(model, predicted_by_onnx(model, raw), raw, all_rows=False)
    demand_equal(model, predicted_by_numpy(model, raw), raw, all_rows=not _reads_leaves(model))


def _reads_leaves(model):
    return model.name == "decision_tree" and bool(model.state.leaves.forms.size)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), CASES)
def test_plain_tables_of_two_classes(trained, name, task):
    model = trained(name, task, mixed=False, classes=2)
    raw = drawn_rows(model, seed=6)
    demand_equal(model, predicted_by_onnx(model, raw), raw, all_rows=False)


@pytest.mark.parametrize("spec", SPECS)
def test_preparations_and_parameters(trained, spec):
    name, task, options = SPECS[spec]
    model = trained(name, task, **options)
    raw = drawn_rows(model, seed=7)
    demand_equal(model, predicted_by_onnx(model, raw), raw, all_rows=False)
    demand_equal(model, predicted_by_numpy(model, raw), raw, all_rows=not _reads_leaves(model))


def test_trees_are_equal_to_the_bit(trained):
    model = trained("gradient_boosting", "regression", mixed=False)
    raw = drawn_rows(model, seed=8)[:100]
    assert predicted_by_onnx(model, raw)["predict"].tobytes() == model.predict_raw(raw).values.tobytes()
    assert predicted_by_numpy(model, raw)["predict"].tobytes() == model.predict_raw(raw).values.tobytes()


def test_one_row_is_predicted_as_among_others(trained):
    model = trained("random_forest", "classification")
    raw = drawn_rows(model, seed=9)
    together = predicted_by_onnx(model, raw)["predict_proba"]
    alone = [predicted_by_onnx(model, raw[[row]])["predict_proba"][0] for row in range(5)]
    np.testing.assert_array_equal(alone, together[:5])


def test_a_row_that_goes_both_ways_has_no_prediction_in_onnx(trained):
    """The script has one, as the service has."""
    model = trained("decision_tree", "classification", mixed=False, params={"missing": "both"})
    raw = np.full((1, 3), np.nan)
    assert predicted_by_onnx(model, raw)["predict"].tolist() == [""]
    assert np.isnan(predicted_by_onnx(model, raw)["predict_proba"]).all()
    np.testing.assert_allclose(predicted_by_numpy(model, raw)["predict_proba"], model.predict_raw(raw).probabilities)


def test_a_file_states_what_it_is(trained):
    model = trained("logistic", "classification")
    exported = export_model(model, "onnx", record_golden(model, drawn_table(mixed=True, classes=3).slice(0, 8)), ORIGIN)
    document = onnx.load_from_string(exported.content)
    onnx.checker.check_model(document, full_check=True)
    stated = {prop.key: prop.value for prop in document.metadata_props}
    assert stated["model"] == "m"
    assert json.loads(stated["classes"]) == ["a", "b", "c"]
    proof = json.loads(stated["parity"])
    assert proof["engine"] == f"onnxruntime {onnxruntime.__version__}"
    assert proof["rows"] == 208
    assert proof["largest_difference"] < 1e-12
    assert [put.name for put in document.graph.input] == [column.name for column in model.inputs]
    assert {opset.domain for opset in document.opset_import} == {"", "ai.onnx.ml"}


def test_the_same_version_gives_the_same_bytes(trained):
    model = trained("random_forest", "classification")
    golden = record_golden(model, drawn_table(mixed=True, classes=3).slice(0, 8))
    for form in "onnx", "script":
        assert export_model(model, form, golden, ORIGIN) == export_model(model, form, golden, ORIGIN)


def test_a_script_predicts_a_csv_with_numpy_alone(trained, tmp_path):
    model = trained("gradient_boosting", "classification")
    table = drawn_table(mixed=True, classes=3)
    script = tmp_path / "churn.py"
    script.write_bytes(export_model(model, "script", record_golden(model, table.slice(0, 8)), ORIGIN).content)
    rows = table.select([column.name for column in model.inputs]).to_pylist()
    lines = [",".join(rows[0])] + [
        ",".join("" if cell is None else getattr(cell, "isoformat", cell.__str__)() for cell in row.values())
        for row in rows
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines), encoding="utf-8")

    def run(*arguments):
        command = [sys.executable, "-I", str(script), *arguments]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)

    assert "8 golden rows have the predictions of the service" in run("--check").stdout
    head, *printed = run(str(tmp_path / "rows.csv")).stdout.splitlines()
    assert head == "predict,predict_proba:a,predict_proba:b,predict_proba:c"
    predicted = model.predict(table)
    assert [line.split(",")[0] for line in printed] == predicted.predictions
    shares = np.array([line.split(",")[1:] for line in printed], float)
    np.testing.assert_allclose(shares, predicted.probabilities, rtol=1e-12, atol=1e-15)
    (tmp_path / "lacking.csv").write_text("x0\n1\n")
    assert "lacks the columns 'x1'" in run(str(tmp_path / "lacking.csv")).stderr


def test_a_script_with_other_numbers_fails_its_check(trained, tmp_path):
    model = trained("ridge", "regression")
    golden = golden_rows(model, drawn_rows(model)[:4])
    golden["outputs"]["predict"][2] += 1e-3
    script = tmp_path / "wrong.py"
    script.write_text(script_of(model, export_graph(model), golden, ORIGIN), encoding="utf-8")
    run = subprocess.run([sys.executable, "-I", script, "--check"], capture_output=True, text=True, check=False)
    assert run.returncode
    assert "the golden rows have other predictions" in run.stderr


def test_a_difference_is_refused(trained, monkeypatch):
    model = trained("gradient_boosting", "regression")
    golden = record_golden(model, drawn_table(mixed=True, classes=3).slice(0, 8))
    other = model.predict_raw(drawn_rows(model))
    monkeypatch.setattr(type(model), "predict_raw", lambda _, raw, *__: other._replace(values=np.zeros(len(raw))))
    with pytest.raises(ExportMismatch, match="largest difference"):
        export_model(model, "onnx", golden, ORIGIN)


def test_what_cannot_be_exported_is_named(trained):
    with pytest.raises(ExportUnsupported, match="couple pairs by an iteration"):
        export_graph(trained("svm", "classification", classes=3, params={"cv": 3}))
    with pytest.raises(ExportUnsupported, match="locally_weighted have no graph"):
        export_graph(trained("locally_weighted", "regression"))
    bagged = trained("bagging", "regression", params={"estimator": {"name": "ridge"}, "n_estimators": 2})
    member = bagged.state.members[0]
    member = member._replace(algorithm=replace(member.algorithm, graph=None))
    with pytest.raises(ExportUnsupported, match="A learner inside"):
        export_graph(replace(bagged, state=bagged.state._replace(members=(member,))))


def test_whole_numbers_as_labels(trained):
    model = trained("ridge", "classification", classes=2)
    object.__setattr__(model, "classes", (7, 11))
    raw = drawn_rows(model)
    assert set(predicted_by_onnx(model, raw)["predict"].tolist()) == {7, 11}


def test_metadata_are_texts(trained):
    stated = onnx_metadata(trained("kmeans", "clustering"), ORIGIN, Parity(1, "numpy", 0.0, 0))
    assert all(isinstance(value, str) for value in stated.values())
    assert stated["task"] == "clustering"


def test_drawn_rows_have_gaps_and_unseen_levels(trained):
    model = trained("ridge", "regression")
    raw = drawn_rows(model)
    assert len(raw) == parity.ROWS
    assert not np.isnan(raw[: parity.ROWS // 2]).any()
    assert np.isnan(raw[parity.ROWS // 2 :]).any(axis=0).all()
    assert (raw[:, 3] == -1).any()
