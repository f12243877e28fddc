"""A caller's trace is named on every log line of its request and of its job; a problem's code is on its line."""

import json
import time
from uuid import uuid4

import httpx
import pytest

from app.base.tracing import sound

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
MALFORMED = (
    "", "00", TRACEPARENT.upper(), f"ff{TRACEPARENT[2:]}", TRACEPARENT.replace(TRACE, 32 * "0"), f"{TRACEPARENT}-x",
    TRACEPARENT.replace("00f067aa0ba902b7", 16 * "0"), f"{TRACEPARENT} ", "00-\u00e9",
)  # fmt: skip
ROWS = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}


@pytest.fixture(scope="module")
def api(api_factory):
    """A service of its own: a client, and the lines of its log."""
    child, address = api_factory()
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as http:
        yield http, lambda: [json.loads(line) for line in child.logfile.read_text().splitlines()]


def line_of(lines, request_id):
    """The line of a request: it may be written after its response was read."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for line in lines():
            if line.get("request_id") == request_id and line["event"] == "request":
                return line
        time.sleep(0.01)
    raise AssertionError(request_id)


def test_only_sound_contexts_are_passed_on():
    assert sound(TRACEPARENT) == TRACEPARENT
    assert [sound(text) for text in MALFORMED] == [None] * len(MALFORMED)


@pytest.mark.parametrize("long", [False, True], ids=["where it arrives", "by the framework"])
def test_a_request_names_its_trace_and_its_problem(api, services, publish, long):
    http, lines = api
    name = f"traced-{uuid4().hex[:8]}"
    publish(services.work, name)
    http.post(f"/v1/models/{name}/predict", json=ROWS)
    more = {"X-Long": 2048 * "x"} if long else {}
    for body, status, code in ((ROWS, 200, None), ({"rows": [{}]}, 422, "invalid_data")):
        for header, trace in ((TRACEPARENT, TRACE), ("malformed", None)):
            known = uuid4().hex
            sent = {"traceparent": header, "tracestate": "a=b", "X-Request-ID": known}
            response = http.post(f"/v1/models/{name}/predict", json=body, headers=sent | more)
            assert (response.status_code, response.headers["x-request-id"]) == (status, known), response.text
            line = line_of(lines, known)
            assert (line.get("trace_id"), line.get("code"), line["status"]) == (trace, code, status)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/nowhere", 404, "not_found"),
        ("/v1/jobs?limit=x", 422, "invalid_request"),
        ("/v1/models/none", 404, "model_not_found"),
    ],
)
def test_the_line_of_a_refused_request_has_the_code_of_its_problem(api, path, status, code):
    http, lines = api
    response = http.get(path)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert line_of(lines, response.headers["x-request-id"])["code"] == code


def test_requests_that_differ_in_id_and_trace_only_share_what_is_known_of_their_head(services, settings):
    from app.main import create_app

    app = create_app(settings.model_copy(update={"fast_path": True}), services)
    head = "POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += "{}Content-Length: 5\r\n\r\n"

    def looked_up(own):
        return app.heads[head.format(own).encode()]

    plain = looked_up("")
    for number in range(20):
        for own in (
            f"traceparent: 00-{number + 1:032x}-{1:016x}-01\r\n",
            f"X-Request-Id: {number:08d}\r\nTracestate:  a=b\r\n",
        ):
            assert looked_up(own)[:2] == plain[:2]
    assert app._shared.cache_info().misses == 1
    assert looked_up("X-Request-Id : spaced-out\r\n") is None  # the server's own parser refuses it, and so it shall
    assert app._shared.cache_info().misses == 2


@pytest.mark.usefixtures("worker")
def test_a_job_goes_on_with_the_trace_of_its_request(api, services, stack, add_iris):
    from app.store.jobs.job_tables import JobRow

    http, _ = api
    body = {"model": "traced", "dataset": str(add_iris(services.work)), "target": "species"}
    body |= {"algorithm": {"name": "ridge"}}
    sent = [{"traceparent": TRACEPARENT}, {"traceparent": "malformed"}]
    jobs = [http.post("/v1/jobs/train", json=body, headers=headers).json()["id"] for headers in sent]
    for job in jobs:
        http.get(f"/v1/jobs/{job}/events")
    with services.work() as w:
        assert [w.session.get(JobRow, job).traceparent for job in jobs] == [TRACEPARENT, None]
    logs = stack.folder.run.parent.rglob("worker*.log")
    written = [json.loads(line) for log in logs for line in log.read_text().splitlines() if line[:1] == "{"]
    traced = [{line.get("trace_id") for line in written if line.get("job_id") == job} for job in jobs]
    assert traced == [{TRACE}, {None}]
