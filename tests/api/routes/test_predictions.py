"""Predictions over HTTP: shapes, headers, strictness, and every refusal."""

import random
from uuid import uuid4

import orjson
import pytest

from app.schemas.predictions import Prediction

ROW = {"length": 5.1, "width": 0.2, "size": "small"}


@pytest.fixture(scope="module")
def made(services, publish):
    """`made(algorithm, target)`: the name of a model of iris."""
    names = {}

    def name(algorithm="logistic", target="species"):
        key = algorithm, target
        if key not in names:
            names[key] = f"a-{uuid4()}"
            publish(services.work, names[key], algorithm=algorithm, target=target)
        return names[key]

    return name


@pytest.fixture
def predict(client, made):
    def ask(rows, model=None, **query):
        body = rows if isinstance(rows, dict) else {"rows": rows}
        return client.post(f"/v1/models/{model or made()}/predict", params=query, json=body)

    return ask


def problem(response, status, code):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    given = response.json()
    assert given["code"] == code
    return [(error["pointer"], error["code"]) for error in given["errors"]]


def valid(response):
    assert response.status_code == 200, response.text
    Prediction.model_validate(response.json())
    return response.json()


def test_classification(predict, made):
    response = predict([ROW, ROW | {"length": 6.5, "width": 2.1, "size": "large"}])
    given = valid(response)
    assert response.headers["x-model-version"] == "1"
    assert "x-ignored-columns" not in response.headers
    assert (given["model"], given["version"], given["task"]) == (made(), 1, "classification")
    assert given["digest"].startswith("sha256:")
    assert given["predictions"] == ["setosa", "virginica"]
    assert given["classes"] == ["setosa", "versicolor", "virginica"]
    assert [sum(row) for row in given["probabilities"]] == pytest.approx([1, 1])
    assert given["flags"] == []
    assert "errors" not in given


@pytest.mark.parametrize(
    ("algorithm", "target", "task"),
    [
        ("ridge", "length", "regression"),
        ("kmeans", None, "clustering"),
        ("pca", None, "projection"),
        ("decision_tree", "species", "classification"),
    ],
)
def test_every_task_has_its_shape(predict, made, algorithm, target, task):
    rows = [ROW | {"species": "setosa"}, ROW | {"species": "virginica", "width": 2}]
    given = valid(predict(rows, made(algorithm, target)))
    assert given["task"] == task
    assert len(given["predictions"]) == 2
    kinds = {"regression": float, "clustering": int, "projection": list, "classification": str}
    assert all(type(one) is kinds[task] for one in given["predictions"])
    assert ("classes" in given) == ("probabilities" in given) == (task == "classification")


def test_columns_are_served_as_rows_are(predict):
    by_column = {"columns": ["size", "length", "width"], "data": [["small", 5.1, 0.2], ["large", None, 2]]}
    by_row = [ROW, {"size": "large", "length": None, "width": 2}]
    assert predict(by_column).content == predict(by_row).content


def test_doubts_are_flagged(predict):
    rows = [ROW, ROW | {"size": "huge"}, ROW | {"length": 100}, ROW | {"length": None}, ROW | {"size": "tiny"}]
    flags = {(flag["code"], flag["column"]): flag["rows"] for flag in valid(predict(rows))["flags"]}
    assert flags == {
        ("unseen_category", "size"): [1, 4],
        ("outside_range", "length"): [2],
        ("imputed", "length"): [3],
    }


def test_whole_numbers_are_numbers(predict):
    one, other = predict([ROW | {"length": 5}]), predict([ROW | {"length": 5.0}])
    assert one.content == other.content


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"length": "5.1"}, "not_a_number"),
        ({"length": True}, "not_a_number"),
        ({"length": [5.1]}, "not_a_number"),
        ({"length": 2**63}, "inexact_number"),
        ({"size": 1}, "not_a_string"),
        ({"size": 1.0}, "not_a_string"),
        ({"size": False}, "not_a_string"),
        ({"size": {}}, "not_a_string"),
    ],
)
def test_nothing_is_guessed(predict, change, code):
    (column,) = change
    assert problem(predict([ROW, ROW | change]), 422, "invalid_data") == [(f"/rows/1/{column}", code)]


def test_extra_columns_are_ignored_and_named(predict):
    response = predict([ROW | {"naïve, ☃": 1, "zip": None}])
    assert response.headers["x-ignored-columns"] == "na%C3%AFve%2C%20%E2%98%83,zip"
    assert response.content == predict([ROW]).content


def test_a_thousand_extra_columns_fit_a_header(predict):
    listed = predict([ROW | {f"extra-column-{i}": i for i in range(1000)}]).headers["x-ignored-columns"]
    assert len(listed) < 5000
    assert listed.startswith("extra-column-0,extra-column-1,")
    assert listed.endswith(",...")
    assert all(name.startswith("extra-column-") for name in listed.split(",")[:-1])


def test_missing_columns_are_named_together(predict):
    response = predict([{"size": "small"}])
    assert problem(response, 422, "invalid_data") == [("/rows", "missing_columns")]
    assert "length, width" in response.json()["detail"]


def test_bad_rows_may_be_null(predict):
    rows = [ROW | {"length": "secret"}, ROW, {"length": 1}, ROW | {"size": "huge"}]
    assert len(problem(predict(rows), 422, "invalid_data")) == 2
    response = predict(rows, on_error="null")
    given = valid(response)
    alone = valid(predict([ROW, ROW | {"size": "huge"}]))
    assert given["predictions"] == [None, alone["predictions"][0], None, alone["predictions"][1]]
    assert given["probabilities"] == [None, alone["probabilities"][0], None, alone["probabilities"][1]]
    assert given["flags"] == [{"code": "unseen_category", "column": "size", "rows": [3]}]
    assert [(error["pointer"], error["code"]) for error in given["errors"]] == [
        ("/rows/0/length", "not_a_number"),
        ("/rows/2", "missing_columns"),
    ]
    assert "secret" not in response.text


def test_all_rows_may_be_null(predict, made):
    given = valid(predict([ROW | {"size": 1}], on_error="null"))
    assert (given["predictions"], given["probabilities"], given["flags"]) == ([None], [None], [])
    given = valid(predict([ROW | {"size": 1, "species": "setosa"}], made("pca", None), on_error="null"))
    assert given["predictions"] == [None]


def test_a_large_table_is_served_as_its_rows_are(predict):
    draw = random.Random(0)
    rows = [
        {"length": draw.uniform(4, 8), "width": draw.uniform(0, 3), "size": draw.choice(["small", "large"])}
        for _ in range(3000)
    ]
    whole = valid(predict(rows))
    parts = [valid(predict(rows[start : start + 100])) for start in range(0, 3000, 100)]
    assert whole["predictions"] == [one for part in parts for one in part["predictions"]]
    flat = [value for part in parts for row in part["probabilities"] for value in row]
    assert [value for row in whole["probabilities"] for value in row] == pytest.approx(flat, rel=1e-12)


def test_numbers_come_back_as_they_are(predict, made, services, trained):
    """The floats of the response read back as the very floats of the model."""
    golden = trained(algorithm="ridge", target="length").golden
    given = valid(predict({"columns": golden["columns"], "data": golden["data"]}, made("ridge", "length")))
    assert given["predictions"] == golden["predictions"]


def test_a_version_or_an_alias(client, predict, made, services):
    services.aliases.move(made(), "pinned", 1, if_match=None, request_id=None)
    for query in ({"version": 1}, {"alias": "pinned"}):
        assert predict([ROW], **query).headers["x-model-version"] == "1"
    problem(predict([ROW], version=1, alias="pinned"), 422, "invalid_request")
    problem(predict([ROW], version=2), 404, "version_not_found")
    problem(predict([ROW], alias="none"), 404, "alias_not_found")
    assert "did you mean 'pinned'?" in predict([ROW], alias="pined").json()["detail"]
    problem(predict([ROW], model="no-such"), 404, "model_not_found")
    for query in ({"version": 0}, {"version": 2**31}, {"version": "x"}, {"alias": "Ü"}, {"on_error": "maybe"}):
        assert predict([ROW], **query).status_code == 422
    assert predict([ROW], model="Not a name").status_code == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"rows": [{"length": NaN}]}', 400),
        (b'{"rows": [{"length": 1e999}]}', 400),
        (b'{"rows": [{"length": 1, "length": 2}]}', 400),
        (b'{"rows": [{"size": "\\ud800"}]}', 400),
        (b'{"rows": [{"size": "a\\u0000b"}]}', 400),
        (b'{"rows": ' + b"[" * 900 + b"]" * 900 + b"}", 400),
        (b'{"rows": [{"length": ' + b"9" * 4000 + b"}]}", 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"rows": []}', 422),
        (b'{"rows": [[]]}', 422),
        (b'{"columns": [], "data": []}', 422),
        (b'{"columns": ["a", "a"], "data": [[1, 2]]}', 422),
        (b'{"rows": [{}], "parameters": {}}', 422),
    ],
)
def test_bodies_that_are_refused(client, made, body, status):
    response = client.post(f"/v1/models/{made()}/predict", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"]


def test_other_media_types_are_refused(client, made):
    response = client.post(f"/v1/models/{made()}/predict", content=b"a,b", headers={"Content-Type": "text/plain"})
    problem(response, 415, "unsupported_media_type")


def test_too_many_rows(settings, services, made):
    from starlette.testclient import TestClient

    from app.main import create_app

    with TestClient(create_app(settings.model_copy(update={"max_predict_rows": 10}))) as small:
        url = f"/v1/models/{made()}/predict"
        assert small.post(url, json={"rows": [ROW] * 10}).status_code == 200
        problem(small.post(url, json={"rows": [ROW] * 11}), 413, "body_too_large")


def test_the_documented_body_is_a_named_union(client):
    from tests.openapi_document import openapi_document

    document = openapi_document()
    operation = document["paths"]["/v1/models/{model}/predict"]["post"]
    assert operation["operationId"] == "predict_rows"
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    names = {member["$ref"].rpartition("/")[2] for member in schema["oneOf"]}
    assert names == {"PredictRows", "PredictColumns"}
    assert names <= document["components"]["schemas"].keys()
    response = operation["responses"]["200"]
    assert response["content"]["application/json"]["schema"]["$ref"].endswith("/Prediction")
    assert response["headers"].keys() >= {"X-Model-Version", "X-Ignored-Columns"}


def test_a_response_is_json_once(predict):
    response = predict([ROW])
    assert orjson.dumps(response.json()) == response.content


@pytest.fixture(scope="module")
def numeric(services):
    """The name of a model of numbers alone, and its rows."""
    import pyarrow as pa
    from sklearn.datasets import load_iris

    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    iris = load_iris()
    names = ["a", "b", "c", "d"]
    table = pa.table(
        dict(zip(names, iris.data.T, strict=True)) | {"species": iris.target_names[iris.target].astype(str)}
    )
    sheet = [*(TableColumn(name, "numeric", 0, 30) for name in names), TableColumn("species", "categorical", 0, 3)]
    spec = TrainSpec.model_validate({"target": "species", "algorithm": {"name": "logistic"}})
    made, name = train(plan(spec, sheet, table.num_rows), table, data_digest="sha256:" + "0" * 64), f"numeric-{uuid4()}"
    with services.work() as w:
        w.models.add_version(
            model=name, job_id=uuid4(), dataset_id=uuid4(), blob=made.blob, report=made.report, golden=made.golden
        )
    return name, names, iris.data.tolist()


@pytest.mark.parametrize("rows", [1, 7, 150])
def test_the_shortcut_for_numbers_is_the_general_path_to_the_byte(predict, numeric, monkeypatch, rows):
    name, names, data = numeric
    data = [[100.0, *row[1:]] for row in data[:rows]]
    with monkeypatch.context() as without:
        without.setattr("app.formats.json.cut", lambda *_, **__: None)
        general = predict({"columns": names, "data": data}, name)
    monkeypatch.setattr("app.formats.json.parse", None)  # the shortcut does without
    quick = predict({"columns": names, "data": data}, name)
    assert {"code": "outside_range", "column": "a", "rows": list(range(rows))} in valid(quick)["flags"]
    assert quick.content == general.content
    assert {k: v for k, v in quick.headers.items() if k != "x-request-id"} == {
        k: v for k, v in general.headers.items() if k != "x-request-id"
    }
    backwards = {"data": [row[::-1] for row in data], "columns": names[::-1]}
    by_name = {"rows": [dict(zip(names, row, strict=True)) for row in data]}
    for other in (backwards, by_name):
        assert predict(other, name).content == general.content
