"""The configuration of nginx, run: the API is behind it, and errors of its own are problems too."""

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
    with nginx(reserve_port()) as address:
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
    assert is_unreachable(response)


@contextlib.contextmanager
def full_port():
    """A port whose queue of connections is full, so that no further one is made."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as waiting:
        port = listener.getsockname()[1]
        for _ in range(4):
            connection = waiting.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
        yield port


def test_an_api_that_accepts_no_connection_is_a_502():
    with full_port() as port, nginx(port) as address:
        response = httpx.get(f"{address}/livez", timeout=30)
    assert is_unreachable(response)


def test_two_replicas_that_fail_are_a_502_also_while_both_are_left_out():
    with full_port() as port, full_port() as other, nginx(port, other) as address:
        responses = [httpx.get(f"{address}/livez", timeout=30) for _ in range(4)]
        refused = [httpx.post(f"{address}/v1/jobs/train", json={}, timeout=30) for _ in range(2)]
    assert all(map(is_unreachable, responses + refused))


def test_a_replica_that_fails_loses_no_request_and_is_used_again():
    """One of two closes its port, and opens it again: every request is served, and in the end by both."""
    with replica(b"steady") as steady, nginx(steady, port := reserve_port()) as address:
        before = [httpx.get(address) for _ in range(20)]
        with replica(b"returned", port):
            after, deadline = [], time.monotonic() + 30
            while b"returned" not in after and time.monotonic() < deadline:
                after.append(httpx.get(address).content)
    assert {(response.status_code, response.content) for response in before} == {(200, b"steady")}
    assert set(after) == {b"steady", b"returned"}


def is_unreachable(response):
    code = Problem.model_validate_json(response.content).code
    return (response.status_code, code, response.headers["retry-after"]) == (502, "api_unreachable", "2")


def reserve_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextlib.contextmanager
def replica(body, port=0):
    """The port of a server that responds to every GET with this body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


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
