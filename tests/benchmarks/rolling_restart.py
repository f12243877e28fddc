"""Requests lost while two replicas behind nginx restart in turn: python -m tests.benchmarks.rolling_restart.

Needs nginx on the PATH. Prints a line per restart: requests, requests per second, failures, and the 50th, 99th and
last percentile of the seconds until a response. --empty: the cache of models is emptied before each start too, so that
a replica begins with what the database and the disk have.
"""

import argparse
import asyncio
import contextlib
import re
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import orjson
from redis import Redis

from app.base.settings import Settings
from app.commands import processes
from app.commands.up import running
from app.processes import ports
from tests.benchmarks.serving.contestants import _train
from tests.nginx import nginx

DRAIN_SECONDS = 1.0
CONNECTIONS = 32
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
CLOSE = re.compile(rb"\r\nconnection: close\r\n", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


@dataclass
class Tally:
    """What became of the requests since the last look."""

    requests: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of each response."""

    def take(self):
        taken = Tally(self.requests, self.failures, self.seconds)
        self.__init__()
        return taken


def predictions(body, *models):
    """POST on both request paths, and reads: all that a client of models sends."""
    own = f"Content-Length: {len(body)}\r\n\r\n"
    reads = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in ("/v1/models", "/livez")]
    heads = [
        f"POST /v1/models/{model}/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for model in models
    ]
    paths = "", f"X-Long: {3000 * 'x'}\r\n", ""
    return [(head + long + own).encode() + body for head in heads for long in paths] + reads


@contextlib.asynccontextmanager
async def load(address, requests, tally, connections=CONNECTIONS):
    """Each connection sends them in turn, the next one when it has the response, until the block ends."""
    url, over = httpx.URL(address), asyncio.Event()
    callers = [asyncio.create_task(_call(url, requests, place, tally, over)) for place in range(connections)]
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(*callers)


async def _call(url, requests, place, tally, over):
    while not over.is_set():
        try:
            reader, writer = await asyncio.open_connection(url.host, url.port)
            with contextlib.closing(writer):
                last = False  # nginx ends a connection after 1,000 requests
                while not (last or over.is_set()):
                    begun, place = time.perf_counter(), place + 1
                    writer.write(requests[place % len(requests)])
                    tally.requests += 1
                    status, last = await asyncio.wait_for(_read(reader), 20)
                    tally.seconds.append(time.perf_counter() - begun)
                    if status != b"200":
                        tally.failures[status.decode()] += 1
        except (OSError, EOFError, TimeoutError) as error:
            tally.failures[type(error).__name__] += 1


async def _read(reader):
    """The status of a response, and whether it is the last of its connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(LENGTH.search(head)[1]))
    return STATUS.match(head)[1], CLOSE.search(head) is not None


LEFT_OUT_SECONDS = 2.5
"""A little more than `fail_timeout` in nginx.conf, for which a replica that failed gets no request."""


async def restarted(replicas, times, tally, before=lambda: None):
    """Yields after each of so many restarts what became of the requests meanwhile, and the seconds it took.

    before: called before a replica starts again. The next one stops when nginx sends requests to this one again.
    """
    tally.take()
    for number in range(times):
        begun, replica = time.perf_counter(), replicas[number % len(replicas)]
        await asyncio.to_thread(replica.stop)
        await asyncio.to_thread(before)
        replica.spawn()
        await asyncio.to_thread(replica.wait)
        seconds = time.perf_counter() - begun
        await asyncio.sleep(LEFT_OUT_SECONDS)
        yield tally.take(), seconds


def two_replicas(settings, folder):
    """Their processes, and their ports."""
    found = []
    for _ in range(2):
        with ports.listen("127.0.0.1", 0) as free:
            found.append(free.getsockname()[1])
    own = [settings.model_copy(update={"port": port, "drain_seconds": DRAIN_SECONDS}) for port in found]
    return [processes.api(each, folder, to_terminal=False) for each in own], found


def _alias(address, models):
    """A replica begins with the models that aliases name."""
    for model in models:
        alias = f"{address}/v1/models/{model}/aliases/champion"
        httpx.put(alias, json={"version": 1}, trust_env=False).raise_for_status()


async def measure(times, *, empty):
    with contextlib.ExitStack() as undo:
        data = undo.enter_context(tempfile.TemporaryDirectory(prefix="valiant-"))
        first = Settings(data=Path(data), port=0, log_level="WARNING")
        service = undo.enter_context(running(first, workers=1, to_terminal=False))
        trained = _train(service.address)
        _alias(service.address, trained)
        replicas, found = two_replicas(service.settings, service.children[-1].folder)
        for replica in replicas:
            replica.start()
            undo.callback(replica.stop)
        address = undo.enter_context(nginx(*found))
        names, tally = trained["logistic"], Tally()
        body = orjson.dumps({"columns": names, "data": [[1.0] * len(names)]})
        cache = Redis.from_url(service.settings.cache_url.get_secret_value())
        before = cache.flushall if empty else (lambda: None)
        async with load(address, predictions(body, *trained), tally):
            await asyncio.sleep(2)
            async for seen, seconds in restarted(replicas, times, tally, before):
                rate, failed = seen.requests / seconds, seen.failures.total()
                shares = " ".join(f"{value:6.3f}" for value in np.percentile(seen.seconds, [50, 99, 100]))
                print(f"{seen.requests:7d} {rate:7.0f}/s {failed:4d} {shares} s", flush=True)
                if seen.failures:
                    print(dict(seen.failures))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.rolling_restart", description=__doc__)
    parser.add_argument("--restarts", type=int, default=20, help="how many")
    parser.add_argument("--empty", action="store_true", help="empty the cache of models before each start")
    options = parser.parse_args()
    asyncio.run(measure(options.restarts, empty=options.empty))
