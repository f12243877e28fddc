"""A web page in a browser cannot use an open service: Host and Origin are checked on both request paths."""

import json
import socket
from uuid import uuid4

import pytest

from app.api.edge.hosts import Hosts, HostUnknown
from app.api.edge.problems import MalformedRequest
from app.main import create_app
from tests.api.fast.test_connection import read, serving

BODY = json.dumps({"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}).encode()
LONG = f"X-Long: {3000 * 'x'}"
"""A head with it takes the framework's path."""
SERVED = [
    "localhost", "localhost:8000", "LOCALHOST", "localhost.", "app.localhost:3000", "127.0.0.1", "127.0.0.1:80",
    "[::1]:8000", "10.1.2.3:8000", "listed.example", "Listed.Example:443",
]  # fmt: skip
UNKNOWN = [
    "evil.example", "evil.example:8000", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example",
    "localhost@evil.example", "evil.example#localhost", "evil.example/localhost", "localhost:80:80", "localhost:x",
    "localhost evil.example", "localhost,evil.example", "[::1", "::1", "127.1", "[localhost]", "", ".", "*",
    "sub.listed.example", "listed.example.evil.example", "l\u00f6calhost",
]  # fmt: skip
OWN = ["http://localhost:8000", "https://localhost:8000", "HTTP://LOCALHOST:8000", "https://listed.example"]
FOREIGN = [
    "https://evil.example", "http://localhost", "http://localhost:3000", "http://127.0.0.1:8000", "null", "",
    "localhost:8000", "http://localhost:8000.evil.example", "http://evil.example/localhost:8000",
    "http://evil.example@localhost:8000", "file://localhost:8000", "http://localhost:8000, https://evil.example",
]  # fmt: skip
HEADERS = [
    *((f"Host: {host}", 200, None) for host in SERVED),
    *((f"Host: {host}", 421, "host_unknown") for host in UNKNOWN),
    *((f"Host: localhost:8000\r\nOrigin: {origin}", 200, None) for origin in OWN),
    *((f"Host: localhost:8000\r\nOrigin: {origin}", 403, "origin_foreign") for origin in FOREIGN),
    ("Host: evil.example\r\nOrigin: http://evil.example", 421, "host_unknown"),
    ("Host: localhost\r\nHost: evil.example", 400, "malformed_request"),
    ("Host: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.example", 400, "malformed_request"),
    ("X-Nothing: 1", 400, "malformed_request"),
]


@pytest.fixture(scope="module")
def server(settings, services, publish):
    """A port, a model that is there, and the address at which it predicts."""
    name = f"h-{uuid4()}"
    publish(services.work, name)
    with serving(create_app(settings.model_copy(update={"hosts": "listed.example, Other.example"}))) as (port, _):
        yield port, f"/v1/models/{name}/predict"


def send(port, text, body=b""):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(text.encode("latin-1") + b"\r\n\r\n" + body)
        return read(line, 1)[0]


def found(response):
    head, _, body = response.partition(b"\r\n\r\n")
    return int(head[9:12]), json.loads(body).get("code")


@pytest.mark.parametrize(("headers", "status", "code"), HEADERS)
def test_both_request_paths_and_reads_admit_and_refuse_alike(server, headers, status, code):
    port, predict = server
    own = f"Content-Type: application/json\r\nContent-Length: {len(BODY)}"
    for more in ("", f"\r\n{LONG}"):
        assert found(send(port, f"POST {predict} HTTP/1.1\r\n{headers}\r\n{own}{more}", BODY)) == (status, code)
    assert found(send(port, f"GET /v1/datasets HTTP/1.1\r\n{headers}")) == (status, code)


@pytest.mark.parametrize(
    "request_line", ["POST /v1/datasets", "POST /v1/jobs/x/cancel", "DELETE /v1/datasets/x", "GET /livez", "GET /no"]
)
@pytest.mark.parametrize(
    ("headers", "code"),
    [("Host: evil.example", "host_unknown"), ("Host: localhost\r\nOrigin: https://evil.example", "origin_foreign")],
)
def test_no_address_is_open_to_a_foreign_page(server, request_line, headers, code):
    """Such as a simple request, which a browser sends without asking first."""
    text = f"{request_line} HTTP/1.1\r\n{headers}\r\nContent-Type: text/plain\r\nContent-Length: 2"
    assert found(send(server[0], text, b"{}"))[1] == code


def test_a_request_of_http_1_0_needs_no_host(server):
    assert found(send(server[0], "GET /livez HTTP/1.0"))[0] == 200


def test_a_star_admits_every_host_and_no_foreign_origin(settings):
    with serving(create_app(settings.model_copy(update={"hosts": "*"}))) as (port, _):
        request = "GET /livez HTTP/1.1\r\nHost: any.example"
        assert found(send(port, request))[0] == 200
        assert found(send(port, f"{request}\r\nOrigin: https://any.example"))[0] == 200
        assert found(send(port, f"{request}\r\nOrigin: https://evil.example")) == (403, "origin_foreign")


def test_the_name_it_listens_on_is_served(settings):
    app = create_app(settings.model_copy(update={"host": "inner.example", "hosts": ""}))
    app.hosts.check([(b"host", b"inner.example:8000")])
    with pytest.raises(HostUnknown):
        app.hosts.check([(b"host", b"testserver")])


def test_nothing_is_listed_by_default():
    with pytest.raises(HostUnknown):
        Hosts([""]).check([(b"host", b"")])
    with pytest.raises(MalformedRequest):
        Hosts([]).check([])
