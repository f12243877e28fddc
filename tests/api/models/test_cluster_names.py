"""Names of clusters over HTTP: what they change, what is refused, and who sees them when."""

import io
import time
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from app.main import create_app

RNG = np.random.default_rng(7)
ROWS = RNG.normal(size=(60, 2)) + np.repeat([[0, 0], [12, 0], [0, 12]], 20, axis=0)
BODY = {"columns": ["east", "north"], "data": ROWS.tolist()}
ARROW = "application/vnd.apache.arrow.stream"
THREE = [{"cluster": 2, "name": "Far north"}, {"cluster": 0, "name": "Harbour"}]


@pytest.fixture(scope="module", autouse=True)
def models(client, done):
    lines = [f"{x!r},{y!r}" for x, y in ROWS.tolist()]
    dataset = client.post("/v1/datasets", content="\n".join(["east,north", *lines])).json()["id"]
    algorithms = {
        "regions": {"name": "kmeans", "n_clusters": 3},
        "grid": {"name": "som", "grid_height": 1, "grid_width": 3},
        "plane": {"name": "pca"},
    }
    for model, algorithm in algorithms.items():
        done("train", {"model": model, "dataset": dataset, "algorithm": algorithm})


@pytest.fixture(autouse=True)
def _unnamed(client, models):
    yield
    for model in ("regions", "grid"):
        if client.get(path(model)).status_code == 200:
            put(client, [], model)


def path(model="regions"):
    return f"/v1/models/{model}/versions/1/names"


def put(client, names, model="regions", **headers):
    return client.put(path(model), json={"names": names}, headers=headers)


def predict(client, body=BODY, model="regions", **headers):
    return client.post(f"/v1/models/{model}/predict", json=body, headers=headers)


def test_names_are_set_listed_and_replaced(client):
    given = put(client, THREE)
    assert given.status_code == 200
    found = client.get(path())
    assert found.json() == given.json()
    assert found.headers["etag"] == given.headers["etag"] == found.json()["etag"]
    assert found.json()["names"] == sorted(THREE, key=lambda one: one["cluster"])
    put(client, [{"cluster": 1, "name": "  East  "}])
    assert client.get(path()).json()["names"] == [{"cluster": 1, "name": "East"}]
    put(client, [])
    assert client.get(path()).json()["names"] == []


def test_the_same_names_again_change_nothing(client):
    assert put(client, THREE).json() == put(client, THREE[::-1]).json()


def test_all_changes_are_kept_newest_first(client):
    put(client, THREE, **{"X-Request-ID": "f" * 32})
    put(client, THREE[:1])
    pages = client.get(f"{path()}/history", params={"limit": 1}).json()
    assert [one["names"] for one in pages["items"]] == [THREE[:1]]
    older = client.get(f"{path()}/history", params={"limit": 1, "cursor": pages["next_cursor"]}).json()["items"]
    assert older[0]["names"] == THREE[::-1]
    assert older[0]["revision"] == pages["items"][0]["revision"] - 1
    refused = client.get(f"{path()}/history", params={"cursor": "abc"})
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/cursor"]


@pytest.mark.parametrize("model", ["regions", "grid"])
def test_predictions_have_the_name_beside_the_number(client, model):
    numbers = predict(client, model=model).json()
    assert "names" not in numbers
    put(client, THREE, model)
    named = predict(client, model=model).json()
    called = {one["cluster"]: one["name"] for one in THREE}
    assert named.pop("names") == [called.get(number) for number in named["predictions"]]
    assert named == numbers
    table = pa.ipc.open_stream(io.BytesIO(predict(client, model=model, accept=ARROW).content)).read_all()
    assert table["name"].to_pylist() == [called.get(number) for number in table["prediction"].to_pylist()]


def test_tensors_have_the_name_where_clusters_have_names(client):
    """The protocol has no null: the name of a cluster without one is empty."""
    matrix = {"name": "rows", "shape": [60, 2], "datatype": "FP64", "data": ROWS.ravel().tolist()}

    def inferred(**more):
        response = client.post("/v2/models/regions/infer", json={"inputs": [matrix]} | more)
        assert response.status_code == 200, response.text
        return response

    def described():
        return [one["name"] for one in client.get("/v2/models/regions").json()["outputs"]]

    (numbers,) = inferred().json()["outputs"]
    before = described()
    put(client, THREE)
    own, named = inferred().json()["outputs"]
    called = {one["cluster"]: one["name"] for one in THREE}
    assert own == numbers
    assert (named["name"], named["datatype"], named["shape"]) == ("name", "BYTES", [60])
    assert named["data"] == [called.get(number, "") for number in numbers["data"]]
    assert described() == [before[0], "name", *before[1:]]
    (alone,) = inferred(outputs=[{"name": "name"}]).json()["outputs"]
    assert alone == named
    binary = inferred(outputs=[{"name": "name", "parameters": {"binary_data": True}}])
    end = int(binary.headers["inference-header-content-length"])
    texts = [name.encode() for name in named["data"]]
    assert binary.content[end:] == b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    put(client, [])
    assert inferred().json()["outputs"] == [numbers]


def test_a_bad_row_has_no_name(client):
    put(client, THREE)
    body = {"columns": ["east", "north"], "data": [["x", 0.0], *ROWS.tolist()[:1]]}
    found = client.post("/v1/models/regions/predict", params={"on_error": "null"}, json=body).json()
    assert found["names"][0] is None
    assert len(found["names"]) == 2
    nothing = body | {"data": body["data"][:1]}
    found = client.post("/v1/models/regions/predict", params={"on_error": "null"}, json=nothing).json()
    assert found["names"] == [None]


def test_cards_have_names(client):
    put(client, THREE)
    cards = client.post("/v1/models/regions/clusters", json={}).json()["clusters"]
    assert [card.get("name") for card in cards] == ["Harbour", None, "Far north"]


def test_plots_have_names(client):
    plots = [one["name"] for one in client.get("/v1/models/regions/versions/1/plots").json()["items"]]
    drawn = ["cluster_cards", "cluster_prototypes", "cluster_sizes", "projection_scatter", "silhouette"]
    assert set(drawn) <= set(plots)
    before = {name: client.get(f"/v1/models/regions/versions/1/plots/{name}") for name in drawn}
    put(client, THREE)
    for name in drawn:
        after = client.get(f"/v1/models/regions/versions/1/plots/{name}")
        assert "Far north" in after.text, name
        assert after.headers["etag"] != before[name].headers["etag"]
    assert client.get("/v1/models/grid/versions/1/plots/u_matrix").status_code == 200
    put(client, THREE, "grid")
    assert "Far north" in client.get("/v1/models/grid/versions/1/plots/u_matrix").text


def test_the_version_stays_as_it_is(client):
    before = client.get("/v1/models/regions/versions/1").json()
    artifact = client.get("/v1/models/regions/versions/1/artifact").content
    put(client, THREE)
    assert client.get("/v1/models/regions/versions/1").json() == before
    assert client.get("/v1/models/regions/versions/1/artifact").content == artifact


def test_every_problem_is_named_with_its_place(client):
    names = [
        {"cluster": 3, "name": "a"},
        {"cluster": -1, "name": " "},
        {"cluster": 0, "name": "same"},
        {"cluster": 0, "name": "x" * 101},
        {"cluster": 1, "name": " same"},
        {"cluster": 2, "name": "two\nlines"},
    ]
    refused = put(client, names)
    assert refused.status_code == 422
    assert [(one["pointer"], one["code"]) for one in refused.json()["errors"]] == [
        ("/names/0/cluster", "unknown_cluster"),
        ("/names/1/cluster", "unknown_cluster"),
        ("/names/1/name", "empty_name"),
        ("/names/2/cluster", "duplicate_cluster"),
        ("/names/2/name", "duplicate_name"),
        ("/names/3/cluster", "duplicate_cluster"),
        ("/names/3/name", "long_name"),
        ("/names/4/name", "duplicate_name"),
        ("/names/5/name", "unprintable_name"),
    ]
    assert put(client, [{"cluster": 0, "name": "x" * 100}]).status_code == 200


@pytest.mark.parametrize(
    "body",
    [{}, {"names": None}, {"names": [{"cluster": "0", "name": "a"}]}, {"names": [{"cluster": 0}]}, {"name": []},
     {"names": [{"cluster": 0.5, "name": "a"}]}],
)  # fmt: skip
def test_bodies_of_another_form_are_refused(client, body):
    refused = client.put(path(), json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"]


def test_a_number_beyond_all_integers_is_refused(client):
    assert put(client, [{"cluster": 2**70, "name": "a"}]).status_code == 400
    assert put(client, [{"cluster": 2**40, "name": "a"}]).status_code == 422


def test_only_clusters_have_names(client):
    for response in (put(client, THREE, "plane"), client.get(path("plane")), client.get(f"{path('plane')}/history")):
        assert (response.status_code, response.json()["code"]) == (409, "no_clusters")
    assert client.put("/v1/models/regions/versions/9/names", json={"names": []}).json()["code"] == "version_not_found"
    assert client.get("/v1/models/nowhere/versions/1/names").json()["code"] == "model_not_found"


def test_of_writers_with_one_etag_the_second_is_refused(client):
    etag = client.get(path()).headers["etag"]
    first = put(client, THREE, **{"If-Match": etag})
    assert first.status_code == 200
    second = put(client, [], **{"If-Match": etag})
    assert (second.status_code, second.json()["code"]) == (412, "precondition_failed")
    assert second.headers["etag"] == first.headers["etag"]
    assert client.get(path()).json() == first.json()
    assert put(client, [], **{"If-Match": "*"}).status_code == 200


def test_other_processes_see_a_name_once_their_pointer_is_renewed(client, settings):
    with TestClient(create_app(settings.model_copy(update={"pointer_seconds": 0.1}))) as other:
        assert "names" not in predict(other).json()
        put(client, THREE)
        assert "names" in predict(client).json()  # at once, in the process that has changed them
        time.sleep(0.1)
        assert "names" in predict(other).json()


def test_names_go_with_their_version(client, services):
    with services.work() as w:
        stored = {"blob": w.models.chunk("regions", 1, 0), "report": w.models.report("regions", 1)}
        stored |= {"golden": w.models.golden("regions", 1), "dataset_id": w.models.version("regions", 1).dataset}
        for _ in range(2):
            w.models.add_version(model="passing", job_id=uuid4(), **stored)
    put(client, THREE, "passing")
    assert client.delete("/v1/models/passing/versions/1").status_code == 204
    assert client.get(path("passing")).json()["code"] == "version_not_found"
    assert client.get("/v1/models/passing/versions/2/names").json()["names"] == []
    with services.work() as w:
        assert w.session.scalar(text("select count(*) from cluster_names where model = 'passing'")) == 0
