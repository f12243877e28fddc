"""The two drivers of steps: httpx and sleep, in a thread or under asyncio."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import httpx

from .configuration import Connection
from .failures import ConnectionLost
from .release import RELEASE
from .steps import Body, Call, Pause, Reply, Steps, T

CONNECT_SECONDS = 10.0
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class _Driver:
    def __init__(self, connection: Connection, timeout: float) -> None:
        """timeout: seconds without a byte, and until the last retry."""
        self.url, self.timeout = connection.url, timeout
        headers = {"User-Agent": f"valiant-python/{RELEASE}"}
        if connection.key is not None:
            headers["Authorization"] = f"Bearer {connection.key}"
        self._options: dict[str, Any] = {"base_url": connection.url, "headers": headers}

    def _request(self, call: Call) -> dict[str, Any]:
        query = {name: value for name, value in call.query.items() if value is not None}
        seconds = self.timeout if call.timeout is None else call.timeout
        timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, self.timeout))
        return {
            "method": call.method,
            "url": call.path,
            "params": query,
            "headers": dict(call.headers),
            "timeout": timeout,
        }


class Sync(_Driver):
    """Performs steps in the calling thread. Several threads may share it."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        super().__init__(connection, timeout)
        self.http = httpx.Client(**self._options)

    def run(self, steps: Steps[T]) -> T:
        command: Any = partial(next, steps)
        try:
            while True:
                step = command()
                try:
                    command = partial(steps.send, self._perform(step))
                except BaseException as error:  # noqa: BLE001  the steps handle it, or clean up and raise it
                    command = partial(steps.throw, error)
        except StopIteration as end:
            result: T = end.value
            return result

    def _perform(self, step: Call | Pause) -> Reply | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        content = step.body() if callable(step.body) else step.body
        with _lost(self.url), self.http.stream(**self._request(step), content=content) as response:
            if step.sink is None or not response.is_success:
                return Reply(response.status_code, response.headers, response.read())
            take = step.sink()
            for chunk in response.iter_bytes():
                if take(chunk):
                    break
            return Reply(response.status_code, response.headers, b"")

    def close(self) -> None:
        self.http.close()


class Async(_Driver):
    """Performs steps on the event loop, of asyncio or trio."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        super().__init__(connection, timeout)
        self.http = httpx.AsyncClient(**self._options)

    async def run(self, steps: Steps[T]) -> T:
        command: Any = partial(next, steps)
        try:
            while True:
                step = command()
                try:
                    command = partial(steps.send, await self._perform(step))
                except BaseException as error:  # noqa: BLE001  as in `Sync`
                    command = partial(steps.throw, error)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _perform(self, step: Call | Pause) -> Reply | None:
        if isinstance(step, Pause):
            await anyio.sleep(step.seconds)
            return None
        with _lost(self.url):
            async with self.http.stream(**self._request(step), content=_in_turn(step.body)) as response:
                if step.sink is None or not response.is_success:
                    return Reply(response.status_code, response.headers, await response.aread())
                take = step.sink()
                async for chunk in response.aiter_bytes():
                    if take(chunk):
                        break
                return Reply(response.status_code, response.headers, b"")

    async def close(self) -> None:
        await self.http.aclose()


def _in_turn(body: Body) -> bytes | AsyncIterator[bytes] | None:
    """Chunks that are read in a thread, since reading a file or packing a frame may block."""
    if not callable(body):
        return body

    async def chunks(source: Iterator[bytes]) -> AsyncIterator[bytes]:
        while chunk := await anyio.to_thread.run_sync(next, source, b""):
            yield chunk

    return chunks(body())


@contextmanager
def _lost(url: str) -> Iterator[None]:
    """Failures of the connection by the one name that steps know, without the frames of the libraries below."""
    try:
        yield
    except httpx.TransportError as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        sent = not isinstance(error, NOT_SENT)
        detail = f"The connection to {url} broke ({reason})." if sent else f"Nothing listens at {url} ({reason})."
        hint = "" if sent else " Does the service run? `valiant up` starts one; VALIANT_URL names another address."
        raise ConnectionLost(detail + hint, sent=sent) from None
