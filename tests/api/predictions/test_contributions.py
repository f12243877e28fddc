"""Contributions of columns to predictions, in every format of a response, over HTTP."""

import io
import itertools
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ARROW = "application/vnd.apache.arrow.stream"
NAMES = ["area", "rooms", "town", "sold_at"]
TOWNS = ["Bern", "Chur", "Thun"]


def rows(n=300):
    """Flats: their price grows with the area, more in Bern, and on Sundays."""
    rng = np.random.default_rng(3)
    area, rooms, town = rng.uniform(30, 150, n), rng.integers(1, 6, n), rng.integers(0, 3, n)
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, n)
    price = area * (2 + (town == 0)) + 10 * rooms + 20 * ((days.astype(int) + 3) % 7 == 6) + rng.normal(0, 5, n)
    table = list(zip(area.round(2).tolist(), rooms.tolist(), [TOWNS[k] for k in town], days.astype(str), strict=True))
    return table, price, np.where(price > 250, "dear", np.where(price > 150, "fair", "cheap"))


CHOICES = list(itertools.product((0, 1), repeat=4))
ROWS, PRICE, CLASS = rows()
BODY = {"columns": NAMES, "data": [list(row) for row in ROWS[:5]]}


@pytest.fixture(autouse=True, scope="module")
def models(services):
    columns = dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))
    columns["sold_at"] = np.array(columns["sold_at"], "M8[us]")
    table = pa.table(columns | {"price": PRICE, "class": CLASS.tolist(), "dear": CLASS == "dear"})
    kinds = ["numeric", "numeric", "categorical", "datetime", "numeric", "categorical", "boolean"]
    described = [TableColumn(name, kind, 0, 60) for name, kind in zip(table.column_names, kinds, strict=True)]

    def fit(model, y, algorithm, **preparation):
        dates = {"dates": ["weekday", "cyclic_weekday"]}
        body = {"features": NAMES, "algorithm": algorithm, "preprocessing": dates | preparation}
        body |= {"target": y} if y else {}
        planned = plan(TrainSpec.model_validate(body), described, table.num_rows)
        made = train(planned, table, data_digest="sha256:" + "0" * 64)
        with services.work() as w:
            w.models.add_version(
                model=model, job_id=uuid4(), dataset_id=uuid4(), blob=made.blob, report=made.report,
                golden=made.golden, chunk_bytes=1 << 20,
            )  # fmt: skip

    fit("share-boosted", "price", {"name": "gradient_boosting", "n_estimators": 30, "min_samples_leaf": 5})
    fit("share-classes", "class", {"name": "gradient_boosting", "n_estimators": 10})
    fit("share-forest", "class", {"name": "random_forest", "n_estimators": 20})
    fit("share-tree", "price", {"name": "decision_tree"})
    fit("share-ridge", "price", {"name": "ridge"}, target="log")
    fit("share-logistic", "dear", {"name": "logistic"})
    fit("share-additive", "price", {"name": "additive"})
    fit("share-knn", "price", {"name": "knn"})
    fit("share-clusters", None, {"name": "kmeans", "n_clusters": 2})


def explained(client, model, body=BODY, **params):
    response = client.post(f"/v1/models/{model}/predict", params={"include": "contributions"} | params, json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("model", "method", "unit", "scores"),
    [
        ("share-boosted", "path_dependent", "target", [None]),
        ("share-classes", "path_dependent", "score", ["cheap", "dear", "fair"]),
        ("share-forest", "path_dependent", "share", ["cheap", "dear", "fair"]),
        ("share-tree", "path_dependent", "target", [None]),
        ("share-ridge", "linear", "log(target)", [None]),
        ("share-logistic", "linear", "log_odds", [True]),
        ("share-additive", "additive", "target", [None]),
        ("share-knn", "permutations", "target", [None]),
    ],
)
def test_base_and_contributions_add_up_to_the_raw_score(client, model, method, unit, scores):
    found = explained(client, model)
    parts = found["contributions"]
    assert (parts["method"], parts["unit"], parts["scores"], parts["columns"]) == (method, unit, scores, NAMES)
    base, raw, values = (np.array(parts[name]) for name in ("base", "raw", "values"))
    assert values.shape == (5, len(scores), 4)
    np.testing.assert_allclose(base + values.sum(axis=2), raw, rtol=1e-9, atol=1e-12)
    if unit == "target":
        np.testing.assert_allclose(raw[:, 0], found["predictions"], rtol=1e-12)
    elif unit == "log(target)":
        np.testing.assert_allclose(np.exp(raw[:, 0]), found["predictions"], rtol=1e-12)
    elif unit == "log_odds":
        np.testing.assert_allclose(1 / (1 + np.exp(-raw[:, 0])), np.array(found["probabilities"])[:, 1], rtol=1e-12)
    elif unit == "score":
        shares = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(shares, found["probabilities"], rtol=1e-12)
    else:
        np.testing.assert_allclose(raw, found["probabilities"], rtol=1e-12)
    assert "outputs" not in found
    assert (
        (np.shape(parts["standard_errors"]) == values.shape)
        if method == "permutations"
        else "standard_errors" not in parts
    )
    assert "reasons" not in parts or parts["reasons"] is None


def test_the_contributions_of_a_linear_model_are_those_of_its_coefficients(client):
    """What a column contributes is the difference of the logarithms of two predictions that differ in it alone."""
    areas = {"columns": NAMES, "data": [[40.0, *ROWS[0][1:]], [90.0, *ROWS[0][1:]]]}
    found = explained(client, "share-ridge", areas)
    values = np.array(found["contributions"]["values"])[:, 0]
    logs = np.log(found["predictions"])
    np.testing.assert_allclose(values[1] - values[0], [logs[1] - logs[0], 0, 0, 0], atol=1e-12)
    everyone = explained(client, "share-ridge", {"columns": NAMES, "data": [list(row) for row in ROWS]})
    middle = np.array(everyone["contributions"]["values"])[:, 0].mean(axis=0)
    assert np.abs(middle).max() < 0.05  # about the training rows' mean, which are four of five of these


def test_reasons_are_the_largest_contributions_in_words(client):
    body = {"columns": NAMES, "data": [[140.0, 5, "Bern", "2024-06-02"], [None, 1, "Chur", None]]}
    parts = explained(client, "share-boosted", body, top=2)["contributions"]
    values = np.array(parts["values"])[:, 0]
    for row, reasons in enumerate(parts["reasons"]):
        order = np.argsort(-np.abs(values[row]))[:2]
        assert [one["column"] for one in reasons] == [NAMES[place] for place in order]
        assert [one["contribution"] for one in reasons] == values[row, order].tolist()
    first = parts["reasons"][0][0]
    assert (first["column"], first["value"]) == ("area", 140.0)
    assert first["text"] == f"area = 140 raises the prediction by {first['contribution']:.3g}"
    low = next(one for one in parts["reasons"][1] if one["contribution"] < 0)
    assert " lowers the prediction by " in low["text"]
    forest = explained(client, "share-forest", top=1)
    for row, label in enumerate(forest["predictions"]):
        reason, place = forest["contributions"]["reasons"][row][0], forest["classes"].index(label)
        assert f" the share of {label} by " in reason["text"]
        assert reason["contribution"] in forest["contributions"]["values"][row][place]


def test_rows_that_are_not_predicted_are_null(client):
    body = {"columns": NAMES, "data": [BODY["data"][0], ["large", 1, "Bern", "2024-01-01"]]}
    parts = explained(client, "share-tree", body, on_error="null", top=3)["contributions"]
    alone = explained(client, "share-tree", {"columns": NAMES, "data": body["data"][:1]}, top=3)["contributions"]
    for name in ("values", "raw", "reasons"):
        assert parts[name] == [*alone[name], None]
    nobody = {"columns": NAMES, "data": body["data"][1:]}
    assert explained(client, "share-tree", nobody, on_error="null")["contributions"] is None


@pytest.mark.parametrize(
    ("model", "several"), [("share-boosted", False), ("share-classes", True), ("share-knn", False)]
)
def test_arrow_holds_the_same(client, model, several):
    parts = explained(client, model, top=2)["contributions"]
    params = {"include": "contributions", "top": 2}
    response = client.post(f"/v1/models/{model}/predict", params=params, json=BODY, headers={"Accept": ARROW})
    table = pa.ipc.open_stream(response.content).read_all()
    for place, name in enumerate(NAMES):
        cells = [[score[place] for score in row] for row in parts["values"]]
        expected = cells if several else [row[0] for row in cells]
        assert table.column(f"contribution_of_{name}").to_pylist() == expected
        assert (f"standard_error_of_{name}" in table.column_names) == ("standard_errors" in parts)
    assert table.column("contribution_base").to_pylist()[0] == (parts["base"] if several else parts["base"][0])
    texts = [[one["text"] for one in row] for row in table.column("reasons").to_pylist()]
    assert texts == [[one["text"] for one in row] for row in parts["reasons"]]


def test_npy_has_the_base_and_the_contributions_behind_the_predictions(client):
    found = explained(client, "share-tree")
    params = {"include": "contributions"}
    response = client.post(
        "/v1/models/share-tree/predict", params=params, json=BODY, headers={"Accept": "application/x-npy"}
    )
    matrix = np.load(io.BytesIO(response.content))
    values = np.array(found["contributions"]["values"])[:, 0]
    np.testing.assert_array_equal(matrix[:, 2:], values)
    np.testing.assert_array_equal(matrix[:, 1], found["contributions"]["base"] * 5)
    np.testing.assert_allclose(matrix[:, 1:].sum(axis=1), matrix[:, 0], rtol=1e-12)


def test_models_without_contributions_refuse_by_name(client):
    response = client.post("/v1/models/share-clusters/predict", params={"include": "contributions"}, json=BODY)
    assert (response.status_code, response.json()["code"]) == (409, "no_contributions")
    assert "kmeans" in response.json()["detail"]
    response = client.post("/v1/models/share-tree/predict", params={"top": 3}, json=BODY)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/query/top"


def test_a_date_and_a_category_are_one_column_each(client):
    """In an additive model a column contributes the same whatever the others are."""
    one, other = [60.0, 2, "Bern", "2024-06-02"], [120.0, 4, "Chur", "2024-03-05"]
    mixed = [[pair[k] for pair, k in zip(zip(one, other, strict=True), some, strict=True)] for some in CHOICES]
    parts = explained(client, "share-additive", {"columns": NAMES, "data": mixed})
    values = np.array(parts["contributions"]["values"])[:, 0]
    for place in range(4):
        ends = [values[[some[place] == k for some in CHOICES], place] for k in (0, 1)]
        assert np.ptp(ends[0]) < 1e-9
        assert np.ptp(ends[1]) < 1e-9
        assert abs(ends[0][0] - ends[1][0]) > 1e-3


@pytest.mark.parametrize(
    ("model", "method"), [("share-boosted", "interventional"), ("share-ridge", "linear"), ("share-knn", "permutations")]
)
def test_trees_may_start_from_training_rows(client, model, method):
    parts = explained(client, model, include="interventional_contributions", top=1)["contributions"]
    assert parts["method"] == method
    base, raw, values = (np.array(parts[name]) for name in ("base", "raw", "values"))
    np.testing.assert_allclose(base + values.sum(axis=2), raw, rtol=1e-9)
    other = explained(client, model)["contributions"]
    assert (parts["base"] == other["base"]) == (method != "interventional")
    assert parts["raw"] == other["raw"]
