"""The worker's metrics server responds to every caller: also to one that sends a body, or half a head."""

import socket
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from app.base.settings import Settings
from app.processes import ports
from workers import metrics_server


@pytest.fixture(scope="module")
def port():
    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    settings = Settings(worker_metrics_port=port)
    services = SimpleNamespace(registry=CollectorRegistry(), settings=settings)
    metrics_server.serve(services, SimpleNamespace(slots=dict))
    return port


def test_who_sends_a_large_body_reads_the_response(port):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", bytes(16 << 20), method="POST")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(request, timeout=20)


def test_who_sends_half_a_head_is_not_waited_for(port, monkeypatch):
    monkeypatch.setattr(metrics_server._Handler, "timeout", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        line.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        assert line.recv(1) == b""
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).status == 200
