"""The configuration of nginx, run: the API is behind it, and errors of its own are problems too."""

import socket

import httpx
import pytest

from app.schemas.problems import Problem
from tests.nginx import nginx

pytestmark = pytest.mark.slow  # nginx is no Python package: only .ci/run installs it
HOST = b"Host: localhost\r\n"
REFUSED = {
    "request line": (b"GARBAGE\r\n\r\n", 400, "malformed_request"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "malformed_request"),
    "own address": (b"GET /problem HTTP/1.1\r\n" + HOST + b"\r\n", 404, "not_found"),
    "trace": (b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", 405, "method_not_allowed"),
    "body": (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999\r\n\r\n", 413, "body_too_large"),
    "address": (b"GET /" + 9000 * b"a" + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414, "uri_too_long"),
    "header": (b"GET / HTTP/1.1\r\n" + HOST + b"A: " + 9000 * b"a" + b"\r\n\r\n", 431, "header_too_large"),
    "encoding": (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"),
    "version": (b"GET / HTTP/3.0\r\n" + HOST + b"\r\n", 505, "http_version_not_supported"),
}


@pytest.fixture(scope="module")
def refusing():
    """nginx before a port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with nginx(port) as address:
        yield address


def send(address, raw):
    """The status line and headers, and the body, of what comes back."""
    url = httpx.URL(address)
    with socket.create_connection((url.host, url.port), timeout=10) as connection:
        connection.sendall(raw.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        connection.shutdown(socket.SHUT_WR)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    return head.decode(), body


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_with_a_problem(refusing, name):
    raw, status, code = REFUSED[name]
    head, body = send(refusing, raw)
    problem = Problem.model_validate_json(body)
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert "Content-Type: application/problem+json\r\n" in head
    assert f"X-Request-Id: {problem.request_id}" in head
    assert (problem.status, problem.code, problem.type) == (status, code, f"urn:valiant:problem:{code}")
    assert problem.detail == problem.error


def test_without_an_api_it_is_a_502(refusing):
    response = httpx.post(f"{refusing}/v1/jobs/train", json={})
    problem = Problem.model_validate_json(response.content)
    assert (response.status_code, problem.code, response.headers["retry-after"]) == (502, "api_unreachable", "2")


def test_an_api_that_accepts_nothing_is_a_504():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        with nginx(port) as address:
            response = httpx.get(f"{address}/livez", timeout=30)
        for one in waiting:
            one.close()
    assert (response.status_code, Problem.model_validate_json(response.content).code) == (504, "api_timeout")


def test_passes_everything_else(api_factory):
    _, behind = api_factory()
    port = httpx.URL(behind).port
    with nginx(port, port) as address, httpx.Client(base_url=address) as through, httpx.Client(base_url=behind) as api:
        assert through.get("/v1/algorithms").content == api.get("/v1/algorithms").content
        made = through.post("/v1/datasets", params={"name": "t", "file_format": "csv"}, content=b"a,b\n1,2\n3,4\n")
        assert made.status_code == 201
        for path in ("/v1/jobs/train", "/nothing"):  # errors of the API pass as they are
            mine, theirs = ({**client.post(path, json={}).json(), **SAME} for client in (through, api))
            assert mine == theirs


SAME = {"request_id": None, "instance": None}
