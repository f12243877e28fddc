"""Callers who hang up, at any point of a request, cost no connection to the database."""

import random
import socket
import struct
import time
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

IRIS = (Path(__file__).parents[3] / "app" / "samples" / "iris.csv").read_bytes()
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset at once."""
STATES = text("select state, count(*) from pg_stat_activity where application_name = 'valiant-api' group by state")


def requests(model):
    """Reads, uploads, predictions and jobs, as they are sent."""
    train = b'{"model": "m", "dataset": "aborted", "target": "species", "algorithm": {"name": "ridge"}}'
    rows = b'{"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}'
    for path in (
        "/v1/jobs",
        "/v1/datasets",
        "/v1/models",
        "/v1/datasets/aborted/rows",
        f"/v1/models/{model}",
        "/readyz",
    ):
        yield b"GET /v1/%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode()
    for path, kind, body in (
        ("/v1/datasets?name=aborted", "text/csv", IRIS),
        ("/v1/jobs/train:validate", "application/json", train),
        (f"/v1/models/{model}/predict", "application/json", rows),
        (f"/v1/models/{model}/sweep", "application/json", rows),
    ):
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        yield head.encode() + body


@pytest.mark.slow
def test_5000_aborted_requests_leave_no_connection_behind(api_factory, services, trained):
    from uuid import uuid4

    model, one = f"aborted-{uuid4().hex[:8]}", trained("ridge", target="species")
    with services.work() as w:
        w.models.add_version(
            model=model, job_id=uuid4(), dataset_id=uuid4(), blob=one.blob, report=one.report, golden=one.golden,
            chunk_bytes=1 << 20,
        )  # fmt: skip
    _, address = api_factory(database_pool=2)
    host, port = address.removeprefix("http://").split(":")
    draw, kinds = random.Random(0), list(requests(model))
    often = [1 if b"text/csv" in one else 50 for one in kinds]  # a file that came whole is parsed, and takes its time
    with httpx.Client(base_url=address, timeout=30) as http:
        http.post("/v1/datasets", params={"name": "aborted"}, content=IRIS).raise_for_status()
        for _ in range(5000):
            [whole] = draw.choices(kinds, often)
            with socket.create_connection((host, int(port))) as caller:
                caller.sendall(whole if draw.random() < 0.8 else whole[: draw.randrange(1, len(whole))])
                time.sleep(draw.choice([0, 0, 0, 0.002, 0.01]))
                caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        assert all(http.get("/v1/jobs").status_code == 200 for _ in range(20))
        metrics = http.get("/metrics").text
    assert "valiant_database_connections_in_use 0.0" in metrics
    with services.work.engine.connect() as connection:
        deadline = time.monotonic() + 10
        while (states := dict(connection.execute(STATES).all())).keys() & {"idle in transaction"}:
            assert time.monotonic() < deadline, states
            time.sleep(0.1)
            connection.rollback()
