"""Uploads in parts: what has arrived stays, wherever the connection breaks and whichever process goes on."""

import gzip
import hashlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text

from app.store.datasets.uploads import KEPT
from tests.api.access.test_quotas import Caller, refused

TABLE = b"a,b\n" + b"".join(b"%d,x%d\n" % (number, number % 3) for number in range(2000))


def begin(client, data=TABLE, **fields):
    response = client.post("/v1/uploads", json={"size_bytes": len(data), **fields})
    assert response.status_code == 201, response.text
    assert response.headers["upload-offset"] == "0"
    return response.headers["location"]


def send(client, upload, data, offset=0):
    return client.patch(upload, content=data, headers={"Upload-Offset": str(offset)})


def offset_of(client, upload):
    response = client.get(upload)
    assert response.headers["upload-offset"] == str(response.json()["offset"])
    return response.json()["offset"]


def test_parts_become_one_dataset(client):
    upload = begin(client, digest=f"sha256:{hashlib.sha256(TABLE).hexdigest()}")
    assert send(client, upload, TABLE[:1000]).json()["offset"] == 1000
    refused(client.post(f"{upload}/dataset"), 409, "upload_incomplete")
    assert send(client, upload, TABLE[1000:], 1000).headers["upload-offset"] == str(len(TABLE))
    made = client.post(f"{upload}/dataset?name=parts")
    assert made.status_code == 201
    found = made.json()
    assert (found["name"], found["rows"], found["size_bytes"]) == ("parts", 2000, len(TABLE))
    whole = client.post("/v1/datasets?name=whole", content=TABLE).json()
    assert (found["digest"], found["columns"]) == (whole["digest"], whole["columns"])
    assert client.post(f"{upload}/dataset?name=again").json() == found
    assert client.get(upload).json()["dataset"] == found["id"]


def test_a_dataset_is_made_once_however_many_request_it(client):
    upload, name = begin(client), f"once-{uuid4()}"
    send(client, upload, TABLE)
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: client.post(f"{upload}/dataset?name={name}").json()["id"], range(4)))
    assert len(set(made)) == 1
    assert len(client.get(f"/v1/datasets?name={name}").json()["items"]) == 1


def test_a_part_that_does_not_follow_is_refused_with_the_right_offset(client):
    upload = begin(client)
    send(client, upload, TABLE[:500])
    for offset in (0, 499, 501, 10**15):
        response = send(client, upload, b"x", offset)
        refused(response, 409, "wrong_offset")
        assert response.headers["upload-offset"] == "500"
    for header in ({}, {"Upload-Offset": "-1"}, {"Upload-Offset": "five"}):
        assert client.patch(upload, content=b"x", headers=header).status_code == 422
    refused(send(client, upload, TABLE[500:] + b"x", 500), 413, "body_too_large")


def test_bytes_beyond_the_limits_are_refused_at_the_start(client, settings):
    refused(client.post("/v1/uploads", json={"size_bytes": settings.max_upload_bytes + 1}), 413, "body_too_large")
    for body in ({}, {"size_bytes": 0}, {"size_bytes": 5, "digest": "md5:1"}, {"size_bytes": 5, "other": 1}):
        refused(client.post("/v1/uploads", json=body), 422, "invalid_request")


def test_a_file_that_cannot_be_read_can_be_read_with_other_options(client):
    data = "straße;größe\n1;2\n3;4\n".encode("latin-1")
    upload = begin(client, data)
    send(client, upload, data)
    refused(client.post(f"{upload}/dataset"), 422, "invalid_data")
    made = client.post(f"{upload}/dataset?encoding=latin-1").json()
    assert [column["name"] for column in made["columns"]] == ["straße", "größe"]


def test_bytes_of_another_digest_are_refused(client):
    upload = begin(client, digest=f"sha256:{'0' * 64}")
    send(client, upload, TABLE)
    response = client.post(f"{upload}/dataset")
    refused(response, 422, "invalid_data")
    assert response.json()["errors"][0]["code"] == "digest_mismatch"


def test_another_project_finds_no_upload(guarded, services):
    mine, others = Caller(guarded, services), Caller(guarded, services)
    upload = mine.send("POST", "/v1/uploads", json={"size_bytes": 3}).headers["location"]
    for method, path, options in (
        ("GET", upload, {}),
        ("PATCH", upload, {"content": b"a"}),
        ("POST", f"{upload}/dataset", {}),
        ("DELETE", upload, {}),
    ):
        headers = {**others.headers, "Upload-Offset": "0"}
        refused(guarded.request(method, path, headers=headers, **options), 404, "upload_not_found")
    entries = mine.send("GET", "/v1/audit").json()["items"]
    assert upload in {entry["target"] for entry in entries}


def test_the_quota_counts_what_is_announced_until_it_is_a_dataset(guarded, services):
    own = Caller(guarded, services, storage_bytes=1000)
    refused(own.send("POST", "/v1/uploads", json={"size_bytes": 1001}), 403, "quota_exceeded")
    upload = own.send("POST", "/v1/uploads", json={"size_bytes": 600}).headers["location"]
    assert own.usage()["storage_bytes"] == 600
    refused(own.send("POST", "/v1/uploads", json={"size_bytes": 600}), 403, "quota_exceeded")
    data = b"a\n" + b"12\n" * 199 + b"1"
    headers = {**own.headers, "Upload-Offset": "0"}
    assert guarded.patch(upload, content=data, headers=headers).json()["offset"] == 600
    assert own.send("POST", f"{upload}/dataset").status_code == 201
    assert own.usage()["storage_bytes"] == 600
    again = own.send("POST", "/v1/uploads", json={"size_bytes": 400}).headers["location"]
    assert own.send("DELETE", again).status_code == 204
    assert own.usage()["storage_bytes"] == 600


def test_what_was_given_up_expires_and_the_bytes_of_datasets_go(client, services):
    kept, old, done = (begin(client) for _ in range(3))
    for upload in (kept, old, done):
        send(client, upload, TABLE)
    made = client.post(f"{done}/dataset").json()
    with services.work() as w:
        age = {"age": KEPT + timedelta(minutes=1), "id": old.rpartition("/")[2]}
        w.session.execute(text("update uploads set updated_at = now() - :age where id = :id"), age)
    services.recovery.sweep(None)
    refused(client.get(old), 404, "upload_not_found")
    assert offset_of(client, kept) == len(TABLE)
    assert client.post(f"{done}/dataset").json()["id"] == made["id"]
    chunks = text("select count(*) from upload_chunks where upload_id = :id")
    with services.work() as w:
        left = {each: w.session.scalar(chunks, {"id": each.rpartition("/")[2]}) for each in (kept, old, done)}
    assert left == {kept: 1, old: 0, done: 0}


def test_what_arrived_before_the_connection_broke_is_kept(api_address):
    address = api_address()
    with httpx.Client(base_url=address, timeout=60) as client:
        upload, place = begin(client), urlsplit(address)
        with socket.create_connection((place.hostname, place.port)) as broken:
            fields = f"Host: {place.netloc}\r\nUpload-Offset: 0\r\nContent-Length: {len(TABLE)}\r\n\r\n"
            broken.sendall(f"PATCH {upload} HTTP/1.1\r\n{fields}".encode() + TABLE[:5000])
            time.sleep(0.3)
        until = time.monotonic() + 20
        while offset_of(client, upload) < 5000:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert send(client, upload, TABLE[5000:], 5000).status_code == 200
        assert client.post(f"{upload}/dataset").json()["rows"] == 2000


@pytest.mark.slow
def test_another_replica_goes_on_where_a_killed_one_ended(api_factory):
    first, address = api_factory()
    _, other = api_factory()
    with httpx.Client(base_url=address, timeout=60) as client:
        upload = begin(client)
        send(client, upload, TABLE[:7000])
    first.kill()
    with httpx.Client(base_url=other, timeout=60) as client:
        assert offset_of(client, upload) == 7000
        send(client, upload, TABLE[7000:], 7000)
        assert client.post(f"{upload}/dataset").json()["rows"] == 2000


@pytest.mark.parametrize("name", ["br", "zstd", "gzip, gzip"])
def test_parts_in_other_encodings_are_refused(client, name):
    upload = begin(client)
    headers = {"Upload-Offset": "0", "Content-Encoding": name}
    refused(client.patch(upload, content=TABLE[:500], headers=headers), 415, "unsupported_content_encoding")
    assert offset_of(client, upload) == 0


def test_a_compressed_part_counts_as_what_it_holds(client):
    upload = begin(client)
    headers = {"Upload-Offset": "0", "Content-Encoding": "gzip"}
    assert client.patch(upload, content=gzip.compress(TABLE), headers=headers).json()["offset"] == len(TABLE)
    assert client.post(f"{upload}/dataset").json()["rows"] == 2000
