"""A real server over a real socket: what is served where it arrives, and what comes the usual way, is the same."""

import asyncio
import gc
import json
import re
import socket
import struct
import threading
import time
import weakref
from contextlib import ExitStack, contextmanager
from functools import partial
from uuid import uuid4

import numpy as np
import pytest
import uvicorn

from app.api.fast import connection, write_batching
from app.api.fast.head import END, read_head
from app.api.fast.head_cache import HeadCache, PreparedRequest
from app.api.fast.write_batching import Gathering, Turn
from app.commands.serve import configured
from app.main import create_app
from app.services.predictions.predictions import Predictions

ROWS = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"], [None, 1.5, "large"]]}
HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) .*?\r\ncontent-length: (\d+)\r\n.*?\r\n\r\n", re.DOTALL)
OWN = re.compile(rb"(date|x-request-id): [^\r]*\r\n|\"request_id\":\"[^\"]*\"|urn:valiant:request:[0-9a-f]*")
"""What differs from request to request."""
LONG = f"X-Long: {2048 * 'x'}"
"""A head with it takes the usual way."""


@pytest.fixture(scope="module")
def name(services, publish):
    made = f"c-{uuid4()}"
    publish(services.work, made)
    return made


@pytest.fixture(scope="module")
def server(settings):
    """Its port, and of each request that did not take the usual way whether its response was at hand."""
    app = create_app(settings.model_copy(update={"max_body_bytes": 100_000, "pointer_seconds": 3600}))
    messages, real = [], app._shared

    def request_of(head):
        found = real(head)
        return None if found is None else found._replace(process=partial(overheard, found.process, messages))

    app.heads = HeadCache(request_of)
    with serving(app) as (port, _):
        yield port, messages


@contextmanager
def serving(app, **options):
    """A port and the server."""
    config = configured(app)
    for option, value in options.items():
        setattr(config, option, value)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        while not running.started:
            time.sleep(0.01)
        try:
            yield listening.getsockname()[1], running
        finally:
            running.should_exit = True
            thread.join()


def overheard(process, direct, *request, **own):
    response = process(*request, **own)
    direct.append(isinstance(response, tuple))
    return response


@pytest.fixture
def talk(server, monkeypatch):
    """`talk(bytes, count)`: as many responses to what is sent, the chunks of a list one after the other."""
    monkeypatch.setattr(Predictions, "is_quick", lambda *_: True)  # however slow the machine is now
    port, messages = server
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:

        def say(*chunks, responses=1, gap=0.03):
            messages.clear()
            for place, chunk in enumerate(chunks):
                if place:
                    time.sleep(gap)  # so that the server reads them apart
                line.sendall(chunk)
            return read(line, responses)

        say.line, say.shortcuts = line, messages
        yield say


def read(line, count):
    came, responses = b"", []
    while len(responses) < count:
        chunk = line.recv(1 << 16)
        assert chunk, came
        came += chunk
        while (head := HEAD.match(came)) and len(came) >= head.end() + int(head[2]):
            end = head.end() + int(head[2])
            responses.append(came[:end])
            came = came[end:]
    assert not came
    return responses


def request_of(model, body, *headers, path="predict", method="POST", version="1.1"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"{method} /v1/models/{model}/{path} HTTP/{version}", "Host: here", "Content-Type: application/json",
        f"Content-Length: {len(body)}", *headers, "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + body


def normalised(responses):
    return [OWN.sub(b"", response) for response in responses]


@pytest.fixture
def usual(talk, name):
    """The response to `ROWS` that comes the usual way, once the model is in memory."""
    talk(request_of(name, ROWS))
    responses = talk(request_of(name, ROWS, LONG))
    assert talk.shortcuts == []
    return normalised(responses)[0]


def test_both_ways_give_the_same_bytes(talk, name, usual):
    (response,) = normalised(talk(request_of(name, ROWS)))
    assert talk.shortcuts == [True]
    assert response == usual
    assert b"x-model-version: 1\r\n" in response
    assert b"x-content-type-options: nosniff\r\n" in response


def test_every_response_has_a_date_and_an_id(talk, name):
    (first,), (second,) = talk(request_of(name, ROWS)), talk(request_of(name, ROWS, "X-Request-Id: my-request-1"))
    assert re.search(rb"\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n", first)
    assert re.search(rb"\r\nx-request-id: [0-9a-f]{32}\r\n", first)
    assert b"\r\nx-request-id: my-request-1\r\n" in second


def test_of_heads_that_differ_in_one_line_each_has_its_own(talk, name, usual):
    """The second and all that follow are compared with the one before, whatever line it was."""
    ids = [f"request-{number}" for number in range(7)]
    alike = b"".join(request_of(name, ROWS, f"X-Request-Id: {known}") for known in ids)
    found = talk(alike, responses=7)
    assert [re.search(rb"x-request-id: (\S+)", one)[1].decode() for one in found] == ids
    assert normalised(found) == [usual] * 7
    changing = [
        request_of(name, ROWS, *headers)
        for headers in (
            ("X-Request-Id: request-8",),
            ("X-Request-Id: request-88",),
            (),
            ("X-Request-Id: request-9", "X-Other: 1"),
            ("X-Request-Id: request 9",),
            ("X-Request-Id: request-9", "X-Other: 2"),
            ("X-Request-Id: request-9",),
        )
    ]
    found = talk(b"".join(changing), responses=7)
    given = [re.search(rb"x-request-id: (\S+)", one)[1].decode() for one in found]
    assert [known for known in given if len(known) < 32] == ["request-8", "request-88", *["request-9"] * 3]
    assert normalised(found) == [usual] * 7


def test_a_head_like_the_one_before_is_not_taken_for_it(talk, name, usual):
    first = request_of(name, ROWS, "X-Request-Id: request-1")
    other = first.replace(b"X-Request-Id: request-1", b"X-Request-Id:\r\n\r\nPOST ")
    talk(first, first, responses=2)
    (response,) = talk(other.partition(END)[0] + END + first[first.index(END) + len(END) :])
    assert response.startswith(b"HTTP/1.1 200 ")
    assert normalised([response]) == [usual]


def test_however_it_is_cut_the_response_is_the_same(talk, name, usual):
    requested = request_of(name, ROWS)
    for place in range(1, len(requested), 23):
        assert normalised(talk(requested[:place], requested[place:])) == [usual]
        assert talk.shortcuts == [True] or place < requested.index(END) + len(END)
    assert (
        normalised(
            talk(
                requested[:-60],
                requested[-60:-30],
                requested[-30:] + requested + requested[:-30],
                requested[-30:],
                responses=3,
            )
        )
        == [usual] * 3
    )
    assert talk.shortcuts == [True] * 3


def test_a_body_for_which_room_is_made_as_it_comes(talk, name, usual, monkeypatch):
    monkeypatch.setattr(connection, "READ", 10)
    monkeypatch.setattr(connection, "AHEAD", 2)
    requested = request_of(name, ROWS)
    start = requested.index(END) + len(END)
    cuts = [requested[:start], *(requested[at : at + 9] for at in range(start, len(requested), 9))]
    assert normalised(talk(*cuts[:-1], cuts[-1] + requested, responses=2)) == [usual] * 2
    assert talk.shortcuts == [True] * 2


@pytest.mark.parametrize("lead", [0, 77])
def test_memory_is_taken_for_what_came_not_for_what_is_announced(lead):
    """And so that numbers behind so many bytes are where a processor reads them best."""
    came, requested = 100, PreparedRequest(10**12, lead, None)
    arriving = connection._Arriving(requested, b"", memoryview(bytes(range(came))), came, came, None)
    for most in (connection.READ, connection.AHEAD * connection.READ):
        room = arriving.room()
        assert (np.frombuffer(arriving.body, np.uint8).ctypes.data + lead) % 8 == 0
        assert came + len(room) == most
        room[:] = bytes(len(room))
        arriving.came = came = most
    assert bytes(arriving.body[:100]) == bytes(range(100))


def test_a_body_that_comes_slowly_is_waited_for(talk, name, usual):
    requested = request_of(name, ROWS)
    cuts = [requested[:-40], *(requested[at : at + 1] for at in range(len(requested) - 40, len(requested)))]
    assert normalised(talk(*cuts, gap=1.2 * connection.PATIENCE / 40)) == [usual]
    assert talk.shortcuts == [True]


def test_the_rest_of_a_request_is_waited_for_no_longer_than_patience(talk, name, usual, monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE", 0.005)
    requested = request_of(name, ROWS)
    assert normalised(talk(requested[:-60], requested[-60:-30], requested[-30:], gap=0.3)) == [usual]
    assert talk.shortcuts == []


def test_who_leaves_before_the_request_is_whole(talk, name, server):
    """And the server goes on."""
    requested = request_of(name, ROWS)
    with socket.create_connection(("127.0.0.1", server[0]), timeout=20) as line:
        line.sendall(requested[:-10])
        time.sleep(0.03)
    assert talk(requested)


@pytest.mark.parametrize("left", [10, 0])
def test_a_server_that_ends_waits_for_what_has_begun_to_arrive_and_for_responses(settings, name, left, monkeypatch):
    requested, real = request_of(name, ROWS), Predictions.ready

    async def slow(*expected):
        await asyncio.sleep(0.4)
        return await real(*expected)

    monkeypatch.setattr(Predictions, "ready", slow)
    with serving(create_app(settings)) as (port, running), socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(requested[: len(requested) - left])
        time.sleep(0.03)
        running.should_exit = True
        time.sleep(0.3)
        line.sendall(requested[len(requested) - left :])
        (response,) = read(line, 1)
        assert response.startswith(b"HTTP/1.1 200 ")
        assert line.recv(1) == b""


def test_only_an_idle_connection_is_closed(settings, name):
    requested = request_of(name, ROWS)
    with (
        serving(create_app(settings), timeout_keep_alive=0.2) as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=20) as line,
    ):
        for _ in range(6):
            line.sendall(requested)
            read(line, 1)
            time.sleep(0.1)
        assert line.recv(1) == b""


def test_requests_that_come_together_are_served_in_order(talk, name, usual):
    health = b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n"
    requested = request_of(name, ROWS)
    responses = normalised(talk(requested + requested + health + requested + health + requested, responses=6))
    assert [responses[place] for place in (0, 1, 3, 5)] == [usual] * 4
    assert responses[2] == responses[4] != usual
    assert True in talk.shortcuts


def test_who_reads_late_gets_everything(talk, name, usual):
    """More responses than the buffers of both ends hold are not kept in memory: the server stops reading."""
    count, requested = 2_000, request_of(name, ROWS)
    sending = threading.Thread(target=talk.line.sendall, args=(requested * count,))
    sending.start()
    time.sleep(0.3)
    responses = read(talk.line, count)
    sending.join()
    assert set(normalised(responses)) == {usual}


WRONG = [(b"{", 400), (b'{"rows": [{"length": "x"}]}', 422), (b'{"columns": [], "data": [[1]]}', 422)]


@pytest.mark.usefixtures("usual")
@pytest.mark.parametrize(("body", "status"), WRONG)
def test_both_ways_refuse_alike(talk, name, body, status):
    (response,) = normalised(talk(request_of(name, body)))
    assert talk.shortcuts == [True]
    assert response.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\ncontent-type: application/problem+json\r\n" in response
    (same,) = normalised(talk(request_of(name, body, LONG)))
    assert talk.shortcuts == []
    assert sorted(response.split(b"\r\n")) == sorted(same.split(b"\r\n"))


@pytest.mark.parametrize(("body", "status"), [(b"", 400), (b"[" + b"1," * 60_000 + b"1]", 413)])
def test_bodies_of_no_size_to_speak_of_come_the_usual_way(talk, name, body, status):
    (response,) = talk(request_of(name, body))
    assert response.startswith(b"HTTP/1.1 %d " % status)
    assert talk.shortcuts == []


def test_a_large_body_is_served_later_and_in_order(talk, name, usual):
    """By a thread; what comes meanwhile waits."""
    rows = [*ROWS["data"], *[[0.5 * i, None, "large"] for i in range(4_000)]]
    large, small = request_of(name, {**ROWS, "data": rows}), request_of(name, ROWS)
    responses = normalised(talk(large[:500], large[500:9_000], large[9_000:] + small, small, responses=3))
    assert responses[1:] == [usual, usual]
    assert len(json.loads(responses[0].split(END)[1])["predictions"]) == len(rows)
    assert talk.shortcuts == [False, True, True]


@pytest.mark.parametrize(("reset", "usual"), [(False, False), (True, False), (False, True)])
def test_a_client_that_leaves_before_a_large_response_leaves_the_queue(settings, name, reset, usual, monkeypatch):
    """Nothing of the request is kept, no other notices, and the response is counted as one that nobody waited for."""
    app = create_app(settings.model_copy(update={"predict_threads": 1, "max_waiting_predictions": 1}))
    rows = [[0.5 * i, None, "large"] for i in range(20_000)]
    requested = request_of(name, {**ROWS, "data": rows}, *([LONG] if usual else []))
    bodies, process = [], connection.Connection._process

    def overheard(self, request, body):
        bodies.append(weakref.ref(body))
        process(self, request, body)

    monkeypatch.setattr(connection.Connection, "_process", overheard)
    with serving(app) as (port, _), ExitStack() as lines:
        admission, gate = app.services.admission, threading.Event()
        lines.callback(gate.set)
        admission._threads.submit(gate.wait)  # busy
        first, gone, late = (lines.enter_context(socket.create_connection(("127.0.0.1", port), 20)) for _ in range(3))
        for line, count in ((first, 1), (gone, 2)):
            line.sendall(requested)
            until(lambda count=count: admission.large == count)
        if reset:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gc.disable()
        lines.callback(gc.enable)
        gone.close()
        until(lambda: admission.large == 1)
        until(lambda: usual or bodies[1]() is None)
        late.sendall(requested)
        until(lambda: admission.large == 2)
        gate.set()
        responses = [read(line, 1)[0] for line in (first, late)]
        assert [response[:13] for response in responses] == [b"HTTP/1.1 200 "] * 2
        first.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        assert re.search(rb'predict",status="499"} 1\.0\n', read(first, 1)[0])


def until(holds):
    """Wait for it, twenty seconds at most."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_who_sends_no_more_and_still_reads_is_served(settings, name, usual):
    """Also where that takes a look into the database."""
    strict = settings.model_copy(update={"pointer_seconds": 0.001, "stale_seconds": 0.0})
    with serving(create_app(strict)) as (port, _):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
                line.sendall(request_of(name, ROWS))
                line.shutdown(socket.SHUT_WR)
                assert normalised(read(line, 1)) == [usual]
                assert line.recv(1) == b""


def test_a_model_that_is_not_there(talk):
    (response,) = talk(request_of("nowhere", ROWS))
    assert response.startswith(b"HTTP/1.1 404 ")
    assert talk.shortcuts == [False]


def test_a_clock_of_its_own(talk, name, usual):
    assert normalised(talk(request_of(name, ROWS, "X-Request-Timeout: 5"))) == [usual]
    assert talk.shortcuts == [False]


@pytest.mark.parametrize(
    ("headers", "version"), [(["Connection: close"], "1.1"), ([], "1.0"), (["Expect: 100-continue"], "1.1")]
)
def test_what_is_more_than_a_request_comes_the_usual_way(talk, name, usual, headers, version):
    requested, goes_on = request_of(name, ROWS, *headers, version=version), b"HTTP/1.1 100 Continue\r\n\r\n"
    talk.line.sendall(requested)
    if "Expect: 100-continue" in headers:
        assert talk.line.recv(len(goes_on)) == goes_on
    (response,) = normalised(read(talk.line, 1))
    assert response.replace(b"connection: close\r\n", b"") == usual
    if "Expect: 100-continue" not in headers:
        assert talk.line.recv(1) == b""  # and it is closed


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        (b"GET /" + 70_000 * b"a" + b" HTTP/1.1\r\nHost: here\r\n\r\n", 414, "uri_too_long"),
        (b"GET / HTTP/1.1\r\nHost: here\r\nX: " + 300_000 * b"a" + b"\r\n\r\n", 431, "header_too_large"),
        (b"GARBAGE\r\n\r\n", 400, "malformed_request"),
        (b"GET http://[ HTTP/1.1\r\nHost: here\r\n\r\n", 400, "malformed_request"),
        (b"GET / HTTP/1.1\r\nHost: here\r\nContent-Length: x\r\n\r\n", 400, "malformed_request"),
    ],
    ids=["address", "header", "line", "url", "length"],
)
def test_what_cannot_be_parsed_is_a_problem_too(talk, text, status, code):
    (response,) = talk(text)
    head, _, body = response.partition(END)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    for header in (b"content-type: application/problem+json", b"connection: close", b"x-content-type-options: nosniff"):
        assert b"\r\n" + header + b"\r\n" in head
    assert (json.loads(body)["code"], json.loads(body)["status"]) == (code, status)
    assert talk.line.recv(1) == b""


@pytest.mark.parametrize("length", [b"content-length: 4\r\n", b"transfer-encoding: chunked\r\n"])
def test_what_is_no_request_is_refused(talk, name, length):
    path = f"/v1/models/{name}/predict".encode()
    talk.line.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: here\r\n" + length + b"Content-Length: x\r\n\r\n{}")
    assert talk.line.recv(1000).startswith(b"HTTP/1.1 400 ")


def test_a_body_in_chunks(talk, name, usual):
    body = json.dumps(ROWS).encode()
    head = request_of(name, b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    assert normalised(talk(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))) == [usual]


@pytest.mark.parametrize("address", ["predict?version=1", "predict%3Fversion=1", "predict?version=%31", "predict#x"])
def test_unusual_addresses(talk, name, address):
    talk(request_of(name, ROWS, path=address))  # its pointer is remembered
    (response,) = talk(request_of(name, ROWS, path=address))
    assert response.startswith(b"HTTP/1.1 404 " if address == "predict%3Fversion=1" else b"HTTP/1.1 200 ")
    assert talk.shortcuts == [True] * (address == "predict?version=1")


def test_each_request_is_counted_once(talk, name):
    def counted():
        (response,) = talk(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        lines = [line for line in response.decode().splitlines() if "predict" in line]
        return {
            status: float(next((line.split()[-1] for line in lines if f'status="{status}"' in line), 0))
            for status in (200, 422)
        }

    before = counted()
    talk(request_of(name, ROWS))
    talk(request_of(name, {"rows": [{"length": "x"}]}))
    after = counted()
    assert {status: after[status] - before[status] for status in after} == {200: 1, 422: 1}


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nContent-Length: 2",
        b"POST / HTTP/1.0\r\nContent-Length: 2",
        b"POST / HTTP/1.1\r\nHost: here",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nConnection: close",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nUpgrade: websocket\r\nConnection: upgrade",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
        b"POST / HTTP/1.1\nContent-Length: 2\n\n{}POST / HTTP/1.1\r\nContent-Length: 2",
        b"POST / HTTP/1.1\r\nContent-Length: +2",
        b"POST /\0 HTTP/1.1\r\nContent-Length: 2",
        b"nonsense",
    ],
)
def test_heads_that_are_not_plain(head):
    assert read_head(head + END) is None


def test_a_plain_head():
    found = read_head(b"POST /a?b=c HTTP/1.1\r\nX-Y: z\r\ncontent-length: 12" + END)
    assert found == (b"/a?b=c", [(b"x-y", b"z"), (b"content-length", b"12")], 12)


class Line:
    """Where a transport writes to."""

    def __init__(self):
        self.sent = []

    def writelines(self, chunks):
        self.sent.append(b"".join(chunks))

    def is_closing(self):
        return "closed" in self.sent

    def close(self):
        self.sent.append("closed")


class Loop:
    """What is to be called at the end of the turn."""

    def __init__(self):
        self.soon = []

    def call_soon(self, call):
        self.soon.append(call)

    def end(self):
        called, self.soon = self.soon, []
        for call in called:
            call()


def test_what_is_written_in_one_turn_is_sent_as_one_chunk_and_in_order(monkeypatch):
    monkeypatch.setattr(write_batching, "MAX_WAIT_SECONDS", 3600)
    loop, line, other = Loop(), Line(), Line()
    turn = Turn(loop)
    out = Gathering(line, turn)
    out.write(b"head")
    Gathering(other, turn).write(b"theirs")
    out.write(b"body")
    assert line.sent == other.sent == []
    loop.end()
    assert (line.sent, other.sent) == ([b"headbody"], [b"theirs"])
    out.write(b"last")
    out.close()
    loop.end()
    assert line.sent == [b"headbody", b"last", "closed"]
    out.write(b"too late")
    loop.end()
    assert line.sent == [b"headbody", b"last", "closed"]


def test_in_a_long_turn_nothing_waits_for_its_end(monkeypatch):
    loop, line = Loop(), Line()
    out = Gathering(line, Turn(loop))
    monkeypatch.setattr(write_batching, "MAX_WAIT_SECONDS", -1)
    out.write(b"one")
    out.write(b"two")
    assert line.sent == [b"one", b"two"]
    loop.end()
    assert line.sent == [b"one", b"two"]
