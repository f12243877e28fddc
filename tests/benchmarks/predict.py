"""CPU time of one prediction, by what it goes through: logistic regression on breast_cancer, in this process alone.

    python -m tests.benchmarks.predict [--profile] [--log INFO]

`application` is what we add to a server; `uvicorn` is a whole request but for the system's sockets, beside the same
for an application that says a constant.
"""

import argparse
import asyncio
import cProfile
import pstats
import time
from math import inf

import pyarrow as pa
import uvicorn
import uvloop
from sklearn.datasets import load_breast_cancer
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.api.fast.connection import Receiver
from app.base import logs
from app.base.settings import Settings
from app.composition.wiring import build
from app.main import create_app
from app.ml.contract.columns import TableColumn
from app.ml.contract.model_reference import VersionRef
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from app.processes.process_memory import settle
from app.services.predictions.pointer_cache import Found, _Known
from app.store.models.pointer import Pointer
from tests.benchmarks.serving import bodies, floor

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
TIMES = {1: 300, 100: 60, 10_000: 2}
"""Requests of a round, by rows."""
ROUNDS = 60


def fitted():
    cancer = load_breast_cancer()
    columns = {name: cancer.data[:, i] for i, name in enumerate(cancer.feature_names)}
    labels = cancer.target_names[cancer.target].astype(str)
    sheet = [*(TableColumn(name, "numeric", 0, 400) for name in columns), TableColumn("diagnosis", "categorical", 0, 2)]
    spec = TrainSpec.model_validate({"target": "diagnosis", "algorithm": {"name": "logistic"}})
    table = pa.table({**columns, "diagnosis": labels})
    made = train(plan(spec, sheet, table.num_rows), table, data_digest="sha256:benchmark")
    return made.blob, list(columns)


def application(blob):
    """Ours, with the model in memory and meant for ever: there is no server."""
    settings = Settings(database_url=NOWHERE, broker_url="redis://127.0.0.1:1", cache_url="redis://127.0.0.1:1")
    services, digest = build(settings, role="api"), "sha256:" + 64 * "0"
    services.predictions.memory.put(digest, decode(blob))
    found = Found(Pointer("cancer", 1, digest, len(blob)))
    services.predictions.pointers._known[VersionRef("cancer")] = _Known(found, inf)
    return create_app(settings, services)


def scope_of(path, headers):
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "state": {},
        "headers": headers, "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 9),
    }  # fmt: skip


def sent(headers, body):
    """As wrk sends them."""
    own = [(b"host", b"127.0.0.1:8000"), *((name.lower().encode(), value.encode()) for name, value in headers.items())]
    return [*own, (b"content-length", b"%d" % len(body))]


def called(app, path, headers, body):
    """`once()` sends a request through ASGI alone."""
    came, messages, waiting = [], [], asyncio.Event()

    async def receive():
        """The body, and then nothing: a second message would mean that the client has left."""
        if not came:
            await waiting.wait()
        return came.pop()

    async def send(message):
        messages.append(message)

    async def once():
        messages.clear()
        came[:] = [{"type": "http.request", "body": body, "more_body": False}]
        await app(scope_of(path, sent(headers, body)), receive, send)
        assert messages[0]["status"] == 200, messages

    return once


class Transport(asyncio.Transport):
    """A connection to nobody."""

    def __init__(self):
        super().__init__({"sockname": ("127.0.0.1", 8000), "peername": ("127.0.0.1", 9)})
        self.head = b""

    def write(self, data):
        self.head = self.head or data

    def writelines(self, chunks):
        self.write(chunks[0])

    def is_closing(self):
        return False

    def close(self):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def receive(protocol, request):
    if not isinstance(protocol, asyncio.BufferedProtocol):
        protocol.data_received(request)
        return
    rest = memoryview(request)
    while rest:
        room = memoryview(protocol.get_buffer(-1))[: len(rest)]
        room[:] = rest[: len(room)]
        protocol.buffer_updated(len(room))
        rest = rest[len(room) :]


def connected(app, path, headers, body, protocol=HttpToolsProtocol, **options):
    """`once()` sends a request through uvicorn and its parser."""
    config = uvicorn.Config(app, access_log=False, log_config=None, **options)
    config.load()
    state, transport = ServerState(), Transport()
    state.default_headers = [(b"date", b"Sun, 22 Nov 2026 00:18:55 GMT"), *config.encoded_headers]
    connection = protocol(config, state, {}, asyncio.get_running_loop())
    connection.connection_made(transport)
    lines = [b"POST %s HTTP/1.1" % path.encode(), *(b"%s: %s" % pair for pair in sent(headers, body))]
    request = b"\r\n".join([*lines, b"", body])

    async def once():
        transport.head = b""
        receive(connection, request)
        if state.tasks:
            await asyncio.gather(*state.tasks)
        await asyncio.sleep(0)  # what is written is sent when a turn of the loop ends
        assert transport.head.startswith(b"HTTP/1.1 200"), transport.head

    return once


async def spent(once, times):
    """Microseconds of CPU time a request, in the best round."""
    best = inf
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            await once()
        best = min(best, time.process_time() - begun)
    return 1e6 * best / times


async def measure(profiled):
    blob, names = fitted()
    ours = application(blob)
    forms = {
        "predict": ("/v1/models/cancer/predict", bodies.named(names)),
        "predict, npy": ("/v1/models/cancer/predict", bodies.npy),
        "infer": ("/v2/models/cancer/infer", bodies.tensor),
    }
    settle()
    if profiled:
        path, make = forms["predict"]
        await profile(called(ours, path, *make(bodies.rows(1))))
        return
    for rows, times in TIMES.items():
        requested = {name: (ours, path, *make(bodies.rows(rows))) for name, (path, make) in forms.items()}
        for name, ask in {"floor": (floor.app, "/", *bodies.plain(bodies.rows(rows))), **requested}.items():
            own = {} if name == "floor" else {"protocol": Receiver, "proxy_headers": False, "server_header": False}
            alone, whole = await spent(called(*ask), times), await spent(connected(*ask, **own), times)
            print(f"{rows:7,} rows  {name:14} application {alone:9.1f} µs   uvicorn {whole:9.1f} µs")


async def profile(once):
    profiler = cProfile.Profile()
    for _ in range(200):
        await once()
    profiler.enable()
    for _ in range(5000):
        await once()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true", help="where a request of one row spends its time")
    parser.add_argument("--log", default="WARNING", help="INFO: each request has its line")
    options = parser.parse_args()
    logs.configure(options.log)
    uvloop.run(measure(options.profile))
