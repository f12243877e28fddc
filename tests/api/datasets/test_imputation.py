"""Imputation by column over HTTP: the report has the values, predictions flag them, and bad requests are refused."""

import pyarrow as pa
import pytest

ARROW = "application/vnd.apache.arrow.stream"
LINES = [
    f"{age},{city},{10 * city_code + (age or 30)}"
    for age, city, city_code in (
        (20, "Ulm", 0),
        ("", "Bonn", 1),
        (40, "", 2),
        (20, "Bonn", 1),
        (30, "Ulm", 0),
        (90, "Ulm", 0),
    )
    for _ in range(10)
]
NO_MEAN = "'city' is categorical and has no mean: set it to most_frequent, level or a constant."
STRATEGIES = {"age": "median", "city": {"constant": "unknown"}}


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content="\n".join(["age,city,price", *LINES])).json()["id"]


def body(dataset, imputation, **more):
    request = {"model": "filled", "dataset": dataset, "target": "price", "algorithm": {"name": "linear"}}
    return request | {"preprocessing": {"imputation": imputation}, "validation": {"test_fraction": 0}} | more


def test_named_columns_are_filled_reported_and_flagged(client, done, dataset):
    done("train", body(dataset, STRATEGIES))
    url = "/v1/models/filled"
    report = client.get(f"{url}/versions/1/report").json()
    assert report["imputed"] == {"age": 30, "city": "unknown"}
    assert report["columns"] == ["age", "city=Bonn", "city=Ulm", "city=unknown"]
    assert client.get(f"{url}/versions/1").json()["receipt"]["spec"]["preprocessing"]["imputation"] == STRATEGIES
    rows = [{"age": None, "city": "Ulm"}, {"age": 25, "city": None}, {"age": 25, "city": "Bonn"}]
    found = client.post(f"{url}/predict", json={"rows": rows}).json()
    assert found["predictions"] == pytest.approx([30, 45, 35])
    flagged = [(flag["code"], flag["column"], flag["rows"]) for flag in found["flags"]]
    assert flagged == [("imputed", "age", [0]), ("imputed", "city", [1])]
    lines = "age,city\n,Ulm\n25,\n25,Bonn\n"
    by_csv = client.post(f"{url}/predict", content=lines, headers={"Content-Type": "text/csv"}).json()
    assert (by_csv["predictions"], by_csv["flags"]) == (found["predictions"], found["flags"])
    sink = pa.BufferOutputStream()
    table = pa.table({"age": pa.array([None, 25, 25], pa.float64()), "city": ["Ulm", None, "Bonn"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    sent = {"Content-Type": ARROW, "Accept": "application/json"}
    by_arrow = client.post(f"{url}/predict", content=sink.getvalue().to_pybytes(), headers=sent).json()
    assert by_arrow["predictions"] == found["predictions"]


def test_searches_bootstraps_and_reconstructions_take_it(client, done, dataset):
    folds = {"validation": {"method": "kfold", "folds": 3}}
    grid = [{"pointer": "/preprocessing/imputation", "values": ["mean", STRATEGIES]}]
    assert done("search", body(dataset, "mean", **folds, grid=grid) | {"model": "filled-search"})["version"] == 1
    many = {"validation": {"method": "bootstrap", "resamples": 10}}
    assert done("train", body(dataset, STRATEGIES, **many) | {"model": "filled-bootstrap"})["version"] == 1
    pca = body(dataset, STRATEGIES, algorithm={"name": "pca", "n_components": 5}) | {"model": "filled-map"}
    del pca["target"]
    done("train", pca)
    row = {"age": None, "city": None, "price": 40}
    (again,) = client.post("/v1/models/filled-map/reconstruct", json={"rows": [row]}).json()["rows"]
    assert again["values"] == {"age": pytest.approx(30), "city": "unknown", "price": pytest.approx(40)}


@pytest.mark.parametrize(
    ("imputation", "at", "detail"),
    [
        ({"agee": "mean"}, "/agee", "The features have no column 'agee'; did you mean 'age'?"),
        (
            {"city": "mean"},
            "/city",
            "'city' is categorical and has no mean: set it to most_frequent, level or a constant.",
        ),
        ({"age": {"constant": "x"}}, "/age/constant", "'age' is numeric: its constant is a number."),
        ({"price": "mean"}, "/price", "The features have no column 'price'."),
    ],
)
def test_what_does_not_fit_a_column_is_refused(client, dataset, imputation, at, detail):
    response = client.post("/v1/jobs/train", json=body(dataset, imputation))
    assert response.status_code == 422
    faults = [(fault["pointer"], fault["detail"]) for fault in response.json()["errors"]]
    assert faults == [(f"/preprocessing/imputation{at}", detail)]


@pytest.mark.parametrize(
    ("imputation", "at"),
    [
        ("modus", ""),
        (3, ""),
        ({"age": "modus"}, "/age"),
        ({"age": []}, "/age"),
        ({"age": {}}, "/age/constant"),
        ({"age": {"constant": None}}, "/age/constant"),
    ],
)
def test_what_is_no_strategy_is_refused_with_its_place(client, dataset, imputation, at):
    response = client.post("/v1/jobs/train", json=body(dataset, imputation))
    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [f"/preprocessing/imputation{at}"]
