"""Requests a second and median latency of one API process: logistic regression on breast_cancer.

    python tests/benchmarks/predict.py

Everything runs on this machine: Postgres, Redis, one uvicorn process, and the client that asks it.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import orjson
import pyarrow as pa
from sklearn.datasets import load_breast_cancer

from app.bootstrap import build
from app.embedded import Stack
from app.ml.schema import TableColumn
from app.ml.training import TrainSpec, train
from app.settings import Settings
from migrations import upgrade

SECONDS = 3.0
CONNECTIONS = 8


def fitted():
    cancer = load_breast_cancer()
    labels = cancer.target_names[cancer.target].astype(str)
    columns = {name: cancer.data[:, i] for i, name in enumerate(cancer.feature_names)}
    table = pa.table({**columns, "diagnosis": pa.array(labels)})
    sheet = [TableColumn(name, "numeric", 0, 400) for name in columns]
    sheet.append(TableColumn("diagnosis", "categorical", 0, 2))
    spec = TrainSpec.model_validate({"target": "diagnosis", "algorithm": {"name": "logistic"}})
    return train(spec, table, columns=sheet, data_digest="sha256:benchmark"), table.drop(["diagnosis"])


def requests(table):
    """The bytes of a request, by what it carries."""
    names, rows = table.column_names, table.to_pylist()
    bodies = {
        "1 row": {"rows": rows[:1]},
        "1 row, columns + data": {"columns": names, "data": [list(rows[0].values())]},
        "100 rows": {"rows": rows[:100]},
        "100 rows, columns + data": {"columns": names, "data": [list(row.values()) for row in rows[:100]]},
    }
    lines = [
        "POST /v1/models/cancer/predict HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        "Content-Length: {}",
    ]
    head = "\r\n".join([*lines, "", ""])
    texts = {name: orjson.dumps(body) for name, body in bodies.items()}
    return {name: head.format(len(text)).encode() + text for name, text in texts.items()}


async def ask(reader, writer, request):
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    assert head.startswith(b"HTTP/1.1 200"), body
    return body


async def hammer(port, request, connections):
    """Seconds of each request, of so many connections that ask again as soon as they are answered."""
    end = time.perf_counter() + SECONDS

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        taken = []
        while (start := time.perf_counter()) < end:
            await ask(reader, writer, request)
            taken.append(time.perf_counter() - start)
        writer.close()
        return taken

    return [second for taken in await asyncio.gather(*(one() for _ in range(connections))) for second in taken]


def served(settings):
    """One uvicorn process and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {
        "VALIANT_DATABASE_URL": settings.database_url.get_secret_value(),
        "VALIANT_BROKER_URL": settings.broker_url.get_secret_value(),
        "VALIANT_CACHE_URL": settings.cache_url.get_secret_value(),
    }
    command = [sys.executable, "-m", "uvicorn", "--factory", "app.main:create_app", "--port", str(port)]
    process = subprocess.Popen([*command, "--no-access-log"], env=environment, stdout=subprocess.DEVNULL)
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return process, port


def main():
    made, table = fitted()
    with tempfile.TemporaryDirectory() as folder, Stack(Settings(data=Path(folder))) as stack:
        upgrade(stack.settings.database_url.get_secret_value())
        services = build(stack.settings, role="api")
        with services.work() as w:
            w.models.add_version(
                model="cancer",
                job_id=uuid4(),
                dataset_id=uuid4(),
                blob=made.blob,
                report=made.report,
                golden=made.golden,
            )
        services.close()
        process, port = served(stack.settings)
        try:
            for name, request in requests(table).items():
                asyncio.run(hammer(port, request, 1))  # warm
                alone = asyncio.run(hammer(port, request, 1))
                crowd = asyncio.run(hammer(port, request, CONNECTIONS))
                median = statistics.median(alone) * 1e3
                line = f"{name:28} {len(crowd) / SECONDS:8.0f} requests/s   p50 of one connection {median:6.2f} ms"
                print(line)  # noqa: T201 - what a benchmark is for
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
