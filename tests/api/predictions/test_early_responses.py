"""A response that is sent before the body has come is read by clients that send the body first."""

import http.client
import json
import socket
import time
import urllib.error
import urllib.request

import httpx
import pytest

from app.api.fast import bounded_connection
from app.main import create_app
from app.schemas.keys import KeySpec
from app.services.access.request_rates import Allowance
from tests.api.fast.test_connection import serving

MORE_THAN_SOCKETS_HOLD = 16 << 20
"""Bytes of a body: the sockets of both ends hold less."""
BODY = bytes(MORE_THAN_SOCKETS_HOLD)
MODEL = "/v1/models/nobody"
SECONDS = 60
"""A response that takes longer does not come."""
JSON, CSV = "application/json", "text/csv"
EARLY = [
    ("POST", "/v1/jobs/train", JSON, {}, 413, "body_too_large"),
    ("POST", "/v1/datasets", CSV, {}, 413, "body_too_large"),
    ("POST", "/v1/datasets/upload", "multipart/form-data; boundary=b", {}, 413, "body_too_large"),
    ("POST", f"{MODEL}/predict", JSON, {}, 413, "body_too_large"),
    ("POST", f"{MODEL}/predict", CSV, {"Content-Encoding": "br"}, 415, "unsupported_content_encoding"),
    ("POST", "/v1/datasets", "multipart/form-data; boundary=b", {}, 415, "unsupported_media_type"),
    ("POST", "/v1/datasets/upload", CSV, {}, 413, "body_too_large"),
    ("POST", "/v1/nowhere", JSON, {}, 404, "not_found"),
    ("PUT", "/v1/jobs/train", JSON, {}, 405, "method_not_allowed"),
    ("POST", "/v1/jobs/train", JSON, {"Host": "evil.example"}, 421, "host_unknown"),
    ("POST", f"{MODEL}/predict", JSON, {"Origin": "https://evil.example"}, 403, "origin_foreign"),
]


@pytest.fixture(scope="module", params=[True, False], ids=["fast", "framework"])
def port(request, settings):
    own = {"fast_path": request.param, "max_body_bytes": 1 << 20, "max_upload_bytes": 1 << 20}
    with serving(create_app(settings.model_copy(update=own))) as (port, _):
        yield port


@pytest.fixture(scope="module", params=[True, False], ids=["fast", "framework"])
def guarded_port(request, settings):
    """An API that demands keys and reads them once, and its services."""
    own = {"fast_path": request.param, "auth": "keys", "revocation_seconds": 3600.0}
    app = create_app(settings.model_copy(update=own))
    with serving(app) as (port, _):
        yield port, app.services


def by_httpx(port, method, path, headers, body):
    response = httpx.request(
        method, f"http://127.0.0.1:{port}{path}", content=body, headers=headers, trust_env=False, timeout=SECONDS
    )
    return response.status_code, response.json()["code"]


def by_urllib(port, method, path, headers, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=SECONDS)
    return raised.value.code, json.loads(raised.value.read())["code"]


def in_chunks(port, method, path, headers, body):
    """Without an announced length."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    line.request(method, path, iter([body[: 1 << 20]] * (len(body) >> 20)), headers, encode_chunked=True)
    response = line.getresponse()
    return response.status, json.loads(response.read())["code"]


LATER = by_httpx, in_chunks


@pytest.mark.parametrize("send", [by_urllib, *(pytest.param(each, marks=pytest.mark.slow) for each in LATER)])
@pytest.mark.parametrize("early", EARLY)
def test_clients_that_send_the_body_first_read_the_response(port, send, early):
    method, path, kind, headers, status, code = early
    headers = {"Content-Type": kind} | headers
    if send is in_chunks:
        headers["Transfer-Encoding"] = "chunked"
    expected = status, code
    if path == "/v1/datasets/upload" and kind == CSV and send is in_chunks:
        expected = 415, "unsupported_media_type"  # no length is announced
    if path == "/v1/datasets/upload" and kind != CSV and send is in_chunks:
        expected = 422, "invalid_request"  # the first bytes are no form
    assert send(port, method, path, headers, BODY) == expected


@pytest.mark.parametrize("path", ["/v1/jobs/train", "/v1/datasets?file_format=csv", f"{MODEL}/predict"])
def test_clients_with_large_bodies_read_why_their_key_or_the_moment_is_wrong(guarded_port, path, monkeypatch):
    port, services = guarded_port

    def sent(key=None):
        headers = {"Content-Type": JSON} | ({"Authorization": f"Bearer {key}"} if key else {})
        return by_urllib(port, "POST", path, headers, BODY)

    viewer, editor = (
        services.keys.create_first(KeySpec(name=role, role=role), f"early-{role}").secret
        for role in ("viewer", "editor")
    )
    assert sent() == (401, "credential_missing")
    assert sent("vlt_wrong") == (401, "credential_invalid")
    assert sent(viewer) == (403, "scope_missing")
    rights = services.access.find(editor.encode())
    rights.rate = Allowance()
    rights.rate.limit(0.001)
    rights.rate.left = 0.0
    assert sent(editor) == (429, "rate_limited")
    monkeypatch.setattr(services.access, "_fresh_until", 0.0)
    assert sent(editor) == (503, "auth_unavailable")


def test_a_body_that_is_not_wanted_is_not_sent_by_who_asks_first(port):
    """Expect: 100-continue. Whether the body follows is open, so the connection ends; else it would be requested."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", "/v1/jobs/train", len(BODY), "Expect: 100-continue"))
        response = read_all(line)
    assert response.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in response
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", "/v1/nowhere", 2, "Expect: 100-continue"))
        assert b"connection: close" in read_all(line)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", "/v1/jobs/train", 2, "Expect: 100-continue", "Connection: close"))
        assert line.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(b"{}")
        assert read_all(line).startswith(b"HTTP/1.1 422 ")


def test_after_an_early_response_the_connection_serves_on(port):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", "/v1/nowhere", len(BODY)) + BODY + head("GET", "/livez", 0, "Connection: close"))
        first, _, second = read_all(line).partition(b"}HTTP/1.1 ")
    assert first.startswith(b"HTTP/1.1 404 ")
    assert second.startswith(b"200 ")


@pytest.mark.parametrize("path", ["/v1/jobs/train", "/v1/nowhere"])
def test_what_follows_a_response_is_read_within_limits_of_bytes(port, path, monkeypatch):
    monkeypatch.setattr(bounded_connection, "DISCARDED_BYTES", 8 << 20)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", path, 1 << 40))
        assert is_cut(line, BODY[: 1 << 20], 1 << 10)


@pytest.mark.parametrize("path", ["/v1/jobs/train", "/v1/nowhere"])
def test_what_follows_a_response_is_read_within_limits_of_time(port, path, monkeypatch):
    monkeypatch.setattr(bounded_connection, "DISCARDED_SECONDS", 0.3)
    monkeypatch.setattr(bounded_connection, "SILENT_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", path, 1 << 40))
        assert is_cut(line, b"x", 400, gap=0.05)


def test_a_head_that_does_not_come_to_its_end_is_refused(port, monkeypatch):
    monkeypatch.setattr(bounded_connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(bounded_connection, "SILENT_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(b"GET /livez HTTP/1.1\r\n")
        assert read_all(line).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_comes_too_slowly_is_refused(settings, monkeypatch):
    monkeypatch.setattr("app.api.edge.body.MIN_BYTES_PER_SECOND", 100)
    with serving(create_app(settings.model_copy(update={"upload_timeout_seconds": 0.3}))) as (port, _):
        for path in ("/v1/jobs/train", "/v1/datasets"):
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
                line.sendall(head("POST", path, 1000))
                line.settimeout(0.05)
                response = b""
                for _ in range(100):
                    line.sendall(b"x")
                    try:
                        response = line.recv(1 << 16)
                        break
                    except TimeoutError:
                        continue
                assert response.startswith(b"HTTP/1.1 408 "), path


def test_a_request_for_another_protocol_is_served_and_the_last(port):
    """As HTTP clients of Java send it with every first request."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("GET", "/livez", 0, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"))
        response = read_all(line)
    assert response.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in response


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://evil.example/livez", "localhost", 421),
        ("HTTP://evil.example:80/livez", "localhost", 421),
        ("http://localhost@evil.example/livez", "localhost", 421),
        ("http://user:word@localhost/livez", "localhost", 421),
        ("http:///livez", "localhost", 400),
        ("http://localhost/livez", "evil.example", 200),
        ("https://127.0.0.1:8000/livez", "localhost", 200),
        ("ftp://localhost/livez", "localhost", 400),
        ("*", "localhost", 400),
    ],
)
def test_an_absolute_address_states_the_host(port, target, host, status):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert read_all(line).startswith(b"HTTP/1.1 %d " % status)


def test_what_is_no_request_behind_one_that_is_served_leaves_its_response_whole(port):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("GET", "/livez", 0) + bytes(MORE_THAN_SOCKETS_HOLD))
        response = read_all(line)
    assert response.startswith(b"HTTP/1.1 200 ")
    assert response.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/v1/jobs", "/v1/nowhere"])
def test_who_sends_no_more_and_still_reads_gets_every_response(port, path):
    for count in (1, 2):
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
            line.sendall(count * head("GET", path, 0))
            line.shutdown(socket.SHUT_WR)
            assert read_all(line).count(b"HTTP/1.1 ") == count


def test_who_sends_half_a_body_and_no_more_is_gone(port):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(head("POST", "/v1/jobs/train", 100) + bytes(50))
        line.shutdown(socket.SHUT_WR)
        assert read_all(line) == b""


def is_cut(line, chunk, count, gap=0.0):
    """True if the other end closes the connection while `count` chunks are sent."""
    try:
        for _ in range(count):
            line.sendall(chunk)
            time.sleep(gap)
    except ConnectionError:
        return True
    return False


def head(method, path, size, *headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {size}", "", ""]).encode()


def read_all(line):
    """What comes until the other end closes. It is closed in order, not reset."""
    came = b""
    while chunk := line.recv(1 << 16):
        came += chunk
    return came
