"""Properties of every request, whatever its route."""

import json
from uuid import UUID

import pytest
from fastapi.routing import iter_route_contexts
from starlette.testclient import TestClient

from app.api.edge.middleware import SECURITY
from app.api.edge.strict_route import StrictRoute
from app.api.fast.route import DirectRoute
from app.api.uploads.multipart import FileFormRoute
from app.base import suggestions
from app.docs import explorer
from app.main import create_app
from app.schemas.problems import Problem

CANARY = "canary-7f3a9"
NOWHERE = "00000000-0000-7000-8000-000000000000"


def problem(response, status, code):
    """The response is a whole problem, under the request's id."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = Problem.model_validate_json(response.content)
    assert (found.status, found.code) == (status, code)
    assert all([found.title, found.detail])
    assert found.error == found.detail
    assert found.type == f"urn:valiant:problem:{code}"
    assert found.request_id == response.headers["x-request-id"]
    return found


@pytest.fixture(scope="module")
def lonely(settings):
    """An application with a route that breaks."""
    app = create_app(settings)

    @app.get("/broken", include_in_schema=False)
    def fail_at_once():
        raise RuntimeError(CANARY)

    with TestClient(app) as connected:
        yield connected


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/livez", 200, None),
        ("GET", "/docs", 200, None),
        ("GET", "/openapi.json", 200, None),
        ("GET", "/metrics", 200, None),
        ("GET", "/v1/algorithms", 200, None),
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/jobs/", 404, "not_found"),
        ("GET", f"/v1/jobs/{NOWHERE}", 404, "job_not_found"),
        ("POST", f"/v1/jobs/{NOWHERE}/cancel", 404, "job_not_found"),
        ("GET", f"/v1/jobs/{NOWHERE}/events", 404, "job_not_found"),
        ("GET", "/v1/jobs/neither-id-nor-name!", 422, "invalid_request"),
        ("GET", "/v1/jobs?state=asleep", 422, "invalid_request"),
        ("GET", "/v1/algorithms/magic", 404, "algorithm_not_found"),
        ("DELETE", "/v1/jobs", 405, "method_not_allowed"),
        ("POST", "/v1/jobs/train", 400, "empty_body"),
        ("GET", "/broken", 500, "internal_error"),
    ],
)
def test_every_response_is_stamped_and_every_failure_is_a_problem(lonely, method, path, status, code):
    response = lonely.request(method, path)
    assert response.status_code == status
    assert response.headers["x-request-id"]
    own = {"Content-Security-Policy": explorer.POLICY} if path == "/docs" else {}
    for name, value in (SECURITY | own).items():
        assert response.headers.get_list(name) == [value]
    assert "server" not in response.headers
    if code:
        problem(response, status, code)


def test_an_unexpected_failure_tells_nothing_but_its_request(lonely, capfd):
    response = lonely.get("/broken")
    assert CANARY not in response.text
    assert "RuntimeError" not in response.text
    problem(response, 500, "internal_error")


def test_a_sane_request_id_is_kept_and_any_other_replaced(client):
    assert client.get("/livez", headers={"X-Request-Id": "trace-0123456789"}).headers["x-request-id"] == (
        "trace-0123456789"
    )
    for odd in ("short", "x" * 129, "with space in it", 'quote"quote"', "\xe9" * 20):
        given = client.get("/livez", headers={"X-Request-Id": odd.encode("latin-1")}).headers["x-request-id"]
        assert UUID(given)


def test_405_names_all_methods_of_the_address(client):
    assert client.put("/v1/datasets/x").headers["allow"] == "DELETE, GET, HEAD"
    assert client.put("/v1/jobs").headers["allow"] == "GET, HEAD"
    assert client.get("/v1/jobs/train").headers["allow"] == "POST"


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_an_address_without_parameters_is_no_name_of_a_dataset(client, method):
    response = client.request(method, "/v1/datasets/upload")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "path",
    ["/", "/docs", "/livez", "/v1/datasets", "/v1/algorithms/ridge", "/v1/datasets/none", "/nowhere", "/v1/jobs/train"],
)
def test_head_is_served_wherever_get_is(client, path):
    head, get = (client.request(method, path, follow_redirects=False) for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (get.status_code, b"")
    differing = {"x-request-id", *({"content-length"} if get.is_error else {})}
    assert {k: v for k, v in head.headers.items() if k not in differing} == {
        k: v for k, v in get.headers.items() if k not in differing
    }


def test_the_root_sends_to_the_documentation(client):
    assert client.get("/", follow_redirects=False).headers["location"] == "/docs"
    assert client.get("/").headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/v1/jobs/%00", "/%00", "/v1/models/a%00b", "/v1/jobs?cursor=%00", "/livez?a=b%00"])
def test_nul_never_gets_past_the_door(client, path):
    problem(client.get(path), 400, "malformed_request")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=-1", "limit=1e3", "limit=" + "9" * 5000, "limit=9223372036854775808",
        "limit=NaN", "limit=", "cursor=", "cursor=%ff", "cursor=%ED%A0%80", "cursor=" + "a" * 300, "cursor=a'b",
        "cursor=nothing-of-ours",
    ],
)  # fmt: skip
def test_hostile_queries_are_named_with_their_place(client, query):
    found = problem(client.get(f"/v1/jobs?{query}"), 422, "invalid_request")
    assert [error.pointer for error in found.errors] == ["/query/" + query.partition("=")[0]]


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "caf\xe9", "tab\t"])
def test_a_hostile_idempotency_key_is_refused(client, key):
    response = client.post(
        "/v1/jobs/train",
        json={"model": "m", "dataset": NOWHERE, "algorithm": {"name": "ridge"}},
        headers={"Idempotency-Key": key.encode("latin-1")},
    )
    found = problem(response, 422, "invalid_request")
    assert [error.pointer for error in found.errors] == ["/header/Idempotency-Key", "/dataset"]


def test_all_faults_are_listed_at_once_with_pointers_into_the_body(client):
    body = {
        "model": "No Spaces Please",
        "dataset": 5,
        "algorithm": {"name": "ridge", "l2": -1, "colour": CANARY},
        "seed": CANARY,
        "validation": {"method": CANARY, "test_fraction": 7},
        "extra/field~": 1,
    }
    found = problem(client.post("/v1/jobs/train", json=body), 422, "invalid_request")
    assert {error.pointer for error in found.errors} == {
        "/model", "/dataset", "/algorithm/l2", "/algorithm/colour", "/seed", "/validation/method",
        "/validation/test_fraction", "/extra~1field~0",
    }  # fmt: skip


@pytest.mark.parametrize(("more", "at"), [
    ({"algorithm": {"name": "committee", "estimator_weights": [1, 2]}}, "/algorithm"),
    (
        {"algorithm": {"name": "bagging", "estimator": {"name": "ecoc", "code_words": [[0], [0]]}}},
        "/algorithm/estimator",
    ),
    ({"algorithm": {"name": "ridge", "ridge": 1}}, "/algorithm/ridge"),
])  # fmt: skip
def test_a_fault_of_several_fields_points_at_what_has_them(client, more, at):
    body = {"model": "m", "dataset": "0198c0de-0000-7000-8000-000000000000", "target": "y"} | more
    missing, found = problem(client.post("/v1/jobs/train", json=body), 422, "invalid_request").errors
    assert (missing.pointer, found.pointer) == ("/dataset", at)
    assert not found.detail.startswith("Value error")


@pytest.mark.parametrize(
    "body",
    [
        {"algorithm": {"name": CANARY}},
        {"algorithm": CANARY},
        {"algorithm": {"name": "ridge", "l2": CANARY}},
        {"dataset": CANARY},
        {"model": CANARY + "!"},
        {"task": CANARY},
        {"features": [CANARY, {"x": CANARY}]},
        {"preprocessing": {"scaling": CANARY}},
        [CANARY],
        CANARY,
    ],
)
def test_no_value_comes_back(client, body):
    response = client.post("/v1/jobs/train", json=body)
    problem(response, 422, "invalid_request")
    assert CANARY not in response.text


def test_a_field_name_as_long_as_the_body_does_not_come_back_whole(client):
    response = client.post("/v1/jobs/train", json={"k" * 900_000: 1})
    problem(response, 422, "invalid_request")
    assert len(response.content) < 3000


def test_millions_of_faults_are_not_collected(client):
    found = problem(client.post("/v1/jobs/train", json={"features": [1] * 300_000}), 422, "invalid_request")
    assert "/features" in [error.pointer for error in found.errors]
    assert len(found.errors) < 10
    every_key_wrong = {f"{number:x}": 1 for number in range(1_000_000)}
    problem(client.post("/v1/jobs/train", json=every_key_wrong), 413, "body_too_large")


@pytest.mark.parametrize(
    ("content_type", "status", "code"),
    [
        ("application/json", 422, "invalid_request"),
        ("application/json; charset=UTF-8", 422, "invalid_request"),
        ("application/vnd.valiant+json", 422, "invalid_request"),
        ("application/json; charset=utf-16", 415, "unsupported_media_type"),
        ("text/json", 415, "unsupported_media_type"),
        ("text/plain", 415, "unsupported_media_type"),
        ("application/jsonp", 415, "unsupported_media_type"),
        ("multipart/form-data", 415, "unsupported_media_type"),
        ("", 415, "unsupported_media_type"),
        (";;;", 415, "unsupported_media_type"),
        (None, 415, "unsupported_media_type"),
    ],
)
def test_the_content_type_must_be_json(client, content_type, status, code):
    headers = {} if content_type is None else {"Content-Type": content_type}
    problem(client.post("/v1/jobs/train", content=b"{}", headers=headers), status, code)


@pytest.mark.parametrize("path", ["/v1/jobs/train", "/v1/jobs/train:validate"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"seed": NaN}', "non_finite_number"),
        (b'{"seed": 1e999}', "number_out_of_range"),
        (b'{"seed": 1' + b"0" * 4000 + b"}", "number_out_of_range"),
        (b'{"model": "\\ud800"}', "lone_surrogate"),
        (b'{"model": "\\u0000"}', "nul_character"),
        (b'{"model": "a", "model": "b"}', "duplicate_key"),
        (b'{"x": ' + b"[" * 900 + b"]" * 900 + b"}", "too_deep"),
        ('{"model": "a"}'.encode("utf-16"), "invalid_encoding"),
        (b'{"model": ', "malformed_json"),
        (b"", "empty_body"),
    ],
)
def test_the_strict_reader_stands_before_every_json_route(client, path, body, code):
    response = client.post(path, content=body, headers={"Content-Type": "application/json"})
    problem(response, 400, code)


def test_no_route_reads_json_another_way(client):
    for route in iter_route_contexts(client.app.routes):
        if getattr(route, "body_field", None) is not None:
            assert isinstance(route.original_route, StrictRoute | DirectRoute | FileFormRoute), route.path


def test_a_body_too_large_is_cut_off_declared_or_not(settings):
    small = settings.model_copy(update={"max_body_bytes": 1000})
    with TestClient(create_app(small)) as client:
        json_type = {"Content-Type": "application/json"}
        body = json.dumps({"x": "y" * 1000}).encode()
        problem(client.post("/v1/jobs/train", content=body, headers=json_type), 413, "body_too_large")
        sent = []

        def endless():
            while True:
                sent.append(1)
                yield b" " * 600

        chunked = client.post("/v1/jobs/train", content=_first(endless(), 100), headers=json_type)
        problem(chunked, 413, "body_too_large")
        within = b'{"x": "' + b"y" * 991 + b'"}'
        assert len(within) == 1000
        problem(client.post("/v1/jobs/train", content=within, headers=json_type), 422, "invalid_request")


def _first(chunks, count):
    for _, chunk in zip(range(count), chunks, strict=False):
        yield chunk


def test_requests_are_counted_by_template_never_by_address(client):
    for number in range(3):
        client.get(f"/v1/jobs/00000000-0000-7000-8000-00000000000{number}")
        client.get(f"/nowhere/{CANARY}")
    text = client.get("/metrics").text
    line = 'valiant_requests_total{method="GET",route="/v1/jobs/{job_id}",status="404"}'
    [count] = [entry.split()[-1] for entry in text.splitlines() if entry.startswith(line)]
    assert float(count) >= 3
    assert 'route="unknown"' in text
    assert CANARY not in text
    assert "valiant_requests_in_flight 1.0" in text


def test_an_odd_method_does_not_grow_the_metrics(client):
    client.request("BREW", "/livez")
    assert "BREW" not in client.get("/metrics").text


@pytest.mark.parametrize("path", ["/v1/jobs/search:validate", "/v1/models/m/explain"])
def test_of_thousands_of_faults_the_first_are_listed(client, monkeypatch, path):
    """Other requests wait meanwhile: its names are compared with no more than those of a body with some faults."""
    compared = []

    def compare(_name, names, **_how):
        compared.extend(names)
        return []

    monkeypatch.setattr(suggestions, "get_close_matches", compare)
    refusal = client.post(path, json={f"field {number}": 0 for number in range(30_000)})
    assert refusal.status_code == 422
    assert len(refusal.json()["errors"]) == 1000
    assert refusal.json()["detail"].startswith("1000 problems are listed, others are not; the first: field 0: ")
    assert len(compared) < 21_000


def test_of_thousands_of_faults_of_values_the_first_are_listed(client):
    body = {"task": "classification", "truth": ["a", "b"], "predicted": ["a", "b"]}
    refusal = client.post("/v1/metrics", json=body | {"costs": {"classes": ["a", "b"], "costs": [[0.5]] * 3000}})
    assert refusal.status_code == 422
    assert len(refusal.json()["errors"]) == 1000
    assert refusal.json()["detail"].startswith("1000 problems are listed, others are not; the first: ")


@pytest.mark.parametrize("kind", [1, "numbr"])
def test_of_thousands_of_faults_of_a_form_the_first_are_listed(client, kind):
    form = {"kinds": json.dumps({f"column {number}": kind for number in range(3000)}), "encoding": "morse"}
    refusal = client.post("/v1/datasets/upload", files={"file": ("x.csv", b"a,b\n1,2\n")}, data=form)
    assert refusal.status_code == 422
    assert len(refusal.json()["errors"]) == 1000
    assert refusal.json()["detail"].startswith("1000 problems are listed, others are not; the first: encoding: ")
