"""Estimators of scikit-learn predict in the service as they do where they were fitted, and no pickle is sent."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, linear_model, neighbors, tree
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from app.base.errors import ImportMismatch, ImportUnsupported, InvalidData
from app.cli import main
from app.ingest import sklearn_file
from app.ingest.model_file_format import recognise_model
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported, table_of
from valiant.failures import JobFailed
from valiant.fitted_estimator import fitted
from valiant.fitted_parts import NotImportable
from valiant.fitted_trees import READERS

DATA = {"wine": load_wine, "breast_cancer": load_breast_cancer, "diabetes": load_diabetes}
SMALL = {"n_estimators": 7, "random_state": 0}
ESTIMATORS = {
    f"{name} {data}": (make, data)
    for data, kind in (("wine", "Classifier"), ("breast_cancer", "Classifier"), ("diabetes", "Regressor"))
    for name, make in {
        "tree": lambda kind=kind: getattr(tree, f"DecisionTree{kind}")(random_state=0),
        "random tree": lambda kind=kind: getattr(tree, f"ExtraTree{kind}")(random_state=0),
        "forest": lambda kind=kind: getattr(ensemble, f"RandomForest{kind}")(**SMALL),
        "extra trees": lambda kind=kind: getattr(ensemble, f"ExtraTrees{kind}")(**SMALL),
        "boosting": lambda kind=kind: getattr(ensemble, f"GradientBoosting{kind}")(**SMALL),
        "histogram": lambda kind=kind: getattr(ensemble, f"HistGradientBoosting{kind}")(max_iter=7),
    }.items()
} | {
    "exponential": (lambda: ensemble.GradientBoostingClassifier(loss="exponential", **SMALL), "breast_cancer"),
    "poisson": (lambda: ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=7), "diabetes"),
    "gamma": (lambda: ensemble.HistGradientBoostingRegressor(loss="gamma", max_iter=7), "diabetes"),
}


def imported_from(content, tmp_path):
    """The model that the service makes of a file, and its inputs."""
    path = tmp_path / "trees.json"
    path.write_bytes(content)
    parsed = sklearn_file.parse(path)
    check_probes(parsed)
    return imported(parsed, Naming(None, None, None, "target"), {"data_digest": "", "libraries": {}})


def predicted(model, x):
    found = model.predict(table_of(model.inputs, x))
    return found.values if found.probabilities is None else found.probabilities  # noqa: PD011  no table of pandas


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_predicts_as_where_it_was_fitted(name, tmp_path):
    make, data = ESTIMATORS[name]
    x, y = DATA[data](return_X_y=True)
    gaps = np.random.default_rng(0).random(x.shape) < (0.05 if "histogram" in name or "forest" in name else 0)
    x = np.where(gaps, np.nan, x)
    estimator = make().fit(x, y)
    made = fitted(estimator)
    model = imported_from(made.content, tmp_path)
    rng = np.random.default_rng(1)
    rows = np.concatenate([x, x[rng.integers(len(x), size=500)] * rng.normal(1, 0.3, (500, x.shape[1]))])
    theirs = estimator.predict_proba(rows) if hasattr(estimator, "classes_") else estimator.predict(rows)
    ours = predicted(model, rows)
    assert np.abs(ours - theirs).max() <= 1e-12 * np.abs(theirs).max()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_generated_estimators_predict_alike(seed, tmp_path):
    """10,000 rows, many of them on a threshold."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(50, 800)), int(rng.integers(1, 9)), int(rng.integers(2, 5))
    x = rng.normal(size=(n, p)).round(int(rng.integers(1, 8)))
    names = sorted(READERS)
    name = names[seed % len(names)]
    many = {"n_estimators": int(rng.integers(1, 60)), "max_depth": int(rng.integers(1, 9))}
    options = many if "Forest" in name or "ExtraTrees" in name or name.startswith("Gradient") else {"max_depth": 8}
    made = getattr(ensemble, name, None) or getattr(tree, name)
    y = rng.integers(k, size=n) if name.endswith("Classifier") else x.sum(axis=1) + rng.normal(size=n)
    estimator = made(random_state=seed, **options).fit(x, y)
    found = fitted(estimator)
    model = imported_from(found.content, tmp_path)
    thresholds = [each for one in json.loads(found.content)["trees"] for each in one["threshold"]]
    rows = np.where(rng.random((10_000, p)) < 0.5, rng.choice(thresholds, (10_000, p)), rng.normal(size=(10_000, p)))
    theirs = estimator.predict_proba(rows) if hasattr(estimator, "classes_") else estimator.predict(rows)
    assert np.abs(predicted(model, rows) - theirs).max() <= 1e-12 * max(1.0, np.abs(theirs).max())


def test_a_forest_comes_from_a_notebook(service):
    x, y = load_wine(return_X_y=True, as_frame=True)
    labels = np.array(["barolo", "grignolino", "barbera"])[y]
    estimator = ensemble.RandomForestClassifier(**SMALL).fit(x, labels)
    version = service.import_estimator(estimator, "wines", target="grape")
    assert (version.algorithm, version.target) == ("imported_trees", "grape")
    assert [one["name"] for one in version.inputs] == list(x.columns)
    found = version.predict(x)
    assert found["prediction"].tolist() == estimator.predict(x).tolist()
    assert "scikit-learn" in version.report.evidence


def test_the_terminal_opens_a_file_of_joblib_here(service, address, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VALIANT_URL", address)
    x, y = load_diabetes(return_X_y=True)
    estimator = ensemble.HistGradientBoostingRegressor(max_iter=5).fit(x, y)
    joblib.dump(estimator, tmp_path / "progression.joblib")
    assert main(["import", str(tmp_path / "progression.joblib")]) == 0
    ours = service.model("progression").version().predict(pd.DataFrame(x, columns=[f"f{j}" for j in range(10)]))
    np.testing.assert_allclose(ours["prediction"], estimator.predict(x), rtol=1e-12)
    capsys.readouterr()


def test_a_file_that_the_terminal_writes_is_recognised_and_has_its_labels(tmp_path, monkeypatch):
    monkeypatch.setenv("VALIANT_URL", "http://127.0.0.1:9")  # no service is needed
    x, y = load_wine(return_X_y=True, as_frame=True)
    for estimator in (tree.DecisionTreeClassifier(max_depth=3), linear_model.LogisticRegression(max_iter=10_000)):
        estimator.fit(x, np.array(["barbera", "grignolino", "nebbiolo"])[y])
        joblib.dump(estimator, tmp_path / "wines.joblib")
        assert main(["convert", str(tmp_path / "wines.joblib"), "-o", str(tmp_path / "wines.json")]) == 0
        content = (tmp_path / "wines.json").read_bytes()
        assert recognise_model(content) == "scikit-learn"
        model = imported_from(content, tmp_path)
        assert model.classes == tuple(estimator.classes_)
        found = model.predict(table_of(model.inputs, x.to_numpy()))
        labels = [model.classes[code] for code in found.probabilities.argmax(axis=1)]
        assert labels == estimator.predict(x).tolist()


def test_what_is_neither_trees_nor_weights_is_not_written(tmp_path):
    joblib.dump(neighbors.KNeighborsClassifier().fit([[0], [1]], [0, 1]), tmp_path / "near.joblib")
    assert main(["convert", str(tmp_path / "near.joblib"), "-o", str(tmp_path / "near.json")]) == 1
    assert not (tmp_path / "near.json").exists()


@pytest.mark.parametrize("estimator", [neighbors.KNeighborsClassifier(), ensemble.AdaBoostClassifier(**SMALL)])
def test_others_are_refused_by_name(estimator):
    with pytest.raises(NotImportable, match="give rows to check"):
        fitted(estimator.fit(*load_wine(return_X_y=True)))


def test_what_would_differ_is_refused_by_name():
    x, y = load_wine(return_X_y=True)
    estimator = ensemble.HistGradientBoostingClassifier(max_iter=2, categorical_features=[0, 6])
    estimator.fit((x > x.mean(axis=0)).astype(float), y)
    with pytest.raises(NotImportable, match="categorical"):
        fitted(estimator)
    with pytest.raises(NotImportable, match="several targets"):
        fitted(tree.DecisionTreeRegressor().fit(x, np.stack([y, y], axis=1)))
    with pytest.raises(NotImportable, match="init"):
        fitted(ensemble.GradientBoostingRegressor(init=linear_model.LinearRegression(), **SMALL).fit(x, y))


@pytest.fixture(scope="module")
def written():
    x, y = load_wine(return_X_y=True)
    return json.loads(fitted(ensemble.ExtraTreesClassifier(**SMALL).fit(x, y)).content)


HOSTILE = {
    "cut": lambda text: text[: len(text) // 2],
    "deep": lambda _: b"[" * 10_000_000,
    "no object": lambda _: b"1",
    "pickle": lambda _: b"\x80\x04\x95",
    "cycle": lambda text: text.replace(b'"left": [1,', b'"left": [0,'),
    "far child": lambda text: text.replace(b'"left": [1,', b'"left": [99999999999,'),
    "far column": lambda text: text.replace(b'"column": [', b'"column": [77, '),
    "not a number": lambda text: text.replace(b'"threshold": [', b'"threshold": [NaN, '),
    "unknown field": lambda text: text.replace(b'"average"', b'"mean"'),
    "other output": lambda text: text.replace(b'"output": 1', b'"output": 7'),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_what_is_no_model_is_refused(written, tmp_path, how):
    path = tmp_path / "trees.json"
    path.write_bytes(HOSTILE[how](json.dumps(written).encode()))
    with pytest.raises((InvalidData, ImportUnsupported)):
        sklearn_file.parse(path)


def test_other_predictions_make_no_version(written, service, tmp_path):
    changed = json.loads(json.dumps(written))
    changed["trees"][0]["value"] = [1 - one for one in changed["trees"][0]["value"]]
    path = tmp_path / "trees.json"
    path.write_text(json.dumps(changed))
    with pytest.raises(ImportMismatch, match="scikit-learn"):
        check_probes(sklearn_file.parse(path))
    file = service.upload_file(path)
    with pytest.raises(JobFailed, match="probe rows"):
        service.run("import", model="other", file=file["id"], file_format="scikit-learn")
