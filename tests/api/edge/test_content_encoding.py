"""Compressed request bodies give the same results as plain ones, within the same limits, in bounded memory."""

import asyncio
import gzip
import io
import re
import tracemalloc
import zlib
from uuid import uuid4

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.edge.content_encoding import FED, STEP, Inflater, MalformedEncoding, inflated
from app.base.errors import BodyTooLarge

JSON = "application/json"
ROWS = np.array([[0.1, 0.2, 3.0], [-1.5, 1 / 3, 6.0]])
NAMES = ["x", "y", "z"]


def raw_deflate(body):
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(body) + squeeze.flush()


WAYS = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZip", gzip.compress),
    "two members": ("gzip", lambda body: gzip.compress(body[:7]) + gzip.compress(body[7:])),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "identity": ("identity", bytes),
}


def bodies():
    """Of one prediction, by media type."""
    npy, table = io.BytesIO(), pa.table(dict(zip(NAMES, ROWS.T, strict=True)))
    np.save(npy, ROWS)
    arrow = pa.BufferOutputStream()
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table)
    lines = [",".join(NAMES), *(",".join(map(repr, row)) for row in ROWS.tolist())]
    return {
        JSON: orjson.dumps({"columns": NAMES, "data": ROWS.tolist()}),
        "text/csv": "\n".join(lines).encode(),
        "application/x-npy": npy.getvalue(),
        "application/vnd.apache.arrow.stream": arrow.getvalue().to_pybytes(),
    }


def post(client, url, body, way, kind=JSON, **headers):
    name, pack = WAYS[way]
    return client.post(url, content=pack(body), headers={"Content-Encoding": name, "Content-Type": kind, **headers})


def refusal(response, status, code):
    assert response.status_code == status, response.text
    assert response.json()["code"] == code
    return response.json()["detail"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", bodies())
def test_predictions_from_compressed_bodies_are_the_same(client, numeric, way, kind):
    url, body = f"/v1/models/{numeric()}/predict", bodies()[kind]
    plain = client.post(url, content=body, headers={"Content-Type": kind})
    assert plain.status_code == 200, plain.text
    assert post(client, url, body, way, kind).content == plain.content


@pytest.mark.parametrize("way", WAYS)
def test_compressed_tensors_give_the_same_outputs(client, numeric, way):
    """The length of the JSON counts decompressed bytes, as Triton's clients state it."""
    url, packed = f"/v2/models/{numeric()}/infer", ROWS.tobytes()
    tensor = {"name": "m", "shape": [2, 3], "datatype": "FP64"}
    as_json = orjson.dumps({"inputs": [tensor | {"data": ROWS.ravel().tolist()}]})
    head = orjson.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": len(packed)}}]})
    plain = client.post(url, content=as_json, headers={"Content-Type": JSON})
    assert plain.status_code == 200, plain.text
    assert post(client, url, as_json, way).content == plain.content
    length = {"Inference-Header-Content-Length": str(len(head))}
    assert post(client, url, head + packed, way, "application/octet-stream", **length).content == plain.content


@pytest.mark.parametrize("way", WAYS)
def test_jobs_and_queries_take_compressed_bodies(client, way):
    requested = orjson.dumps({"model": "m", "dataset": str(uuid4()), "target": "y", "algorithm": {"name": "ridge"}})
    for url in ("/v1/jobs/train", "/v1/jobs/train:validate"):
        plain = client.post(url, content=requested, headers={"Content-Type": JSON})
        assert plain.json()["code"] == "dataset_not_found"
        found = post(client, url, requested, way)
        assert (found.status_code, found.json()["code"]) == (plain.status_code, "dataset_not_found")


@pytest.mark.parametrize("way", WAYS)
def test_uploads_are_decompressed_once(client, way):
    table = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(9000))
    plain = client.post("/v1/datasets", content=table).json()
    for body in (table, gzip.compress(table)):  # a file may be compressed itself
        found = post(client, "/v1/datasets", body, way, "application/octet-stream")
        assert found.status_code == 201, found.text
        assert [(one["name"], one["count"]) for one in found.json()["columns"]] == [("a", 9000), ("b", 9000)]
        assert (found.json()["digest"] == plain["digest"]) == (body is table)
    form = httpx.Request("POST", "http://h", files={"file": ("t.csv", table)})
    kind = form.headers["content-type"]
    assert post(client, "/v1/datasets/upload", form.read(), way, kind).json()["digest"] == plain["digest"]


def test_a_file_that_is_gzip_is_left_to_the_reader_of_files(client):
    found = client.post(
        "/v1/datasets", content=gzip.compress(b"a,b\n1,2\n"), headers={"Content-Type": "application/gzip"}
    )
    assert found.status_code == 201, found.text


def test_other_encodings_are_refused_wherever_there_is_a_body(client):
    tried = 0
    for path, operations in client.app.openapi()["paths"].items():
        for method, operation in operations.items():
            if "requestBody" in operation and path != "/v1/uploads/{upload_id}":
                url = re.sub(r"\{[a-z_]+\}", "1", path)
                kind = f"{next(iter(operation['requestBody']['content']))}; boundary=b"
                for name in ("br", "zstd", "gzip, gzip", "utf-8"):
                    headers = {"Content-Encoding": name, "Content-Type": kind}
                    response = client.request(method, url, content=b"{}", headers=headers)
                    detail = refusal(response, 415, "unsupported_content_encoding")
                    assert "gzip or deflate" in detail
                    assert response.headers["accept-encoding"] == "gzip, deflate"
                tried += 1
    assert tried > 20


@pytest.mark.parametrize("url", ["/v1/models/{}/predict", "/v2/models/{}/infer", "/v1/jobs/train", "/v1/datasets"])
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(b'{"rows": []}')[:-1]),
        ("gzip", gzip.compress(b'{"rows": []}')[:-9] + b"\0" * 9),
        ("gzip", gzip.compress(b'{"rows": []}') + b"!"),
        ("gzip", b'{"rows": []}'),
        ("gzip", b"\x1f"),
        ("gzip", zlib.compress(b"{}")),
        ("deflate", gzip.compress(b"{}")),
        ("deflate", zlib.compress(b"{}")[:-2]),
        ("deflate", zlib.compress(b"{}") + b"{}"),
        ("deflate", raw_deflate(b"{}" * 50)[:-2]),
    ],
    ids=range(10),
)
def test_a_damaged_body_is_a_400(client, numeric, url, name, body):
    headers = {"Content-Encoding": name, "Content-Type": JSON}
    response = client.post(url.format(numeric()), content=body, headers=headers)
    refusal(response, 400, "malformed_content_encoding")


def test_an_empty_body_is_empty_whatever_its_encoding(client, numeric):
    for body in (b"", gzip.compress(b"")):
        url, headers = f"/v1/models/{numeric()}/predict", {"Content-Encoding": "gzip", "Content-Type": JSON}
        refusal(client.post(url, content=body, headers=headers), 400, "empty_body")


@pytest.fixture(scope="module")
def small(settings, services):
    from starlette.testclient import TestClient

    from app.main import create_app

    few = {"max_body_bytes": 1 << 20, "max_upload_bytes": 1 << 20}
    return TestClient(create_app(settings.model_copy(update=few), services))


@pytest.mark.parametrize("way", ["gzip", "deflate", "raw deflate", "two members"])
def test_limits_count_decompressed_bytes(small, numeric, way):
    body = orjson.dumps({"columns": NAMES, "data": ROWS.tolist()})
    for url in (f"/v1/models/{numeric()}/predict", "/v1/datasets"):
        full = body.ljust(1 << 20) if "models" in url else b"a,b\n" + b"1,2\n" * ((1 << 18) - 1)
        assert post(small, url, full, way).status_code in {200, 201}
        assert "1048576" in refusal(post(small, url, full + b"\n", way), 413, "body_too_large")


def test_a_bomb_costs_bounded_memory(small, numeric):
    """A GiB in a MiB."""
    bomb = gzip.compress(b" " * (1 << 25)) * (1 << 5)
    assert len(bomb) <= 1 << 20
    for url in (f"/v1/models/{numeric()}/predict", f"/v2/models/{numeric()}/infer", "/v1/jobs/train", "/v1/datasets"):
        tracemalloc.start()
        try:
            response = small.post(url, content=bomb, headers={"Content-Encoding": "gzip", "Content-Type": JSON})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        refusal(response, 413, "body_too_large")
        assert peak < 12 << 20


def test_bodies_are_decompressed_one_after_the_other_and_others_run_meanwhile():
    bomb, begun, steps = gzip.compress(b"\0" * (40 * STEP)), [], 0

    class Watched(Inflater):
        def feed(self, chunk):
            begun.append("begin")
            yield from super().feed(chunk)
            begun.append("end")

    async def count(stop):
        nonlocal steps
        while not stop.is_set():
            steps += 1
            await asyncio.sleep(0)

    async def run():
        stop = asyncio.Event()
        counting = asyncio.create_task(count(stop))
        found = await asyncio.gather(*(inflated(bomb, Watched(b"gzip"), most=1 << 30) for _ in range(3)))
        stop.set()
        await counting
        return found

    assert set(map(len, asyncio.run(run()))) == {40 * STEP}
    assert begun == ["begin", "end"] * 3
    assert steps >= 100


@given(
    text=st.binary(max_size=300) | st.integers(0, 3 * STEP).map(bytes),
    way=st.sampled_from([way for way in WAYS if way != "identity"]),
    size=st.sampled_from([1, 3, 100, FED, FED + 1, 1 << 20]),
    cut=st.integers(1, 7),
)
def test_any_bytes_come_back_in_any_chunks(text, way, size, cut):
    name, pack = WAYS[way]
    packed, inflater = pack(text), Inflater(b"gzip" if "gzip" in name.lower() else b"deflate")
    step = max(size, len(packed) // 500)
    found = [part for at in range(0, len(packed), step) for part in inflater.feed(packed[at : at + step])]
    inflater.finish()
    assert b"".join(found) == text
    assert max(map(len, found)) <= STEP
    with pytest.raises((MalformedEncoding, BodyTooLarge)):
        asyncio.run(inflated(packed[: max(1, len(packed) - cut)], Inflater(inflater._name), most=1 << 30))


def test_the_same_over_a_real_connection(api_address, numeric):
    """Where requests mostly go past the server's own parser."""
    address, url = api_address(), f"/v1/models/{numeric()}/predict"
    body = orjson.dumps({"columns": NAMES, "data": ROWS.tolist()})
    with httpx.Client(base_url=address) as client:
        plain = [client.post(url, content=body, headers={"Content-Type": JSON}).content for _ in range(2)]
        for way in WAYS:
            assert post(client, url, body, way).content == plain[0] == plain[1]
        headers = {"Content-Type": JSON, "Content-Encoding": "br"}
        refusal(client.post(url, content=body, headers=headers), 415, "unsupported_content_encoding")
        assert client.post(url, content=body, headers={"Content-Type": JSON}).content == plain[0]
