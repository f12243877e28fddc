"""A replica that stops: its responses close their connections, and a proxy before it loses no request."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from uuid import uuid4

import pytest

from app.commands.serve import _Draining, configured
from app.main import create_app
from app.processes import ports
from tests.benchmarks.rolling_restart import Tally, load, predictions, restarted, two_replicas
from tests.nginx import nginx

BODY = json.dumps({"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}).encode()
PATHS = pytest.mark.parametrize("long", ["", f"X-Long: {3000 * 'x'}\r\n"], ids=["fast", "framework"])


@pytest.fixture(scope="module")
def name(services, publish):
    made = f"d-{uuid4()}"
    publish(services.work, made)
    return made


@pytest.fixture
def draining(settings):
    """A server's port, and what sends it the signal to stop: it drains until the test ends."""
    with contextlib.ExitStack() as undo:
        listener = undo.enter_context(ports.listen("127.0.0.1", 0))
        app = create_app(settings)
        running = _Draining(configured(app), app, 3600)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        undo.callback(thread.join)
        undo.callback(running._close)
        while not running.started:
            time.sleep(0.01)
        yield listener.getsockname()[1], lambda: running.handle_exit(15, None)


def request(name, long=""):
    head = f"POST /v1/models/{name}/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}{long}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY


def until_closed(line):
    return b"".join(iter(lambda: line.recv(1 << 16), b""))


@PATHS
def test_a_response_during_the_drain_is_the_last_of_its_connection(draining, name, long):
    """Of one that was open before, and of one opened since; a request sent behind it is not begun."""
    port, stop = draining
    with socket.create_connection(("127.0.0.1", port), timeout=20) as before:
        before.sendall(request(name, long))
        first = before.recv(1 << 16)
        stop()
        time.sleep(0.2)
        before.sendall(2 * request(name, long))
        second = until_closed(before)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as since:
        since.sendall(request(name, long))
        third = until_closed(since)
    assert b"connection: close" not in first
    for response in (second, third):
        assert response.startswith(b"HTTP/1.1 200 ")
        assert response.count(b"HTTP/1.1 ") == response.count(b"\r\nconnection: close\r\n") == 1


def test_both_request_paths_say_it_alike(draining, name):
    port, stop = draining
    stop()
    messages = []
    for long in ("", f"X-Long: {3000 * 'x'}\r\n", ""):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
            line.sendall(request(name, long))
            messages.append([header.partition(b":")[0] for header in until_closed(line).split(b"\r\n")])
    assert messages[0] == messages[1] == messages[2]


def test_a_request_begun_before_the_drain_is_the_last_of_its_connection(draining, name):
    port, stop = draining
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        whole = request(name, f"X-Long: {3000 * 'x'}\r\n")
        line.sendall(whole[:-1])
        time.sleep(0.1)
        stop()
        time.sleep(1.2)  # the headers that the server keeps for a second are made anew
        line.sendall(whole[-1:])
        assert until_closed(line).count(b"\r\nconnection: close\r\n") == 1


def test_who_connects_before_the_listener_closes_is_served_and_nobody_after():
    with ports.listen("127.0.0.1", 0) as listener, contextlib.ExitStack() as lines:
        address = listener.getsockname()
        early = lines.enter_context(socket.create_connection(address, timeout=20))
        assert ports.refuse_new(listener)
        late = lines.enter_context(socket.socket())
        late.settimeout(0.2)
        with pytest.raises(TimeoutError):
            late.connect(address)
        assert ports.accepts(listener)
        accepted = lines.enter_context(listener.accept()[0])
        assert not ports.accepts(listener)
        early.sendall(b"here")
        assert accepted.recv(4) == b"here"


@pytest.mark.slow
def test_rolling_restarts_behind_nginx_lose_no_request(stack, name):
    async def lost():
        replicas, found = two_replicas(stack.settings, stack.folder)
        with contextlib.ExitStack() as undo:
            for replica in replicas:
                replica.start()
                undo.callback(replica.stop)
            address, tally = undo.enter_context(nginx(*found)), Tally()
            async with load(address, predictions(BODY, name), tally, connections=16):
                await asyncio.sleep(1)
                return [seen async for seen, _ in restarted(replicas, 4, tally)]

    seen = asyncio.run(lost())
    assert all(tally.requests > 100 for tally in seen)
    assert [dict(tally.failures) for tally in seen] == [{}] * 4
