import asyncio
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from uuid import uuid4

import httpx
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.uploads.multipart import MOST_PARTS
from app.api.uploads.spool import WRITE_BYTES, Spool
from app.base.errors import StorageFull

CSV = b"age,plan\n31,pro\n44,\n"


@pytest.fixture
def limited(settings, services):
    """Clients of apps with other limits, on the same services."""
    from starlette.testclient import TestClient

    from app.main import create_app

    return lambda **changes: TestClient(create_app(settings.model_copy(update=changes), services))


def upload(client, data, **query):
    return client.post("/v1/datasets", params=query, content=data)


def problem(response, status, code):
    found = response.json()
    assert (response.status_code, found["status"], found["code"]) == (status, status, code), response.text
    assert response.headers["content-type"] == "application/problem+json"
    return found


def chunked(data, size):
    return (data[start : start + size] for start in range(0, len(data), size))


def parquet():
    sink = io.BytesIO()
    pq.write_table(pa.table({"age": [31, 44], "plan": ["pro", None]}), sink)
    return sink.getvalue()


def arrow():
    sink = io.BytesIO()
    table = pa.table({"age": [31, 44], "plan": ["pro", None]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def npy():
    sink = io.BytesIO()
    np.save(sink, np.array([[31], [44]]))
    return sink.getvalue()


FILES = {
    "csv": CSV,
    "arff": b"@relation r\n@attribute age integer\n@attribute plan {pro}\n@data\n31,pro\n44,?\n",
    "jsonl": b'{"age": 31, "plan": "pro"}\n{"age": 44, "plan": null}\n',
    "parquet": parquet(),
    "arrow": arrow(),
    "npy": npy(),
}


@pytest.mark.parametrize("file_format", FILES)
def test_every_format_is_recognised(client, file_format):
    response = upload(client, FILES[file_format], name="small")
    made = response.json()
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"/v1/datasets/{made['id']}"
    assert (made["name"], made["file_format"], made["rows"]) == ("small", file_format, 2)
    assert client.get(response.headers["location"]).json() == made
    rows = client.get(f"/v1/datasets/{made['id']}/rows").json()
    assert rows["data"] == ([[31], [44]] if file_format == "npy" else [[31, "pro"], [44, None]])


def test_a_packed_file_named_and_sent_as_csv(client):
    packed = gzip.compress(CSV)
    response = client.post(
        "/v1/datasets?name=t.csv.gz&file_format=csv", content=packed, headers={"Content-Type": "text/csv"}
    )
    made = response.json()
    assert made["digest"] == f"sha256:{hashlib.sha256(packed).hexdigest()}"
    assert (made["size_bytes"], made["rows"]) == (len(packed), 2)


def test_a_format_is_chosen_by_the_name_of_the_file_and_by_the_content_type(client):
    note = b"note\nsome words\n"
    assert upload(client, b"7 1:0\n8 1:1\n").json()["file_format"] == "svmlight"
    for media_type in ("text/x-svmlight", "application/x-arff; charset=utf-8"):
        sent = client.post("/v1/datasets", content=note, headers={"Content-Type": media_type})
        problem(sent, 422, "invalid_data")
    for name, status in (("note.arff", 422), ("note.libsvm", 422), ("note.csv", 201)):
        form = client.post("/v1/datasets/upload", files={"file": (name, note)}, data={"name": "notes"})
        assert form.status_code == status, form.text


def test_a_member_of_an_archive_is_chosen(client):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b/größe.csv", b"x\n1\n2\n3\n")
    problem(upload(client, sink.getvalue()), 422, "invalid_data")
    made = client.post("/v1/datasets?member=b/größe.csv", content=sink.getvalue()).json()
    assert made["rows"] == 3
    assert "'a.csv'" in made["warnings"][0]
    form = {"files": {"file": ("t.zip", sink.getvalue())}, "data": {"member": "a.csv"}}
    assert client.post("/v1/datasets/upload", **form).json()["rows"] == 2


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_body_in_chunks_without_a_length(client, size):
    made = upload(client, chunked(CSV, size)).json()
    assert made["digest"] == f"sha256:{hashlib.sha256(CSV).hexdigest()}"
    assert (made["name"], made["size_bytes"]) == ("dataset", len(CSV))


def test_a_form(client):
    response = client.post("/v1/datasets/upload", files={"file": ("C:\\tables/größe.csv", CSV)})
    made = response.json()
    assert response.status_code == 201, response.text
    assert (made["name"], made["rows"], made["size_bytes"]) == ("größe.csv", 2, len(CSV))
    assert made["digest"] == f"sha256:{hashlib.sha256(CSV).hexdigest()}"
    fields = {"name": "named", "file_format": "csv"}
    assert client.post("/v1/datasets/upload", files={"file": ("x", CSV)}, data=fields).json()["name"] == "named"


def test_forms_that_do_not_fit(client):
    path = "/v1/datasets/upload"
    assert (
        problem(client.post(path, files={"name": (None, "x")}), 422, "invalid_request")["errors"][0]["pointer"]
        == "/file"
    )
    problem(client.post(path, data={"name": "x"}), 415, "unsupported_media_type")
    problem(
        client.post(path, content=b"x", headers={"Content-Type": "multipart/form-data"}), 415, "unsupported_media_type"
    )
    head = {"Content-Type": "multipart/form-data; boundary=b"}
    problem(client.post(path, content=b"--b\r\nnonsense", headers=head), 422, "invalid_request")
    part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    cut = part % (b"file", b'; filename="x"', CSV)
    problem(client.post(path, content=cut, headers=head), 422, "invalid_request")
    problem(client.post(path, content=cut * 2 + b"--b--\r\n", headers=head), 422, "invalid_request")
    many = part % (b"name", b"", b"x") * (MOST_PARTS + 1) + b"--b--\r\n"
    problem(client.post(path, content=many, headers=head), 422, "invalid_request")
    long = part % (b"name", b"", b"x" * 5000) + b"--b--\r\n"
    problem(client.post(path, content=long, headers=head), 422, "invalid_request")
    bad = {"file": ("x", CSV)}
    problem(client.post(path, files=bad, data={"file_format": "doc"}), 422, "invalid_request")
    problem(client.post("/v1/datasets", files=bad), 415, "unsupported_media_type")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, "\u202e"])
def test_names_that_cannot_be_used(client, name):
    assert problem(upload(client, CSV, name=name), 422, "invalid_request")["errors"][0]["pointer"] == "/query/name"


def test_a_bad_file_is_refused_by_line_and_column(client):
    found = problem(upload(client, b'a,b\n"1\n",2\nSECRET\n'), 422, "invalid_data")
    assert [error["pointer"] for error in found["errors"]] == ["/line/4/column/b"]
    assert "SECRET" not in str(found)
    problem(upload(client, b""), 422, "invalid_data")
    problem(client.post("/v1/datasets/upload", files={"file": ("x", b"")}), 422, "invalid_data")


def test_too_much_is_refused_early(limited):
    client = limited(max_upload_bytes=len(CSV))
    assert upload(client, CSV).status_code == 201
    problem(upload(client, CSV + b"\n"), 413, "body_too_large")
    requested = []

    def endless():
        while True:
            requested.append(1)
            yield CSV

    problem(run_asgi(client.app, endless(), []), 413, "body_too_large")
    assert len(requested) == 2
    problem(client.post("/v1/datasets/upload", files={"file": ("x", CSV)}), 413, "body_too_large")


def run_asgi(app, body, headers, path="/v1/datasets"):
    """One request with the body as the iterator gives it; behind its end comes silence."""
    response = {"body": b""}

    async def receive():
        for chunk in body:
            return {"type": "http.request", "body": chunk, "more_body": True}
        return await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.start":
            response.update(message)
        else:
            response["body"] += message["body"]

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "scheme": "http", "http_version": "1.1", "headers": [(b"host", b"localhost"), *headers],
        "server": ("test", 80), "client": ("test", 1),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return httpx.Response(response["status"], headers=response["headers"], content=response["body"])


def test_a_silent_sender_is_cut_off(limited):
    app = limited(upload_timeout_seconds=0.05).app
    problem(run_asgi(app, iter([b"a,b\n"]), []), 408, "request_timeout")
    form = [(b"content-type", b"multipart/form-data; boundary=b")]
    problem(run_asgi(app, iter([b"--b\r\n"]), form, "/v1/datasets/upload"), 408, "request_timeout")


def test_a_file_that_cannot_fit_the_disk_is_refused_before_it_comes(limited):
    app = limited(max_upload_bytes=1 << 62).app
    problem(run_asgi(app, iter([]), [(b"content-length", b"%d" % (1 << 61))]), 507, "storage_full")


def test_a_disk_that_fills_up_is_reported_to_be_full():
    with Path("/dev/full").open("wb", buffering=0) as file, pytest.raises(StorageFull):
        asyncio.run(Spool(file).write(b"x" * WRITE_BYTES))


def test_uploads_leave_nothing_behind(client, settings):
    upload(client, CSV)
    upload(client, b"a,b\n1\n")
    assert list((settings.data / "spool").iterdir()) == []


def test_lists_have_cursors(client):
    made = [upload(client, CSV, name=f"list {n}").json()["id"] for n in range(3)]
    first = client.get("/v1/datasets?limit=2").json()
    assert [item["id"] for item in first["items"]] == made[:0:-1]
    second = client.get("/v1/datasets", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert second["items"][0]["id"] == made[0]
    problem(client.get("/v1/datasets?cursor=x"), 422, "invalid_request")
    problem(client.get("/v1/datasets?limit=0"), 422, "invalid_request")


def test_rows_by_window_and_column(client):
    made = upload(client, CSV).json()["id"]
    rows = client.get(f"/v1/datasets/{made}/rows", params={"offset": 1, "limit": 1, "columns": ["plan", "age"]}).json()
    assert rows == {"columns": ["plan", "age"], "data": [[None, 44]], "offset": 1, "total": 2}
    problem(client.get(f"/v1/datasets/{made}/rows?columns=x"), 422, "invalid_request")
    problem(client.get(f"/v1/datasets/{made}/rows?limit=1001"), 422, "invalid_request")
    problem(client.get(f"/v1/datasets/{uuid4()}/rows"), 404, "dataset_not_found")


def test_delete(client):
    made = upload(client, CSV).json()["id"]
    assert client.delete(f"/v1/datasets/{made}").status_code == 204
    problem(client.get(f"/v1/datasets/{made}"), 404, "dataset_not_found")
    problem(client.delete(f"/v1/datasets/{made}"), 404, "dataset_not_found")


def test_the_document_says_how_to_send_a_file(client):
    document = client.get("/openapi.json").json()
    raw = document["paths"]["/v1/datasets"]["post"]["requestBody"]["content"]
    assert next(iter(raw)) == "application/octet-stream"
    assert raw["application/octet-stream"]["schema"] == {"type": "string", "format": "binary"}
    form = document["paths"]["/v1/datasets/upload"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    fields = document["components"]["schemas"][form["$ref"].rpartition("/")[2]]["properties"]
    assert fields["file"]["format"] == "binary"
    layout = {"header", "header_row", "skip_rows", "comment", "delimiter", "duplicate_names"}
    assert fields.keys() == {"file", "name", "file_format", "encoding", "missing", "kinds", "sheet", "member"} | layout


API = """
import sys, uvicorn
from app.main import create_app
uvicorn.run(create_app(), fd=int(sys.argv[1]), log_level="error")
"""


@pytest.fixture
def api_process(settings):
    """An API as a process of its own: (client, process)."""
    import socket

    names = ("database_url", "broker_url", "cache_url")
    addresses = {f"VALIANT_{name.upper()}": getattr(settings, name).get_secret_value() for name in names}
    environment = {
        **os.environ,
        **addresses,
        "VALIANT_DATA": str(settings.data),
        "VALIANT_PARSE_MEMORY_BYTES": "400000000",
        "VALIANT_WARM": "false",  # kernels of predictions would come into memory meanwhile
    }
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, fd = listening.getsockname()[1], listening.fileno()
        process = subprocess.Popen([sys.executable, "-c", API, str(fd)], env=environment, pass_fds=[fd])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            yield client, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_a_large_upload_costs_little_memory(api_process):
    client, process = api_process
    header, block = (
        b"id,x,level,when\n",
        b"".join(b"%d,%d.25,level%d,2024-01-31\n" % (n, n, n % 9) for n in range(40_000)),
    )
    assert client.post("/v1/datasets", content=header + block).status_code == 201
    start, most, done = process.memory_info().rss, [0], threading.Event()

    def watch():
        while not done.wait(0.01):
            most[0] = max(most[0], process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    count = 100_000_000 // len(block)
    response = client.post("/v1/datasets", content=(header if n == 0 else block for n in range(count + 1)))
    done.set()
    watching.join()
    assert response.json()["rows"] == count * 40_000
    assert most[0] - start < 40_000_000


STATED = {"header": "present", "encoding": "utf-8", "missing": ["-", "n.b."], "kinds": '{"age": "numeric"}'}


def test_an_upload_says_how_its_file_is_read(client):
    """In the address and in a form alike, and the dataset remembers it."""
    read = {"file_format": "csv", "delimiter": ",", "encoding": "utf-8", "header": True, "missing": ["-", "n.b."]}
    read |= {"quoted": True}
    for made in (upload(client, CSV, **STATED), client.post("/v1/datasets/upload", files={"file": CSV}, data=STATED)):
        assert made.status_code == 201, made.text
        assert made.json()["reading"] == read
        assert client.get(made.headers["location"]).json()["reading"] == read


def test_what_a_data_sheet_offers_is_given_at_upload(client):
    """One correction, and the service proposed it."""
    rows = [f"{i % 12 + 1}/{i % 9 + 1}/2024,{i}.5" for i in range(40)] + ["1/2/2024,unclear"]
    data = "\n".join(["when,price", *rows]).encode()
    when, price = upload(client, data).json()["columns"]
    assert (price["kind"], price["warnings"]) == (
        "numeric",
        ["40 of 41 values are numbers; line 42 is not and was read as missing."],
    )
    assert [offer["kinds"] for offer in when["offers"]] == [{"when": "date:DMY"}, {"when": "date:MDY"}]
    when, price = upload(client, data, kinds=json.dumps(when["offers"][1]["kinds"])).json()["columns"]
    assert (when["kind"], when["maximum"], when["notation"]["dates"]) == ("datetime", "2024-12-09T00:00:00Z", "MDY")


def test_wrong_ways_to_read_are_all_named(client):
    wrong = {"encoding": "latin-l", "kinds": '{"age": "numbr", "plan": 3}'}
    found = problem(upload(client, CSV, **wrong), 422, "invalid_request")
    assert {error["pointer"]: error["detail"] for error in found["errors"]} == {
        "/query/encoding": "There is no encoding 'latin-l'; did you mean 'latin-1'?",
        "/query/kinds/age": "There is no kind 'numbr'; did you mean 'numeric'?",
        "/query/kinds/plan": "Must be the name of a kind, as a string.",
    }
    form = client.post("/v1/datasets/upload", files={"file": CSV}, data={"kinds": '["age"]'})
    assert problem(form, 422, "invalid_request")["errors"][0]["pointer"] == "/kinds"
    problem(upload(client, CSV, kinds="{"), 400, "malformed_json")
    assert (
        problem(upload(client, CSV, header="none"), 422, "invalid_request")["errors"][0]["pointer"] == "/query/header"
    )


def test_a_kind_of_a_column_that_does_not_exist_is_refused_with_the_closest_name(client):
    before = client.get("/v1/datasets").json()["items"][:1]
    found = problem(upload(client, CSV, kinds='{"agee": "text"}'), 422, "invalid_data")
    assert found["errors"][0] == {
        "pointer": "/kinds/agee",
        "detail": "The file has no column 'agee'; did you mean 'age'?",
        "code": "unknown_column",
    }
    assert client.get("/v1/datasets").json()["items"][:1] == before


def test_kinds_of_ten_thousand_columns_fit(client):
    names = [f"a column with quite a long name, number {number}" for number in range(10_000)]
    kinds = json.dumps(dict.fromkeys(names, "numeric"))
    found = problem(client.post("/v1/datasets/upload", files={"file": CSV}, data={"kinds": kinds}), 422, "invalid_data")
    assert "10000 columns" in found["detail"]
