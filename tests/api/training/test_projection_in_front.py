"""A projection that was fitted before stands in front of another algorithm, over HTTP."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

IRIS = Path(__file__).parents[3] / "app" / "samples" / "iris.csv"
AT = "/preprocessing/projection"


@pytest.fixture(scope="module")
def dataset(client):
    return client.post("/v1/datasets", content=IRIS.read_bytes()).json()["id"]


@pytest.fixture(scope="module")
def request_of(client, dataset, done):
    """The training of a classifier behind the first two principal components, and these."""
    sheet = client.get(f"/v1/datasets/{dataset}").json()
    *names, target = [column["name"] for column in sheet["columns"]]
    algorithm = {"name": "pca", "n_components": 2}
    done("train", {"model": "front-map", "dataset": dataset, "features": names, "algorithm": algorithm})
    body = {"model": "front-species", "dataset": dataset, "target": target, "algorithm": {"name": "logistic"}}
    return body | {"preprocessing": {"projection": {"model": "front-map", "version": 1}}}, names


def test_it_predicts_from_the_columns_of_the_table_in_every_format(client, request_of, done):
    body, names = request_of
    dry = client.post("/v1/jobs/train:validate", json=body).json()
    assert dry["features"] == names
    assert any("front-map/1 was fitted on this dataset" in warning for warning in dry["warnings"])
    done("train", body)
    url = "/v1/models/front-species"
    version = client.get(f"{url}/versions/1").json()
    front = client.get("/v1/models/front-map/versions/1").json()
    assert [column["name"] for column in version["inputs"]] == names
    receipt = version["receipt"]["projection"]
    assert receipt == {
        "model": "front-map",
        "version": 1,
        "digest": front["digest"],
        "data_digest": version["dataset_digest"],
    }
    report = client.get(f"{url}/versions/1/report").json()
    assert next(metric for metric in report["test"] if metric["name"] == "accuracy")["value"] > 0.8

    rows = [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [7.2, 3.6, 6.1, 2.5]]
    by_rows = client.post(f"{url}/predict", json={"rows": [dict(zip(names, row, strict=True)) for row in rows]}).json()
    assert by_rows["predictions"] == ["setosa", "versicolor", "virginica"]
    file = io.BytesIO()
    np.save(file, np.array(rows))
    as_matrix = client.post(
        f"{url}/predict",
        content=file.getvalue(),
        headers={"content-type": "application/x-npy", "accept": "application/json"},
    ).json()
    sink = pa.BufferOutputStream()
    table = pa.table(dict(zip(names, np.array(rows).T, strict=True)))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    as_arrow = client.post(
        f"{url}/predict",
        content=sink.getvalue().to_pybytes(),
        headers={"content-type": "application/vnd.apache.arrow.stream", "accept": "application/json"},
    ).json()
    assert as_matrix["probabilities"] == as_arrow["probabilities"] == by_rows["probabilities"]


def test_what_stands_in_front_is_not_deleted(client, request_of, done):
    body, _ = request_of
    done("train", body | {"model": "front-behind"})
    for path in ("/v1/models/front-map/versions/1", "/v1/models/front-map"):
        refused = client.delete(path)
        assert (refused.status_code, refused.json()["code"]) == (409, "version_in_use")
        assert "front-behind/1" in refused.json()["detail"]
    assert client.get("/v1/models/front-map/versions/1").status_code == 200


def test_where_it_cannot_stand_it_is_refused(client, request_of, done):
    body, _ = request_of
    done("train", body | {"model": "front-other"})
    no_model = body | {"preprocessing": {"projection": {"model": "front-none"}}}
    assert client.post("/v1/jobs/train", json=no_model).status_code == 404
    wrong = body | {"preprocessing": {"projection": {"model": "front-other"}}}
    refused = client.post("/v1/jobs/train", json=wrong)
    assert refused.status_code == 422
    assert {error["pointer"] for error in refused.json()["errors"]} == {AT}
    rows = {"predictions": [0]}
    assert client.post("/v1/models/front-other/decode", json=rows).json()["code"] == "not_offered"


def test_members_behind_projections_make_a_committee(client, request_of, done):
    """Its probabilities are the means of theirs: of one behind two components, one behind three, one behind none."""
    body, names = request_of
    wide = {"model": "front-wide", "features": names, "algorithm": {"name": "pca", "n_components": 3}}
    done("train", {"dataset": body["dataset"], **wide})
    done("train", body | {"model": "front-two"})
    done("train", body | {"model": "front-three", "preprocessing": {"projection": {"model": "front-wide"}}})
    plain = {"model": "front-none", "preprocessing": {}, "algorithm": {"name": "knn"}}
    done("train", body | plain)
    members = ("front-two", "front-three", "front-none")
    wanted = {"model": "front-team", "dataset": body["dataset"], "members": [{"model": name} for name in members]}
    done("combine", wanted)
    rows = {"columns": names, "data": [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [6.1, None, 5.1, 2.0]]}

    def probabilities(model):
        found = client.post(f"/v1/models/{model}/predict", json=rows).json()
        return np.array(found["probabilities"])

    np.testing.assert_allclose(probabilities("front-team"), np.mean([*map(probabilities, members)], axis=0), rtol=1e-12)
    url = "/v1/models/front-team"
    assert client.get(f"{url}/versions/1/report").json()["rows_test"] == 30
    assert client.put(f"{url}/aliases/champion", json={"version": 1}).status_code == 201
    for query, more in (("explain", rows), ("linearise", {"row": dict(zip(names, rows["data"][0], strict=True))})):
        assert client.post(f"{url}/{query}", json=more).status_code == 200
    done("combine", wanted | {"model": "front-teams", "members": [{"model": "front-team"}, {"model": "front-three"}]})
    expected = (probabilities("front-team") + probabilities("front-three")) / 2
    np.testing.assert_allclose(probabilities("front-teams"), expected, rtol=1e-12)
    for model in members:
        assert client.delete(f"/v1/models/{model}").status_code == 204
    np.testing.assert_allclose(probabilities("front-teams"), expected, rtol=1e-12)
