"""The client on the real service: upload, train, predict, aliases, errors, sessions; with threads and with asyncio."""

import asyncio
import gzip
import json
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import valiant
from valiant.frames import rows_of

COLUMNS = ["sepal_length_cm", "sepal_width_cm", "petal_length_cm", "petal_width_cm"]
FLOWER = dict(zip(COLUMNS, [5.1, 3.5, 1.4, 0.2], strict=True))


@pytest.fixture(scope="module")
def model(service, iris):
    return service.train(iris, target="species", algorithm="gradient_boosting", n_estimators=5, model="flowers")


def test_upload_of_a_path_is_named_by_the_file(service, iris):
    assert (iris.name, iris.rows, [column["name"] for column in iris.columns]) == ("iris", 150, [*COLUMNS, "species"])
    assert service.dataset("iris").id == iris.id
    assert service.datasets(name="iris")[0].digest == iris.digest
    assert iris.preview(2, columns=["species"])["data"] == [["setosa"], ["setosa"]]
    with pytest.raises(FileNotFoundError):
        service.upload("nowhere.csv")


def test_train_waits_and_returns_the_version(service, iris, model):
    assert (model.model, model.version, model.algorithm, model.task) == (
        "flowers",
        1,
        "gradient_boosting",
        "classification",
    )
    assert model.parameters["n_estimators"] == 5
    metric = model.report.metrics["accuracy"]
    assert metric.lower <= metric.value <= metric.upper <= 1
    assert model.report is model.report
    assert service.jobs(1)[0].kind == "train"


def test_predictions_of_objects_and_arrays(service, model):
    found = model.predict([FLOWER], include=[])
    assert (found.predictions, found.classes, found.version) == (["setosa"], ["setosa", "versicolor", "virginica"], 1)
    assert found.flags == []
    array = model.predict(np.array([list(FLOWER.values())] * 2))
    assert array.tolist() == ["setosa", "setosa"]
    assert model.query("linearise", row=FLOWER)["model"] == "flowers"
    assert model.query("explain", rows=[FLOWER])["explanations"]


@pytest.mark.parametrize(
    "form", [dict, pd.Series, lambda row: [pd.Series(row)], lambda row: {"rows": rows_of(row)["rows"]}]
)
def test_one_object_is_a_row_in_every_form(model, form):
    found = model.predict(form({**FLOWER, "petal_width_cm": float("nan")}))
    assert found.predictions == model.predict([{**FLOWER, "petal_width_cm": None}]).predictions
    assert [flag["column"] for flag in found.flags] == ["petal_width_cm"]


def test_a_prediction_is_printed_as_a_table(model):
    title, heads, _, *rows = str(model.predict([{**FLOWER, "petal_width_cm": None}] * 22)).splitlines()
    assert title == "flowers, version 1"
    names = ["prediction", "probability of setosa", "probability of versicolor", "probability of virginica", "flags"]
    assert re.split(" {2,}", heads) == names
    assert len(rows) == 21
    assert rows[0].startswith("setosa ")
    assert rows[0].endswith("missing_number: petal_width_cm")
    assert rows[-1] == "! 2 other rows"


@pytest.mark.parametrize("form", [str, Path, pd.read_csv])
def test_a_training_uploads_what_is_no_dataset(service, form):
    before = service.datasets()
    made = service.train(form("app/samples/iris.csv"), target="species", algorithm="ridge", model="at-once")
    assert made.model == "at-once"
    (uploaded,) = [dataset for dataset in service.datasets() if dataset.id not in {each.id for each in before}]
    assert (uploaded.id, uploaded.rows) == (made.dataset, 150)
    with pytest.raises(valiant.InvalidRequest, match="spices"):
        service.train(form("app/samples/iris.csv"), target="spices")
    assert len(service.datasets()) == len(before) + 1
    uploaded.delete()


def test_a_training_without_a_client_is_on_the_configured_service(address, iris, monkeypatch):
    monkeypatch.setenv("VALIANT_URL", address)
    first, second = (valiant.train(iris, "species", algorithm=name, model="shared") for name in ("ridge", "knn"))
    assert first.driver is second.driver
    assert second.predict(FLOWER).predictions == ["setosa"]
    first.driver.close()
    valiant._shared.cache_clear()


def test_contributions_of_objects_and_tables_are_the_same(service, model):
    parts = model.predict([FLOWER], include="contributions", top=1).contributions
    assert [reason["column"] in parts["columns"] for reason in parts["reasons"][0]] == [True]
    table = model.predict(pa.table({name: [value] for name, value in FLOWER.items()}), include="contributions")
    for place, name in enumerate(parts["columns"]):
        assert table.column(f"contribution_of_{name}").to_pylist() == [[score[place] for score in parts["values"][0]]]


def test_aliases_move_under_a_condition(service, model):
    alias = service.model("flowers").alias("champion")
    moved = alias.move(model)
    assert service.model("flowers").aliases == [moved]
    with pytest.raises(valiant.Conflict, match="precondition_failed"):
        alias.move(model, if_revision=7)
    assert alias.move(1, if_revision=moved["revision"])["version"] == 1
    assert alias.history()[-1]["version"] == 1
    assert service.model("flowers").predict([FLOWER], alias="champion").version == 1
    with pytest.raises(valiant.Conflict, match="version_in_use"):
        model.delete()


def test_a_refusal_names_every_place(service, iris):
    with pytest.raises(valiant.InvalidRequest) as refused:
        service.train(iris, target="specis", algorithm="ridge", l3=1, model="m")
    assert {(error["pointer"], error["code"]) for error in refused.value.errors} == {
        ("/target", "unknown_column"),
        ("/algorithm/l3", "extra_forbidden"),
    }
    assert "did you mean 'species'?" in str(refused.value)
    with pytest.raises(valiant.NotFound) as missing:
        service.model("nothing")
    assert (missing.value.code, missing.value.status) == ("model_not_found", 404)


def test_a_job_is_followed_cancelled_and_found_again(service, iris):
    job = service.train(iris, "species", model="slow", n_estimators=10_000, name="slow", wait=False)
    with pytest.raises(valiant.WaitTimedOut, match=job.id):
        job.wait(timeout=0.2)
    assert service.job("slow").cancel().id == job.id
    with pytest.raises(valiant.JobCancelled) as cancelled:
        job.wait(60)
    assert (cancelled.value.code, cancelled.value.job.state) == ("cancelled", "cancelled")


def test_progress_is_reported_to_whoever_listens(service, iris):
    received = []
    service.train(iris, "species", model="loud", n_estimators=50, progress=lambda *step: received.append(step))
    assert received[0][0] <= received[-1][0] == 1
    assert received[-1][1] == "succeeded"


def test_a_job_returns_what_it_made(service, iris, model, tmp_path):
    made = service.run("predict", dataset=iris, model="flowers", version=1, keep=["species"])
    assert isinstance(made, valiant.Dataset)
    assert made.download(tmp_path / "rows.csv").read_text().startswith('"species","prediction"')
    evaluation = service.run("evaluate", dataset=iris, model="flowers", rows="all")
    assert evaluation["rows"] == 150
    compared = service.run("compare", dataset=iris, versions=[model, model])["versions"]
    assert [each["version"] for each in compared] == [1, 1]
    again = service.reproduce(model)
    assert again["digest"] == model.digest
    assert service.validate("train", dataset=iris, model="m", algorithm={"name": "kmeans"})["task"] == "clustering"


def test_exports_of_a_version(model, tmp_path):
    import onnxruntime

    session = onnxruntime.InferenceSession(model.export(tmp_path / "m.onnx").read_bytes())
    rows = {name: np.array([[value]]) for name, value in FLOWER.items()}
    assert session.run(["predict"], rows)[0].tolist() == ["setosa"]
    assert "import numpy" in model.export(tmp_path / "m.py").read_text("utf-8")
    with pytest.raises(ValueError, match=r"\.onnx or \.py"):
        model.export(tmp_path / "m.pmml")


def test_files_of_a_version(model, tmp_path):
    assert model.download(tmp_path / "m.safetensors").stat().st_size == model.size_bytes
    name = model.plots()[0]["name"]
    assert model.plot(name)["$schema"]
    assert model.plot(name, tmp_path / "p.svg").read_text().startswith("<svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safetensors", "p.svg"]


def test_catalogue_and_calculators(service):
    names = [each["name"] for each in service.algorithms()]
    assert len(names) > 50
    assert service.algorithm(names[0])["method"]
    assert {each["name"] for each in service.calculators()} >= {"pac"}
    assert service.measure("metrics", task="regression", truth=[1.0, 2.0], predicted=[1.0, 2.5])["metrics"]


def test_clusters_get_names(service, iris):
    clusters = service.train(iris, algorithm="kmeans", n_clusters=2, features=COLUMNS, model="clusters")
    named = clusters.name_clusters([{"cluster": 0, "name": "small"}])
    assert clusters.cluster_names()["names"] == named["names"]
    assert len(clusters.cluster_name_changes()) == 1
    service.model("clusters").delete()


def test_an_online_session_learns_once(service):
    session = service.open_session(
        learner={"name": "perceptron"}, inputs=[{"name": "x"}], target="y", labels=["no", "yes"]
    )
    rows = [{"x": x, "y": "yes" if x > 0 else "no"} for x in (1, -1, 2, -2)]
    played = session.play(rows)
    assert (played["revision"], len(played["predictions"])) == (1, 4)
    assert session.refresh().counts["rounds"] == 4
    published = session.publish("online")
    assert (published.model, published.version) == ("online", 1)
    assert [each.id for each in service.sessions(1)] == [service.session(session.id).id]
    session.delete()


def test_a_preference_learns_the_weights_of_goals(service):
    candidates = [{"values": {"gain": gain, "cost": cost}} for gain, cost in [(9, 5), (7, 2), (3, 1)]]
    choice = service.open_preference(
        goals=[{"name": "gain"}, {"name": "cost", "aim": "minimise"}], candidates=candidates
    )
    choice.compare(1, 0, "first")
    assert (choice.revision, choice.given) == (1, [{"first": 1, "second": 0, "preferred": "first"}])
    assert choice.add_candidates([{"values": {"gain": 8, "cost": 1}}]).candidates == 4
    assert [each.id for each in service.preferences(1)] == [service.preference(choice.id).id]
    choice.delete()


def test_reviews_are_labelled_and_exported(service, model):
    model.predict([FLOWER], min_probability=1.0, review=True)
    (review,) = service.reviews("flowers", state="waiting")
    review.give("setosa")
    assert service.export_reviews("flowers").rows == 1
    review.delete()
    assert service.reviews("flowers") == []


def test_the_end_of_a_name_chooses_a_format_under_a_compression_too(service, tmp_path):
    labelled = tmp_path / "Clicks.SVM.gz"
    labelled.write_bytes(gzip.compress(b"1 2:30\n2 2:45\n"))  # or times of day
    assert service.upload(labelled).file_format == "svmlight"
    with zipfile.ZipFile(tmp_path / "shop.zip", "w") as archive:
        archive.write("app/samples/iris.csv")
        archive.writestr("prices.csv", "price\n5\n7\n")
    shop = service.upload(tmp_path / "shop.zip", member="prices.csv")
    assert (shop.name, shop.rows) == ("shop", 2)


def test_pages_are_read_to_the_end(service, iris):
    for _ in range(3):
        service.upload("app/samples/iris.csv", name="many")
    ids = [each.id for each in service.datasets()]
    assert len(ids) == len(set(ids)) > 3
    assert [each.id for each in service.datasets(2)] == ids[:2]
    service.datasets(1)[0].delete()
    assert len(service.datasets(name="many")) == 2


def test_asyncio_has_the_same_methods(address):
    async def journey():
        async with valiant.connect_async(address) as service:
            iris = await service.upload("app/samples/iris.csv", name="iris-async")
            first, second = await asyncio.gather(
                service.train(iris, target="species", algorithm="ridge", model="one"),
                service.train(iris, target="species", algorithm="knn", model="two"),
            )
            report = await first.report
            found = await (await service.model("two")).predict([FLOWER])
            with pytest.raises(valiant.NotFound):
                await service.model("nothing")
            return report.task, found.predictions, second.algorithm, (await iris.frame()).num_rows

    assert asyncio.run(journey()) == ("classification", ["setosa"], "knn", 150)


def test_a_service_that_is_away_is_a_lost_connection():
    begun = time.monotonic()
    with valiant.connect("http://127.0.0.1:9", timeout=0.1) as away, pytest.raises(valiant.ConnectionLost) as lost:
        away.models()
    assert not lost.value.sent
    assert re.search("Nothing listens at http://127.0.0.1:9 .*`valiant up` starts one", str(lost.value))
    assert lost.value.__suppress_context__
    assert time.monotonic() - begun < 60


def test_the_key_is_sent_as_a_bearer():
    with valiant.connect("http://127.0.0.1:9", key="k") as service:
        assert service.driver.http.headers["authorization"] == "Bearer k"
        assert service.driver.http.headers["user-agent"] == f"valiant-python/{valiant.__version__}"


def test_every_response_names_the_release(service):
    header = service.driver.http.get("/livez").headers["valiant-version"]
    assert header == f"{valiant.__version__}; min_client=0.1.0"


def test_numpy_and_dates_stand_in_requests():
    from datetime import date

    from valiant.record import plain

    assert json.dumps({"a": np.float64(0.5), "b": np.arange(2), "c": date(2026, 1, 2)}, default=plain) == (
        '{"a": 0.5, "b": [0, 1], "c": "2026-01-02"}'
    )
    with pytest.raises(TypeError, match="object does not belong"):
        plain(object())
