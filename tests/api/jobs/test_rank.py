"""A job of the kind `rank` over HTTP: the same numbers as scikit-learn, a dry run, and refusals."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.feature_selection import f_classif


@pytest.fixture(scope="module")
def dataset(client):
    data = load_wine()
    lines = [",".join([*map(str, row), f"kind{label}"]) for row, label in zip(data.data, data.target, strict=True)]
    names = [f"x{place}" for place in range(13)]
    return client.post("/v1/datasets?name=cellar", content="\n".join([",".join([*names, "y"]), *lines])).json()["id"]


def test_all_columns_are_ranked_with_their_p_values(done, client, dataset):
    body = {"dataset": dataset, "target": "y", "test_fraction": 0, "measures": ["correlation_ratio", "mifs"]}
    dry = client.post("/v1/jobs/rank:validate", json=body).json()
    assert dry["columns"] == 13
    job = done("rank", body)
    result = job["result"]
    assert (result["kind"], result["rows"], result["target"]) == ("rank", 178, "y")
    ratio, greedy = result["rankings"]
    f, p = f_classif(*load_wine(return_X_y=True))
    assert [one["column"] for one in ratio["columns"]] == [f"x{place}" for place in np.argsort(-f)]
    assert [one["p_value"] for one in ratio["columns"]] == pytest.approx(np.sort(p), rel=1e-9)
    assert ratio["tests"] == 13
    assert sorted(one["column"] for one in greedy["columns"]) == sorted(one["column"] for one in ratio["columns"])
    assert "p_value" not in greedy["columns"][0] or greedy["columns"][0]["p_value"] is None
    assert job["warnings"] == []


def test_without_measures_the_result_has_the_reason(done, dataset):
    result = done("rank", {"dataset": "cellar", "target": "x0"})["result"]
    assert result["reason"]
    assert [one["measure"] for one in result["rankings"]] == ["correlation", "correlation_ratio"]
    assert result["rankings"][0]["left_out"] == [
        {"column": "y", "reason": "It holds categories; this measure needs numbers."}
    ]


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"measures": ["correlation"]}, ["/measures/0"]),
        ({"measures": ["nothing"]}, ["/measures/0"]),
        ({"measures": []}, ["/measures"]),
        ({"measures": ["mifs", "mifs"]}, ["/measures/1"]),
        ({"target": "z", "features": ["x0", "x99"]}, ["/target", "/features/1"]),
        ({"max_bins": 1, "n_neighbors": 0, "beta": -1}, ["/max_bins", "/n_neighbors", "/beta"]),
        ({"test_fraction": 1}, ["/test_fraction"]),
        ({"target": None}, ["/target"]),
        ({"alpha": 1}, ["/alpha"]),
    ],
)
def test_a_fault_has_its_pointer(client, dataset, changes, pointers):
    response = client.post("/v1/jobs/rank:validate", json={"dataset": dataset, "target": "y"} | changes)
    assert response.status_code == 422, response.text
    assert sorted(fault["pointer"] for fault in response.json()["errors"]) == sorted(pointers)
