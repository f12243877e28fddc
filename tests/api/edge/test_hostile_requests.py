"""Raw HTTP that no client sends, and bodies that no program means: each gets a response, and the service goes on.

No response is a 5xx, nobody waits without end, no connection is reset before its response is read, and the process
keeps its memory. Bodies of JSON are made for every operation of the OpenAPI document.
"""

import gzip
import http.client
import io
import json
import os
import pickle
import socket
import zlib
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

DOCUMENT = json.loads((Path(__file__).parents[3] / "app" / "openapi.json").read_text())
SECONDS = 30
"""A request whose response comes later hangs."""
GROWTH_BYTES = 768 << 20
"""Memory that the process may keep after all of them: models, caches and parts of freed memory."""
HOST = "Host: localhost"
TRAIN = f"POST /v1/jobs/train HTTP/1.1\r\n{HOST}\r\n"
PREDICT = f"POST /v1/models/m/predict HTTP/1.1\r\n{HOST}\r\nContent-Type: application/json\r\n"
RAW = {
    "two hosts": f"GET /livez HTTP/1.1\r\n{HOST}\r\n{HOST}\r\n\r\n",
    "host with a user": "GET /livez HTTP/1.1\r\nHost: a@localhost\r\n\r\n",
    "no host": "GET /livez HTTP/1.1\r\n\r\n",
    "absolute target": f"GET http://evil.example/ HTTP/1.1\r\n{HOST}\r\n\r\n",
    "absolute target in the fast path": f"POST http://evil.example/v1/models/m/predict HTTP/1.1\r\n{HOST}\r\n"
    "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths": f"{TRAIN}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}x",
    "two equal lengths": f"{TRAIN}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}",
    "length and chunks": f"{TRAIN}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": f"{TRAIN}Content-Length: -1\r\n\r\n",
    "huge length": f"{TRAIN}Content-Length: {'9' * 400}\r\n\r\n",
    "chunks twice": f"{TRAIN}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "unknown transfer": f"{TRAIN}Transfer-Encoding: gzip\r\n\r\n",
    "bad chunk": f"{TRAIN}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n",
    "long chunk extension": f"{TRAIN}Transfer-Encoding: chunked\r\n\r\n2;{'x' * 1_000_000}\r\n{{}}\r\n0\r\n\r\n",
    "endless trailers": f"{TRAIN}Transfer-Encoding: chunked\r\n\r\n0\r\n" + "X-A: b\r\n" * 100_000 + "\r\n",
    "folded header": f"GET /livez HTTP/1.1\r\n{HOST}\r\nX-A: b\r\n c\r\n\r\n",
    "bare line feeds": "GET /livez HTTP/1.1\nHost: localhost\n\n",
    "bare carriage return": f"GET /livez HTTP/1.1\r\n{HOST}\r\nX-A: b\rc\r\n\r\n",
    "space before colon": f"GET /livez HTTP/1.1\r\n{HOST}\r\nX-A : b\r\n\r\n",
    "NUL in a header": f"GET /livez HTTP/1.1\r\n{HOST}\r\nX-A: \0\r\n\r\n",
    "many headers": f"GET /livez HTTP/1.1\r\n{HOST}\r\n" + "X-A: b\r\n" * 20_000 + "\r\n",
    "huge header": f"GET /livez HTTP/1.1\r\n{HOST}\r\nX-A: {'b' * 10_000_000}\r\n\r\n",
    "huge address": f"GET /{'a' * 10_000_000} HTTP/1.1\r\n{HOST}\r\n\r\n",
    "pipeline": f"GET /livez HTTP/1.1\r\n{HOST}\r\n\r\n" * 200,
    "pipeline and garbage": f"GET /v1/algorithms HTTP/1.1\r\n{HOST}\r\n\r\n" + "\0" * 1_000_000,
    "not ASCII": f"GET /v1/models/\u00e9 HTTP/1.1\r\n{HOST}\r\n\r\n",
    "NUL": f"GET /v1/models/%00 HTTP/1.1\r\n{HOST}\r\n\r\n",
    "not UTF-8": f"GET /v1/models/%ff%fe HTTP/1.1\r\n{HOST}\r\n\r\n",
    "half an escape": f"GET /v1/models/%e HTTP/1.1\r\n{HOST}\r\n\r\n",
    "two slashes": f"GET //v1//models HTTP/1.1\r\n{HOST}\r\n\r\n",
    "parents": f"GET /console/..;/..%2f../etc/passwd HTTP/1.1\r\n{HOST}\r\n\r\n",
    "star": f"OPTIONS * HTTP/1.1\r\n{HOST}\r\n\r\n",
    "connect": f"CONNECT localhost:80 HTTP/1.1\r\n{HOST}\r\n\r\n",
    "trace": f"TRACE /livez HTTP/1.1\r\n{HOST}\r\n\r\n",
    "unknown method": f"BREW /livez HTTP/1.1\r\n{HOST}\r\n\r\n",
    "HTTP/0.9": "GET /livez\r\n\r\n",
    "HTTP/3.7": f"GET /livez HTTP/3.7\r\n{HOST}\r\n\r\n",
    "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "upgrade": f"GET /livez HTTP/1.1\r\n{HOST}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "websocket": f"GET /livez HTTP/1.1\r\n{HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 200,
    "blank lines": "\r\n" * 1000 + f"GET /livez HTTP/1.1\r\n{HOST}\r\n\r\n",
}
VALUES = [
    b"", b"NaN", b"1e999", b"-Infinity", b'"\\ud800"', b'"\\u0000"', b"[" * 900 + b"]" * 900, b"[" * 100_000,
    b"{" * 100_000,
    b"9" * 5000, b"1" + b"0" * 400, b"-" , b"null", b"true", b'""', b"[]", b"{}", b'{"a": 1, "a": 2}', b"[1,]", b"// x",
    b"'a'", b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}", b'{"\xff": 1}', b'{"a": "\xed\xa0\x80"}', b'{"a"', b"{} {}", b"\0",
    b"{}\0",
    b'{"__proto__": {"a": 1}}', b'[{"a": [{"a": [{}]}]}]', b'"' + b"a" * 900_000 + b'"', b"0" * 900_000,
    b"[" + b"0," * 400_000 + b"0]", b"{" + b",".join(b'"%d": 0' % n for n in range(50_000)) + b"}",
]  # fmt: skip
FILLED = [
    b"null",
    b"NaN",
    b"1e999",
    b"-1e308",
    b"9" * 400,
    b'"\\ud800"',
    b'"\\u0000"',
    b"[[[[]]]]",
    b'{"name": {}}',
    b"[null]",
]
"""Values for the fields of a body."""


@pytest.fixture(scope="module", params=[True, False], ids=["fast", "framework"])
def service(request, api_factory):
    child, address = api_factory(fast_path=request.param, upload_timeout_seconds=5)
    process = psutil.Process(child.pid)
    port = int(address.rpartition(":")[2])
    status(port, "GET", "/livez")
    before = process.memory_info().rss
    yield port
    assert process.is_running()
    assert status(port, "GET", "/readyz") == 200
    assert process.memory_info().rss < before + GROWTH_BYTES


def raw_status(port, data):
    """Statuses of the responses, all that come. Raises where the connection is reset, or nothing comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as line:
        line.sendall(data)
        response = line.recv(1 << 16)
        while b"\r\n" not in response and (more := line.recv(1 << 16)):
            response += more
    return int(response.split(b" ", 2)[1]) if response else None


def status(port, method, path, body=None, headers=None):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        line.request(method, path, body, headers or {})
        response = line.getresponse()
        response.read()
        return response.status
    finally:
        line.close()


def is_refused_or_served(found):
    return found is not None and 200 <= found < 500


@pytest.mark.slow
@pytest.mark.parametrize("name", RAW)
def test_raw_requests_get_a_response(service, name):
    assert is_refused_or_served(raw_status(service, RAW[name].encode("latin-1"))), name
    assert status(service, "GET", "/livez") == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        f"{TRAIN}Content-Length: 10\r\n\r\n{{".encode(),
        f"{PREDICT}Content-Length: 10\r\n\r\n{{".encode(),
        f"POST /v1/datasets HTTP/1.1\r\n{HOST}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n".encode(),
    ],
)
def test_a_body_that_does_not_come_is_waited_for_within_limits(service, data):
    assert raw_status(service, data) == 408


def operations():
    """Method, path and schema of every operation with a body of JSON."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}) if isinstance(operation, dict) else {}
            if "application/json" in content:
                yield method.upper(), path, content["application/json"].get("schema", {})


def fields_of(schema):
    """Names of the fields of a schema, of those of a union too."""
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    names = dict.fromkeys(schema.get("properties", {}))
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        names |= dict.fromkeys(fields_of(inner))
    return list(names)


def bodies(schema):
    yield from VALUES
    names = fields_of(schema)
    for value in FILLED:
        yield b"{" + b",".join(json.dumps(name).encode() + b":" + value for name in names) + b"}"


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "schema"), [pytest.param(*o, id=f"{o[0]} {o[1]}") for o in operations()])
def test_hostile_bodies_of_json_are_refused(service, method, path, schema):
    path = path.replace("{", "").replace("}", "")
    for body in bodies(schema):
        found = status(service, method, path, body, {"Content-Type": "application/json"})
        assert is_refused_or_served(found), (found, body[:80])
    assert status(service, "GET", "/livez") == 200


def arrow_bytes():
    sink = io.BytesIO()
    table = pa.table({"a": [1.0, 2.0], "b": ["x", None]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def npy_bytes(array, **how):
    sink = io.BytesIO()
    np.save(sink, array, **how)
    return sink.getvalue()


def npy_header(text):
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


class Exploding:
    def __reduce__(self):
        return os.abort, ()


ARROW, NPY = arrow_bytes(), npy_bytes(np.eye(3))
FILES = {
    "application/vnd.apache.arrow.stream": [
        ARROW[:n] for n in range(0, len(ARROW), 40)
    ] + [ARROW[:n] + b"\xff" * 8 + ARROW[n + 8 :] for n in range(0, len(ARROW) - 8, 24)],
    "application/octet-stream": [
        NPY[:60], NPY + b"x", npy_bytes(np.array([Exploding()]), allow_pickle=True), pickle.dumps(Exploding()),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000000), }"),
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3), }"), npy_header("(" * 5000),
        npy_bytes(np.full((3, 3), np.nan)), npy_bytes(np.array(["a"])), npy_bytes(np.zeros((0, 4))),
        b"PAR1" + b"\0" * 100 + b"PAR1", b"PK\x03\x04" + b"\0" * 100, b"\x1f\x8b", gzip.compress(b"a,b\n1,2\n")[:-5],
        gzip.compress(bytes(100_000_000)),
    ],
    "text/csv": [
        b"a", b"a\n", b"a,a\n1,2\n", b"\n\n", b'"', b'a,b\n"1,2\n', b"a,b\n1\n", b"a,b\n1,2,3\n", b"\xff\xfea\0",
        b"a\n\0\n",
        b"a\r1\r", b"," * 100_000 + b"\n", b"a\n" + b"1" * 5_000_000, b"a,b\n=cmd(),2\n", b"a\n\xed\xa0\x80\n",
    ],
    "application/x-unknown": [b"{}"],
    "multipart/form-data": [b"{}"],
    "multipart/form-data; boundary=b": [
        b"--b", b"--b\r\n\r\n--b--", b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\na',
        b"--b\r\n" + b"X: y\r\n" * 10_000 + b"\r\n\r\n--b--\r\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\na\r\n--b--\r\n",
        b"".join(b'--b\r\nContent-Disposition: form-data; name="%d"\r\n\r\na\r\n' % n for n in range(500))
        + b"--b--\r\n",
    ],
    "application/json; charset=utf-16": ['{"rows": []}'.encode("utf-16")],
    "application/json\x0b": [b"{}"],
}  # fmt: skip
PATHS = ["/v1/models/m/predict", "/v2/models/m/infer", "/v1/datasets", "/v1/datasets/upload"]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", FILES)
def test_hostile_files_are_refused(service, path, kind):
    for body in FILES[kind]:
        found = status(service, "POST", path, body, {"Content-Type": kind})
        assert is_refused_or_served(found), (found, body[:80])
    assert status(service, "GET", "/livez") == 200


@pytest.mark.slow
@pytest.mark.parametrize("path", [*PATHS, "/v1/jobs/train"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, gzip", "gzip\x01"])
def test_hostile_encodings_are_refused(service, path, encoding):
    bomb = gzip.compress(bytes(200_000_000)) if "gzip" in encoding else zlib.compress(bytes(200_000_000))
    for body in (bomb, bomb[:1000], b"\x1f\x8b", b"{}", gzip.compress(b"{}")[:-3], gzip.compress(b"{}") + b"x"):
        try:
            found = status(
                service, "POST", path, body, {"Content-Type": "application/json", "Content-Encoding": encoding}
            )
        except ValueError:
            continue  # the client refuses to send it
        assert is_refused_or_served(found), (found, body[:20])
    assert status(service, "GET", "/livez") == 200
