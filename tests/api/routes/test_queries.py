"""Queries of a model over HTTP."""

import json
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

ROW = {"length": 5.1, "width": 0.2, "size": "small"}


@pytest.fixture(scope="module")
def made(services, publish):
    names = {}

    def name(algorithm="logistic", target="species"):
        key = algorithm, target
        if key not in names:
            names[key] = f"w-{uuid4()}"
            publish(services.work, names[key], algorithm=algorithm, target=target)
        return names[key]

    return name


@pytest.fixture
def ask(client, made):
    def post(verb, body, *how, **query):
        return client.post(f"/v1/models/{made(*how)}/{verb}", json=body, params=query)

    return post


def result_of(response):
    assert response.status_code == 200, response.text
    return response.json()


def pointers(response, status):
    assert response.status_code == status, response.text
    return {(error["pointer"], error["code"]) for error in response.json()["errors"]}


def test_a_sweep_is_predict_at_every_point(ask, client, made):
    vary = [{"column": "width", "start": 0.1, "stop": 2.5, "points": 4}, {"column": "size"}]
    got = result_of(ask("sweep", {"vary": vary, "fixed": {"length": 5.9}}))
    assert [axis["column"] for axis in got["axes"]] == ["width", "size"]
    assert got["axes"][0]["values"] == pytest.approx(np.linspace(0.1, 2.5, 4))
    sizes = got["axes"][1]["values"]
    assert len(sizes) > 1
    assert np.shape(got["probabilities"]) == (4, len(sizes), 3)
    for i, width in enumerate(got["axes"][0]["values"]):
        for j, size in enumerate(sizes):
            body = {"rows": [{"length": 5.9, "width": width, "size": size}]}
            one = result_of(client.post(f"/v1/models/{made()}/predict", json=body))
            assert got["predictions"][i][j] == one["predictions"][0]
            assert got["probabilities"][i][j] == pytest.approx(one["probabilities"][0], rel=1e-12)


def test_of_a_linear_model_the_surface_is_a_plane(ask):
    vary = [{"column": "width", "points": 5}]
    body = {"vary": vary, "fixed": {"size": "small", "species": "setosa"}}
    got = result_of(ask("sweep", body, "ridge", "length"))
    assert np.diff(got["predictions"], 2) == pytest.approx(np.zeros(3), abs=1e-12)
    assert "classes" not in got


def test_every_fault_of_a_sweep_is_named(ask):
    vary = [
        {"column": "nobody"},
        {"column": "size", "points": 3},
        {"column": "width", "values": ["wide", 1]},
    ]
    assert pointers(ask("sweep", {"vary": vary, "fixed": {}}), 422) == {
        ("/vary/0/column", "unknown_column"),
        ("/vary/1/points", "invalid"),
        ("/vary/2/values/0", "not_a_number"),
    }
    twice = [{"column": "width"}, {"column": "width"}]
    assert pointers(ask("sweep", {"vary": twice}), 422) == {("/vary/1/column", "duplicate")}
    assert pointers(ask("sweep", {"vary": [{"column": "width"}]}), 422) == {("/fixed", "missing_columns")}
    wrong = {"length": "long", "size": "small"}
    assert pointers(ask("sweep", {"vary": [{"column": "width"}], "fixed": wrong}), 422) == {
        ("/fixed/length", "not_a_number")
    }
    many = [{"column": "width", "points": 1000}, {"column": "length", "points": 1000}]
    assert pointers(ask("sweep", {"vary": many, "fixed": {"size": "small"}}), 422) == {("/vary", "invalid")}
    both = [{"column": "width", "values": [1], "points": 3}]
    assert ask("sweep", {"vary": both}).status_code == 422


def test_the_tangent_says_what_moves_and_how_far_to_trust_it(ask):
    got = result_of(ask("linearise", {"row": ROW}))
    assert got["outputs"] == ["setosa", "versicolor", "virginica"]
    assert sum(got["values"]) == pytest.approx(1)
    assert [one["column"] for one in got["inputs"]] == ["length", "width"]
    for one in got["inputs"]:
        assert sum(one["slopes"]) == pytest.approx(0, abs=1e-9)  # probabilities sum to one everywhere
        assert one["trusted_from"] <= one["at"] <= one["trusted_to"]
    tree = result_of(ask("linearise", {"row": ROW, "inputs": ["width"]}, "decision_tree"))
    assert len(tree["warnings"]) == 1


def test_every_fault_of_a_tangent_is_named(ask):
    body = {"row": ROW, "inputs": ["nobody", "size", "width"]}
    assert pointers(ask("linearise", body), 422) == {("/inputs/0", "unknown_column"), ("/inputs/1", "invalid")}
    assert pointers(ask("linearise", {"row": {"length": 1}}), 422) == {("/row", "missing_columns")}
    assert pointers(ask("linearise", {"row": ROW | {"width": "x"}}), 422) == {("/row/width", "not_a_number")}
    assert ask("linearise", {"row": {}}, "kmeans", None).status_code == 422
    nothing = ROW | {"length": None, "width": None}
    assert ask("linearise", {"row": nothing}).status_code == 422


def test_an_explanation_speaks_of_columns_by_name(ask):
    got = result_of(ask("explain", {"rows": [ROW, ROW | {"width": 2.1}]}, "decision_tree"))
    assert len(got["explanations"]) == len(got["predictions"]) == 2
    requested = {step["column"] for one in got["explanations"] for step in one["path"]}
    assert requested
    assert requested <= {"length", "width", "size"}


def test_more_explanations_than_fit_into_a_response_are_refused(ask, monkeypatch):
    rows = {"columns": [*ROW], "data": [[*ROW.values()]] * 1000}
    size = len(json.dumps(result_of(ask("explain", rows, "decision_tree"))["explanations"], separators=(",", ":")))
    monkeypatch.setattr("app.ml.queries.explain.MOST_BYTES", size // 2)
    refused = ask("explain", rows, "decision_tree")
    assert refused.status_code == 413
    assert "one request may return" in refused.json()["detail"]
    assert len(result_of(ask("explain", {"rows": [ROW] * 400}, "decision_tree"))["explanations"]) == 400


def test_neighbours_explain(ask):
    got = result_of(ask("explain", {"rows": [ROW]}, "knn"))
    assert got["explanations"][0]


def test_columns_of_a_linear_model_explain(ask):
    got = result_of(ask("explain", {"rows": [ROW]}, "logistic"))
    (explained,) = got["explanations"]
    assert {part["column"] for part in explained["contributions"]} == set(got["columns"])


def test_an_algorithm_without_explanations_says_so(ask):
    response = ask("explain", {"rows": [ROW]}, "kmeans", None)
    assert response.status_code == 409
    assert response.json()["code"] == "no_explanation"


def test_a_tree_is_read_from_a_version(ask):
    got = result_of(ask("tree", {"max_depth": 1}, "decision_tree"))
    assert (got["members"], got["classes"], got["version"]) == (1, ["setosa", "versicolor", "virginica"], 1)
    root, *rest = got["nodes"]
    assert root["column"] in {"length", "width", "size"}
    assert [node["parent"] for node in rest] == [0] * len(rest)
    assert pointers(ask("tree", {"member": 9}, "decision_tree"), 422) == {("/member", "invalid")}


def test_a_tree_of_an_ensemble_is_read_in_the_columns_of_the_table(ask):
    got = result_of(ask("tree", {"member": 24}, "random_subspace"))
    assert (got["members"], len(got["classes"])) == (25, 3)
    assert {node["column"] for node in got["nodes"] if "column" in node} <= {"length", "width", "size"}
    assert pointers(ask("tree", {"member": 25}, "bagging"), 422) == {("/member", "invalid")}


def test_neighbours_are_found_for_rows(ask):
    got = result_of(ask("neighbours", {"rows": [ROW, ROW | {"width": 2.2}], "n_neighbors": 3}, "knn"))
    first, second = got["neighbours"]
    assert [one["target"] for one in first] == ["setosa"] * 3
    assert len({one["row"] for one in first + second}) == 6
    assert pointers(ask("neighbours", {"rows": [{"length": 1}]}, "knn"), 422) == {("/rows", "missing_columns")}
    assert pointers(ask("neighbours", {"rows": [], "n_neighbors": 0}, "knn"), 422) == {
        ("/rows", "too_short"),
        ("/n_neighbors", "greater_than_equal"),
    }


def test_a_model_without_a_query_names_those_that_it_offers(ask):
    response = ask("tree", {}, "ridge", "length")
    assert (response.status_code, response.json()["code"]) == (409, "not_offered")
    assert response.json()["detail"] == (
        "ridge does not offer the query tree. It offers: explain, intervals, linearise, prepared_distances, sweep."
    )


def test_versions_that_are_not_there(client, made):
    for verb, body in (
        ("sweep", {"vary": [{"column": "width"}]}),
        ("linearise", {"row": ROW}),
        ("explain", {"rows": [ROW]}),
    ):
        assert client.post(f"/v1/models/{made()}/{verb}", json=body, params={"version": 9}).status_code == 404
        assert client.post(f"/v1/models/none/{verb}", json=body).status_code == 404


def test_predictions_with_error_bars(ask):
    body = {
        "rows": [{"width": 0.2, "size": "small", "species": "setosa"}, {"width": 2.0, "size": "small", "species": None}]
    }
    got = result_of(ask("intervals", body, "linear", "length"))
    wider = result_of(ask("intervals", body, "linear", "length", confidence=0.99))
    for i, value in enumerate(got["predictions"]):
        assert wider["lower"][i] < got["lower"][i] < value < got["upper"][i] < wider["upper"][i]
        assert "±" in got["display"][i]
    assert wider["confidence"] == 0.99
    assert got["interval"] == "algorithm"
    assert result_of(ask("intervals", body, "ridge", "length"))["interval"] == "split-conformal"


def test_bounds_that_are_nowhere_are_null(client, services):
    """Two rows, two parameters: the line runs through both, and nothing tells the noise."""
    spec = {"target": "y", "algorithm": {"name": "linear"}, "validation": {"test_fraction": 0}}
    columns = [TableColumn(name, "numeric", 0, 2) for name in "xy"]
    table = pa.table({"x": [0.0, 1.0], "y": [1.0, 3.0]})
    made = train(plan(TrainSpec.model_validate(spec), columns, table.num_rows), table, data_digest="sha256:0")
    name = f"w-{uuid4()}"
    with services.work() as w:
        where = {"model": name, "job_id": uuid4(), "dataset_id": uuid4(), "chunk_bytes": 1000}
        w.models.add_version(blob=made.blob, report=made.report, golden=made.golden, **where)
    got = result_of(client.post(f"/v1/models/{name}/intervals", json={"rows": [{"x": 0.5}]}))
    assert (got["predictions"], got["lower"], got["upper"], got["display"]) == ([2.0], [None], [None], ["2"])


def test_who_has_no_error_bars_says_so(ask):
    response = ask("intervals", {"rows": [ROW | {"species": "setosa"}]}, "linear", "species")
    assert (response.status_code, response.json()["code"]) == (409, "no_interval")
