"""A job of the kind `import`: models of XGBoost and LightGBM predict here as they do there."""

import json

import numpy as np
import pandas as pd
import pytest

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytest.importorskip("treelite")

LEVELS = ["basic", "plus", "pro"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(40, 9, 400).round(2), "plan": rng.choice(LEVELS, 400)})
    rows.loc[::9, "age"] = np.nan
    rows["plan"] = pd.Categorical(rows["plan"])
    return rows, ((rows["plan"] == "pro") * 2 + (rows["age"] > 40) + rng.normal(0, 0.3, 400)).to_numpy()


@pytest.fixture(scope="module")
def booster(table):
    rows, target = table
    params = {"objective": "binary", "verbose": -1, "num_leaves": 5, "min_data_per_group": 5}
    return lightgbm.train(params, lightgbm.Dataset(rows, (target > 1) * 1), 10)


@pytest.fixture(scope="module")
def scored(table, booster):
    """Rows, the model and its own predictions for them."""
    return table[0], booster, booster.predict(table[0])


@pytest.fixture(scope="module")
def sent(client):
    """`sent(content)`: the id of the uploaded file."""

    def send(content):
        response = client.post("/v1/files", content=content)
        assert response.status_code == 201, response.text
        return response.json()["id"]

    return send


@pytest.fixture(scope="module")
def checked(client):
    """`checked(rows, **predictions)`: the name of a dataset with these columns."""

    def upload(rows, **predictions):
        text = rows.assign(**predictions).to_csv(index=False)
        return client.post("/v1/datasets", content=text.encode()).json()["id"]

    return upload


def body(file, file_format="lightgbm", model="churn", **further):
    return {"model": model, "file": file, "file_format": file_format, **further}


def rows_of(frame):
    text = frame.astype(object).where(frame.notna(), None)
    return {"columns": list(frame.columns), "data": text.to_numpy().tolist()}


def test_a_file_is_kept_for_a_day_and_described(client):
    made = client.post("/v1/files", content=b"tree\n")
    found = client.get(made.headers["location"]).json()
    assert made.json() == found
    assert (found["size_bytes"], len(found["digest"])) == (5, 71)
    assert found["created_at"] < found["expires_at"]
    assert client.post("/v1/files", content=b"").status_code == 422
    assert client.get("/v1/files/00000000-0000-7000-8000-000000000000").json()["code"] == "file_not_found"


def test_a_file_above_the_limit_is_refused(client, services):
    size = {"content-length": str(services.settings.max_file_bytes + 1)}
    refused = client.post("/v1/files", content=b"x", headers=size)
    assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")


def test_a_classifier_of_lightgbm_predicts_as_its_library(client, done, sent, checked, scored):
    rows, booster, theirs = scored
    check = {"dataset": checked(rows, p=theirs), "prediction_columns": ["p"]}
    further = {"classes": ["stays", "leaves"], "target": "churned", "check": check}
    request = body(sent(booster.model_to_string().encode()), **further)
    assert client.post("/v1/jobs/import:validate", json=request).json()["warnings"] == []
    job = done("import", request)
    version = client.get(f"/v1/models/churn/versions/{job['version']}").json()
    assert (version["algorithm"], version["task"], version["target"]) == ("imported_trees", "classification", "churned")
    assert [(one["name"], one["kind"], one.get("levels")) for one in version["inputs"]] == [
        ("age", "numeric", None),
        ("plan", "categorical", LEVELS),
    ]
    assert "dataset" not in version
    found = client.post("/v1/models/churn/predict", json=rows_of(rows[:50])).json()
    assert np.array_equal(np.array(found["probabilities"])[:, 1], theirs[:50])
    assert found["predictions"] == ["leaves" if p > 0.5 else "stays" for p in theirs[:50]]
    unknown = client.post("/v1/models/churn/predict", json={"rows": [{"age": 40, "plan": "gold"}]}).json()
    assert unknown["flags"][0]["code"] == "unseen_category"
    report = client.get(f"/v1/models/churn/versions/{job['version']}/report").json()
    assert "on 400 rows the predictions are those given for the check" in report["evidence"]
    assert client.post("/v1/models/churn/versions/1/reproduce").json()["code"] == "not_reproducible"


def test_a_regression_of_xgboost_with_names_and_levels_of_the_request(client, done, sent, table):
    rows, target = table
    coded = rows.assign(plan=rows["plan"].cat.codes.astype(float))
    types = ["float", "c"]
    matrix = xgboost.DMatrix(coded.to_numpy(), target, feature_types=types, enable_categorical=True)
    model = xgboost.train({"max_depth": 4, "base_score": 0.25}, matrix, 12)
    inputs = [{"name": "age"}, {"name": "plan", "kind": "categorical", "levels": LEVELS}]
    done("import", body(sent(bytes(model.save_raw("ubj"))), "xgboost", "income", inputs=inputs))
    found = client.post("/v1/models/income/predict", json=rows_of(rows)).json()
    np.testing.assert_array_equal(np.array(found["predictions"], np.float32), model.predict(matrix))


def test_other_predictions_make_no_version(client, ended, sent, checked, scored):
    rows, booster, theirs = scored
    theirs = theirs + np.eye(len(rows))[7] * 1e-9
    request = body(
        sent(booster.model_to_string().encode()),
        model="other",
        check={"dataset": checked(rows, p=theirs), "prediction_columns": ["p"]},
    )
    job = ended("import", request)
    assert (job["state"], job["error"]["code"]) == ("failed", "import_mismatch")
    assert job["error"]["errors"][0]["pointer"] == "/check/prediction_columns/0"
    assert "1 of 400 rows" in job["error"]["detail"]
    assert client.get("/v1/models/other").status_code == 404


def test_labels_beside_the_largest_probability_are_refused_by_name(client, ended, sent, checked, scored):
    """As those of an estimator whose `predict` is not the likeliest class."""
    rows, booster, theirs = scored
    file, labels = sent(booster.model_to_string().encode()), (theirs > 0.5).astype(int)
    labels[7] = 1 - labels[7]
    check = {"dataset": checked(rows, p=theirs, label=labels), "prediction_columns": ["p"], "label_column": "label"}
    job = ended("import", body(file, model="labelled", check=check))
    assert (job["state"], job["error"]["code"]) == ("failed", "import_mismatch")
    [fault] = job["error"]["errors"]
    assert fault["pointer"] == "/check/label_column"
    stated = f"the first is {labels[7]} there, and {1 - labels[7]} by the probabilities"
    assert f"1 of 400 rows differ in 'label'; {stated}" in fault["detail"]
    assert client.get("/v1/models/labelled").status_code == 404


TRAPS = {
    "zero_as_missing": ({"zero_as_missing": True}, "zero_as_missing"),
    "linear_tree": ({"linear_tree": True}, "linear_tree"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_traps_of_lightgbm_are_refused_by_name(ended, sent, name):
    params, code = TRAPS[name]
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3)) * (rng.random((300, 3)) < 0.7)
    model = lightgbm.train({"verbose": -1} | params, lightgbm.Dataset(x, x.sum(axis=1)), 3)
    error = ended("import", body(sent(model.model_to_string().encode())))["error"]
    assert (error["code"], error["errors"][0]["code"]) == ("import_unsupported", code)


def test_a_linear_booster_predicts_as_it_did(client, ended, sent):
    x = np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)
    model = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(x, x[:, 0]), 2)
    job = ended("import", body(sent(bytes(model.save_raw("json"))), "xgboost"))
    assert job["state"] == "succeeded", job
    rows = {"columns": ["f0", "f1"], "data": [[0.5, None], [-1.25, 2.0]]}
    found = client.post(f"/v1/models/{job['model']}/predict", json=rows).json()["predictions"]
    theirs = model.predict(xgboost.DMatrix(np.array(rows["data"], np.float32)))
    np.testing.assert_allclose(found, theirs, rtol=1e-6)


@pytest.fixture(scope="module")
def document():
    x = np.random.default_rng(2).normal(size=(60, 2))
    return json.loads(xgboost.train({"max_depth": 2}, xgboost.DMatrix(x, x[:, 0]), 2).save_raw("json"))


def changed(document, **fields):
    found = json.loads(json.dumps(document))
    tree = found["learner"]["gradient_booster"]["model"]["trees"][0]
    for name, (place, value) in fields.items():
        if place is None:
            tree["tree_param"][name] = value
        else:
            tree[name][place] = value
    return json.dumps(found).encode()


def hostile(document):
    whole = json.dumps(document).encode()
    return {
        "truncated": whole[: len(whole) // 2],
        "cyclic children": changed(document, left_children=(1, 0)),
        "too many nodes claimed": changed(document, num_nodes=(None, "1000000000")),
        "a column that does not exist": changed(document, split_indices=(0, 999)),
        "a threshold that is no number": changed(document, split_conditions=(0, float("nan"))),
        "10 MB of brackets": b'{"a":' + b"[" * 10_000_000,
        "UBJSON of a claimed length": b"{L" + b"\x7f" * 8,
        "nothing of the kind": b"PK\x03\x04" + bytes(100),
    }


@pytest.mark.slow  # a process for each
def test_hostile_files_fail_their_job_and_nothing_else(client, ended, sent, document):
    for name, content in hostile(document).items():
        job = ended("import", body(sent(content), "xgboost", "hostile"))
        assert job["state"] == "failed", name
        assert job["error"]["code"] == "invalid_data", (name, job["error"])
        assert job["attempt"] == 1, name
    assert client.get("/livez").status_code == 200
    assert client.get("/v1/models/hostile").status_code == 404


def test_a_damaged_file_fails_its_job_and_nothing_else(client, ended, sent, document):
    job = ended("import", body(sent(hostile(document)["cyclic children"]), "xgboost", "hostile"))
    assert (job["state"], job["error"]["code"], job["attempt"]) == ("failed", "invalid_data", 1)
    assert job["error"]["errors"][0]["code"] == "damaged_file"
    assert client.get("/livez").status_code == 200


@pytest.mark.slow  # likewise
def test_hostile_text_of_lightgbm(ended, sent, booster):
    whole = booster.model_to_string().encode()
    for content in (whole[:700], whole.replace(b"left_child=", b"left_child=0 "), b"tree\n\xff\xfe", b"tree\n"):
        job = ended("import", body(sent(content), model="hostile"))
        assert (job["state"], job["error"]["code"]) == ("failed", "invalid_data"), content[:80]


def test_every_fault_of_a_request_is_named(client, ended, sent, booster):
    file = sent(booster.model_to_string().encode())
    inputs = [{"name": "a", "levels": ["x"]}, {"name": "a", "kind": "categorical", "levels": ["x", "x"]}]
    wrong = client.post("/v1/jobs/import", json=body(file, inputs=inputs, classes=[1, 1]))
    pointers = ["/inputs/0/levels", "/inputs/1/name", "/inputs/1/levels", "/classes"]
    assert [fault["pointer"] for fault in wrong.json()["errors"]] == pointers
    lost = body("00000000-0000-7000-8000-000000000000")
    assert client.post("/v1/jobs/import", json=lost).json()["code"] == "file_not_found"
    swapped = [{"name": "plan", "kind": "categorical", "levels": LEVELS}, {"name": "age"}]
    error = ended("import", body(file, inputs=swapped, classes=["a", "b", "c"]))["error"]
    assert [fault["pointer"] for fault in error["errors"]] == ["/inputs/0/kind", "/inputs/1/kind", "/classes"]


def test_it_is_in_the_catalogue_and_in_no_training(client):
    assert client.get("/v1/algorithms/imported_trees").json()["tasks"] == ["classification", "regression"]
    wrong = client.post("/v1/jobs/train", json={"model": "x", "dataset": "x", "algorithm": {"name": "imported_trees"}})
    assert wrong.status_code == 422
