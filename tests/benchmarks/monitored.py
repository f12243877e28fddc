"""python -m tests.benchmarks.monitored [--requests 20000] [--rounds 5]

Cost of a monitor on the path of a prediction: processor time of the server for a request of one row, of a model with a
monitor, relative to one without. Two servers take turns; each round starts both anew, as two processes of one kind
differ by several percent. The load comes from sockets of this process.
"""

import argparse
import json
import socket
import statistics
from contextlib import ExitStack
from urllib.parse import urlsplit

import numpy as np

from app.ml.monitoring.column_bins import number_column
from app.ml.monitoring.reference import Reference, encode
from app.schemas.monitoring import MonitorOptions

from .keyed import api, deployed
from .serving.process import LOAD_CORE, pinned

CONNECTIONS = 16
BODY = json.dumps({"rows": [{"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}]}).encode()
HEAD = (
    b"POST /v1/models/load/predict HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    requested = parser.parse_args()
    shares = []
    with ExitStack() as undo, pinned(LOAD_CORE):
        _, stack, services = deployed(undo)
        store_reference(services)
        for place in range(requested.rounds):
            with ExitStack() as servers:
                plain, logged = one_round(servers, services, stack, requested.requests)
            shares.append(plain / logged)
            print(
                f"round {place}: {plain:.2f} µs without, {logged:.2f} µs with a monitor: {shares[-1]:.3f}", flush=True
            )
    print(
        f"rate with a monitor: {statistics.median(shares):.3f} ({min(shares):.3f} to {max(shares):.3f}) of that without"
    )


def store_reference(services):
    """Give the model of the load a reference of its numeric inputs, as a training would."""
    values = np.random.default_rng(0).normal(size=10_000)
    with services.work() as w:
        columns = [number_column(column.name, values) for column in w.models.version("load", 1).inputs]
        w.version_references.add("load", 1, encode(Reference(rows=10_000, columns=columns)))


def one_round(undo, services, stack, requests):
    """Processor time of a request in microseconds, the least of five turns: without a monitor, and with one."""
    services.monitors.put("load", MonitorOptions())
    logged = api(undo, stack, "none")
    spent(logged, requests)  # it looks for monitors every few seconds
    logged_time = min(spent(logged, requests) for _ in range(5))
    services.monitors.delete("load")
    plain = api(undo, stack, "none")
    spent(plain, requests)
    return min(spent(plain, requests) for _ in range(5)), logged_time


def spent(server, requests):
    """Processor time of the server's process for each of so many requests, in microseconds."""
    address, process = server
    where = urlsplit(address)
    message = HEAD % (where.netloc.encode(), len(BODY)) + BODY
    connections = [socket.create_connection((where.hostname, where.port)) for _ in range(CONNECTIONS)]
    before = sum(process.cpu_times()[:2])
    for _ in range(requests // CONNECTIONS):
        for connection in connections:
            connection.sendall(message)
        for connection in connections:
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    after = sum(process.cpu_times()[:2])
    for connection in connections:
        connection.close()
    return (after - before) / requests * 1e6


if __name__ == "__main__":
    main()
