"""Requests and their retries as steps of a generator, without input or output.

A method of the client is a generator. It yields a `Call`, and receives its `Reply` or a `ConnectionLost`; or it yields
a `Pause`. `drivers` performs the steps, one driver for threads and one for asyncio.
"""

import json
import random
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from .failures import ConnectionLost, ValiantError, problem_of
from .release import RELEASE

RETRIES = 5
FIRST_PAUSE = 0.1
"""Shortest first pause in seconds. It is longer with more patience: all pauses together are about half of it."""
WAITING = {429, 503}
"""Statuses by which the service defers a request: it was not carried out."""

Body: TypeAlias = bytes | Callable[[], Iterator[bytes]] | None
"""Bytes, or their chunks, produced anew for each attempt."""
Sink: TypeAlias = Callable[[], Callable[[bytes], bool]]
"""Begins to receive a response anew; the result takes its chunks, and is True when it wants no more."""


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    query: Mapping[str, Any] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})
    body: Body = None
    sink: Sink | None = None
    """Receives the body of a response of success, chunk by chunk; None: the reply has it."""
    timeout: float | None = None
    """Longest time in seconds without a byte; None: that of the client."""
    repeatable: bool = True
    """False where a second request would do something else than the first."""


class Pause(NamedTuple):
    seconds: float


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None


T = TypeVar("T")
Steps: TypeAlias = Generator[Call | Pause, Any, T]


def send(call: Call, patience: float) -> Steps[Reply]:
    """The reply of success. What may pass is tried again, at most RETRIES times and not after `patience` seconds.

    Raises Problem, ConnectionLost.
    """
    end, attempt, failure = time.monotonic() + patience, 0, ValiantError()
    while True:
        wait = 0.0
        try:
            reply: Reply = yield call
        except ConnectionLost as lost:
            failure = lost
            if lost.sent and not call.repeatable:
                raise
        else:
            if reply.status < 400:
                _compare_releases(reply.headers.get("valiant-version", ""))
                return reply
            fields = reply.json()
            failure = problem_of(reply.status, fields if isinstance(fields, dict) else {})
            if reply.status not in WAITING:
                raise failure
            wait = _retry_after(reply)
        pause = max(wait, max(FIRST_PAUSE, patience / 2 ** (RETRIES + 1)) * 2**attempt) * random.uniform(0.75, 1.25)  # noqa: S311
        attempt += 1
        if attempt > RETRIES or time.monotonic() + pause > end:
            raise failure
        yield Pause(max(wait, pause))


def _retry_after(reply: Reply) -> float:
    """Seconds; a date, which this service does not send, is read as none."""
    value = reply.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else 0.0


def _compare_releases(header: str) -> None:
    """Warn where the service, as in `1.4.0; min_client=1.2.0`, expects a newer client. It goes on all the same."""
    service, _, oldest = header.partition("; min_client=")
    if oldest and _numbers(oldest) > _numbers(RELEASE):
        warnings.warn(
            f"This client is of release {RELEASE}; the service, of release {service}, expects {oldest} or newer.",
            stacklevel=2,
        )


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.split(".") if part.isdecimal()]
