"""Artifacts of Valiant: taken elsewhere, they predict as they did, under the digest that they had."""

import json

import httpx
import numpy as np
import pandas as pd
import pytest

from app.cli import main
from app.ml.models import safetensors_format
from valiant.failures import JobFailed, Problem
from valiant.fitted_parts import NotImportable

DIABETES, FLATS, IRIS = (f"app/samples/{name}.csv" for name in ("diabetes", "wohnungen", "iris"))
MODELS = {
    "classes": (IRIS, "species", {"algorithm": "gradient_boosting", "n_estimators": 5}),
    "classes of a neighbourhood": (IRIS, "species", {"algorithm": "knn", "preprocessing": {"scaling": "standard"}}),
    "numbers with intervals": (DIABETES, "progression", {"algorithm": "ridge"}),
    "numbers from categories and truths": (FLATS, "Miete_€", {"algorithm": "random_forest", "n_estimators": 5}),
    "clusters": (DIABETES, None, {"algorithm": "kmeans", "n_clusters": 3, "features": ["bmi", "glucose"]}),
    "coordinates": (DIABETES, None, {"algorithm": "pca", "n_components": 2}),
}  # fmt: skip


@pytest.fixture(scope="module")
def uploaded(service):
    return {path: service.upload(path) for path in (IRIS, DIABETES, FLATS)}


@pytest.fixture(scope="module")
def taken(service, uploaded, tmp_path_factory):
    """`taken(name)`: a version, its artifact as a file, and a dataset of rows with its predictions."""

    def train(name):
        path, target, fields = MODELS[name]
        version = service.train(uploaded[path], target, model=f"made-{name.replace(' ', '-')}", **fields)
        file = version.download(tmp_path_factory.mktemp("artifact") / "taken.safetensors")
        keep = [column["name"] for column in uploaded[path].columns]
        return version, file, service.run("predict", model=version.model, dataset=uploaded[path], keep=keep)

    return train


@pytest.mark.parametrize("name", MODELS)
def test_it_predicts_as_where_it_was_trained(service, allow, taken, name):
    allow("valiant")
    version, file, scored = taken(name)
    copy = service.import_file(file, check=scored)
    assert (copy.model, copy.digest, copy.task) == ("taken", version.digest, version.task)
    assert f"On {scored.rows} rows the predictions are those given for the check" in copy.report.evidence
    rows = pd.read_csv(MODELS[name][0])
    pd.testing.assert_frame_equal(copy.predict(rows), version.predict(rows))
    if name == "numbers with intervals":
        pd.testing.assert_frame_equal(copy.predict(rows, confidence=0.9), version.predict(rows, confidence=0.9))


@pytest.fixture(scope="module")
def flowers(taken):
    return taken("classes")


def test_other_predictions_make_no_version(service, allow, flowers):
    allow("valiant")
    _, file, scored = flowers
    rows = scored.frame().to_pandas()
    rows.loc[7, "probability_virginica"] += 1e-7
    with pytest.raises(JobFailed, match="1 of 150 rows differ in 'probability_virginica'"):
        service.import_file(file, "other", check=rows)
    rows.loc[:, "prediction"] = np.where(rows.index == 9, "virginica", rows["prediction"])
    with pytest.raises(JobFailed, match="1 of 150 rows differ in 'prediction'"):
        service.import_file(file, "other", check=rows, prediction_columns=["prediction"])
    with pytest.raises(JobFailed, match="The predictions are 1 or 3 columns"):
        service.import_file(file, "other", check=rows, prediction_columns=["prediction", "probability_setosa"])
    with pytest.raises(JobFailed, match="lacks the column 'petal_width_cm'"):
        service.import_file(file, "other", check=rows.drop(columns="petal_width_cm"))
    with pytest.raises(Problem, match="other"):
        service.model("other")


def test_an_operator_allows_it_and_the_file_states_what_it_is(service, allow, flowers):
    _, file, scored = flowers
    allow("onnx")
    with pytest.raises(Problem, match="may not import files in the format valiant"):
        service.import_file(file, check=scored)
    allow("valiant")
    with pytest.raises(Problem) as refused:
        service.import_file(file, classes=["a", "b"], target="species")
    assert [fault["pointer"] for fault in refused.value.errors] == ["/classes", "/target", "/check"]
    with pytest.raises(NotImportable, match="names no format"):
        service.import_file(__file__)


def test_an_imported_version_is_not_made_again(service, address, allow, flowers):
    allow("valiant")
    _, file, scored = flowers
    copy = service.import_file(file, "again", check=scored)
    refused = httpx.post(f"{address}/v1/models/again/versions/{copy.version}/reproduce")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_reproducible")


def changed(blob, change):
    document, arrays = safetensors_format.read(blob)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(document, arrays)
    return safetensors_format.write(document, arrays)


def hostile(blob):
    def no_classes(document, _):
        document["classes"] = ["only"]

    def no_arrays(_, arrays):
        arrays.clear()

    def short_arrays(_, arrays):
        for name, array in arrays.items():
            if array.ndim == 1:
                arrays[name] = array[:1]

    def of_the_future(document, _):
        document["format"] = 999

    def no_receipt(document, _):
        document["receipt"] = {}

    def no_text(document, _):
        document["target"] = "progression\0"
        document["receipt"]["note"] = "\0"

    return {
        "no receipt": changed(blob, no_receipt),
        "what the database takes for no text": changed(blob, no_text),
        "truncated": blob[: len(blob) // 2],
        "a header of any length": b"\xff" * 8 + blob[8:],
        "nothing of the kind": b"PK\x03\x04" + bytes(100),
        "one class": changed(blob, no_classes),
        "no arrays": changed(blob, no_arrays),
        "short arrays": changed(blob, short_arrays),
        "an unknown format": changed(blob, of_the_future),
    }


def test_damaged_artifacts_fail_their_job_and_nothing_else(service, address, allow, taken, tmp_path):
    allow("valiant")
    _, file, scored = taken("numbers with intervals")
    for name, content in hostile(file.read_bytes()).items():
        damaged = tmp_path / "damaged.safetensors"
        damaged.write_bytes(content)
        with pytest.raises(JobFailed) as failed:
            service.import_file(damaged, check=scored)
        assert failed.value.job.error["code"] in {"invalid_data", "import_mismatch"}, (name, failed.value)
    assert httpx.get(f"{address}/livez").status_code == 200


def test_in_the_terminal(allow, flowers, tmp_path, monkeypatch, capsys):
    allow("valiant")
    version, file, _ = flowers
    monkeypatch.setenv("VALIANT_URL", version.driver.url)
    scored = tmp_path / "scored.csv"
    assert main(["predict", version.model, IRIS, "--keep-all", "-o", str(scored)]) == 0
    assert main(["import", str(file), "--model", "copied", "--check", str(scored), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == version.digest
