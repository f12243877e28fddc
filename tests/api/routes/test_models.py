"""The registry over HTTP."""

import hashlib
from uuid import uuid4

import pytest
from safetensors.numpy import load
from starlette.testclient import TestClient

from app.main import create_app


@pytest.fixture
def name(services, publish):
    """A model with two versions."""
    name = f"h-{uuid4()}"
    publish(services.work, name)
    publish(services.work, name, algorithm="ridge", target="length")
    return name


@pytest.fixture(scope="module")
def exact(settings):
    """A client of a service whose pointers are never stale."""
    with TestClient(
        create_app(settings.model_copy(update={"pointer_seconds": 0.0, "stale_seconds": 0.0}))
    ) as connected:
        yield connected


def code(response, status):
    assert response.status_code == status, response.text
    return response.json()["code"]


def test_a_model(client, name):
    given = client.get(f"/v1/models/{name}").json()
    assert given.keys() == {"name", "created_at", "latest_version", "versions", "aliases"}
    assert (given["name"], given["latest_version"], given["versions"], given["aliases"]) == (name, 2, [1, 2], [])


def test_models_page_by_page(client, name):
    names, query = [], {"limit": 1}
    while True:
        page = client.get("/v1/models", params=query).json()
        names += [model["name"] for model in page["items"]]
        if "next_cursor" not in page:
            break
        query["cursor"] = page["next_cursor"]
    assert names == sorted(set(names))
    assert name in names


def test_versions_of_all_models_newest_first(client, name, services, publish):
    publish(services.work, other := f"h-{uuid4()}")
    client.put(f"/v1/models/{name}/aliases/champion", json={"version": 1})
    found, query = [], {"limit": 2}
    while "cursor" not in query or query["cursor"]:
        page = client.get("/v1/versions", params=query).json()
        found += page["items"]
        query["cursor"] = page.get("next_cursor")
    places = [(one["model"], one["version"]) for one in found]
    assert len(places) == len(set(places))
    assert places[:3] == [(other, 1), (name, 2), (name, 1)]
    whole = client.get(f"/v1/models/{name}/versions/1").json()
    (summary,) = [one for one in found if (one["model"], one["version"]) == (name, 1)]
    shared = ("algorithm", "task", "parameters", "target", "created_at", "size_bytes")
    assert {key: summary[key] for key in shared} == {key: whole[key] for key in shared}
    assert summary["metrics"] == [metric for metric in whole["metrics"] if "label" not in metric]
    assert len(summary["metrics"]) < len(whole["metrics"])
    assert summary["aliases"] == ["champion"]


def test_versions_of_one_model_or_of_one_dataset(client, name):
    page = client.get("/v1/versions", params={"model": name}).json()
    assert [one["version"] for one in page["items"]] == [2, 1]
    assert client.get("/v1/versions", params={"model": "no-such"}).json()["items"] == []
    assert client.get("/v1/versions", params={"dataset": str(uuid4())}).json()["items"] == []


@pytest.mark.parametrize("cursor", ["1", "1.a", "a.a.1", "99999999999999999.a.1", "1.a.9999999999", "-1.a.1", "1..1"])
def test_a_cursor_of_no_page_is_refused(client, cursor):
    assert code(client.get("/v1/versions", params={"cursor": cursor}), 422) == "invalid_request"


def test_a_version(client, name, trained):
    given = client.get(f"/v1/models/{name}/versions/1").json()
    blob = trained().blob
    assert given["digest"] == f"sha256:{hashlib.sha256(blob).hexdigest()}"
    assert given["size_bytes"] == len(blob)
    assert given["classes"] == ["setosa", "versicolor", "virginica"]
    assert given["receipt"]["seed"] == 0
    report = client.get(f"/v1/models/{name}/versions/1/report").json()
    assert report["task"] == "classification"
    assert given["metrics"] == report["test"]
    assert all(metric["lower"] <= metric["value"] <= metric["upper"] for metric in report["test"] if "lower" in metric)


def test_the_artifact_is_the_stored_bytes(client, name, trained):
    url = f"/v1/models/{name}/versions/1/artifact"
    response = client.get(url)
    assert response.content == trained().blob
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-length"] == str(len(trained().blob))
    assert response.headers["content-disposition"] == f'attachment; filename="{name}-1.safetensors"'
    assert load(response.content)  # the library reads it
    etag = response.headers["etag"]
    assert etag == f'"sha256:{hashlib.sha256(response.content).hexdigest()}"'
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = client.get(url, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert client.get(url, headers={"If-None-Match": '"other"'}).status_code == 200


def test_aliases(client, name):
    url = f"/v1/models/{name}/aliases/champion"
    made = client.put(url, json={"version": 1}, headers={"X-Request-Id": "request-one"})
    assert made.status_code == 201
    assert made.headers["etag"] == made.json()["etag"]
    moved = client.put(url, json={"version": 2}, headers={"If-Match": made.headers["etag"]})
    assert moved.status_code == 200
    assert moved.json()["version"] == 2
    refused = client.put(url, json={"version": 1}, headers={"If-Match": made.headers["etag"]})
    assert code(refused, 412) == "precondition_failed"
    assert refused.headers["etag"] == moved.headers["etag"]
    assert client.get(f"/v1/models/{name}").json()["aliases"] == [moved.json()]
    history = client.get(f"{url}/history").json()["items"]
    assert [(one["version"], one.get("previous_version")) for one in history] == [(2, 1), (1, None)]
    assert history[1]["request_id"] == "request-one"
    page = client.get(f"{url}/history", params={"limit": 1}).json()
    rest = client.get(f"{url}/history", params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert page["items"] + rest["items"] == history
    assert "next_cursor" not in rest


def test_what_is_deleted_is_gone_at_once(exact, name):
    rows = {"rows": [{"length": 5, "width": 1, "size": "small", "species": "setosa"}]}
    url = f"/v1/models/{name}"
    predict = f"{url}/predict"
    assert exact.post(predict, json=rows).headers["x-model-version"] == "2"
    exact.put(f"{url}/aliases/champion", json={"version": 2})
    assert code(exact.delete(f"{url}/versions/2"), 409) == "version_in_use"
    exact.put(f"{url}/aliases/champion", json={"version": 1})
    assert exact.post(predict, json=rows).headers["x-model-version"] == "1"
    deleted = exact.delete(f"{url}/versions/2")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert code(exact.post(predict, json=rows, params={"version": 2}), 404) == "version_not_found"
    assert code(exact.delete(f"{url}/versions/2"), 404) == "version_not_found"
    assert exact.delete(url).status_code == 204
    for path in ("", "/versions/1", "/versions/1/report", "/versions/1/artifact"):
        assert code(exact.get(url + path), 404) == "model_not_found"
    assert code(exact.post(predict, json=rows), 404) == "model_not_found"
    assert code(exact.delete(url), 404) == "model_not_found"
    history = exact.get(f"{url}/aliases/champion/history").json()["items"]
    assert [one["version"] for one in history] == [1, 2]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/no-such", 404),
        ("GET", "/v1/models/{name}/versions/3", 404),
        ("GET", "/v1/models/{name}/versions/3/artifact", 404),
        ("GET", "/v1/models/{name}/aliases/none/history", 404),
        ("GET", "/v1/models/{name}/aliases/none/history?cursor=x", 422),
        ("GET", "/v1/models/{name}/versions/0", 422),
        ("GET", "/v1/models/{name}/versions/2147483648", 422),
        ("GET", "/v1/models/{name}/versions/one", 422),
        ("GET", "/v1/models/UPPER", 422),
        ("GET", "/v1/models/" + "a" * 101, 422),
        ("GET", "/v1/models?limit=0", 422),
        ("GET", "/v1/models?cursor=%00", 400),
        ("PUT", "/v1/models/{name}/aliases/a", 400),
    ],
)
def test_refusals(client, name, method, path, status):
    response = client.request(method, path.format(name=name))
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body", [{"version": 3}, {"version": 0}, {"version": "1x"}, {}, {"version": 1, "more": 1}, [], {"version": 2**40}]
)
def test_moves_that_are_refused(client, name, body):
    response = client.put(f"/v1/models/{name}/aliases/champion", json=body)
    assert response.status_code == (404 if body == {"version": 3} else 422)
    assert client.get(f"/v1/models/{name}").json()["aliases"] == []
