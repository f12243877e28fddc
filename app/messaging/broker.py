"""A Redis transport for Celery that survives any message and any key on the broker.

A message is no more than a hint: the name of a task and the id of a job. Everything else in an envelope is written
anew before Celery sees it, and an envelope without these two is dropped and counted. A job whose message is lost is
announced again by a sweep.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Any
from uuid import UUID, uuid4

import structlog
from celery import Celery
from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ResponseError

QUEUE = "valiant"
RUN = "valiant.run"
"""The task that runs a job; its one argument is the id."""
CANARY = "valiant.canary"
"""The task by which a worker learns that its consumer is alive; without arguments."""
LONGEST_MESSAGE = 1 << 16
"""Bytes of the longest envelope that is parsed; ours have less than 2,000."""

DROP_OTHER_TYPE = """
local found = redis.call('TYPE', KEYS[1]).ok
if found == 'none' or found == ARGV[1] then return nil end
redis.call('DEL', KEYS[1])
return found
"""
"""In one step: a queue that takes the place of such a key meanwhile is never deleted."""

DROPPED: Counter[str] = Counter()
"""Since this process began: damaged messages ("message") and keys of the wrong type ("key") that were removed."""

log = structlog.get_logger(__name__)


class Channel(redis.Channel):
    ack_emulation = False
    """Messages in hand are not kept on the broker too: they are hints, and a key for them could be of another type."""

    def types(self) -> dict[str, bytes]:
        """The Redis type of each key that messages pass through."""
        queues = {self._q_for_pri(QUEUE, priority): b"list" for priority in self.priority_steps}  # type: ignore[no-untyped-call] # kombu is half typed
        return {**queues, self.keyprefix_queue % QUEUE: b"set"}

    def _create_client(self, asynchronous: bool = False) -> Any:
        client = super()._create_client(asynchronous)  # type: ignore[no-untyped-call] # as above
        parse = client.response_callbacks["BRPOP"]
        client.set_response_callback("BRPOP", lambda response, **options: _checked(parse(response, **options)))
        return client

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call] # as above
        except ResponseError:
            _mend(self)
            raise Empty from None  # as if nothing had come


class Transport(redis.Transport):
    Channel = Channel


def install() -> None:
    """Kombu knows a transport by the scheme of its address, and ours stands in for its own."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:Transport"))


def _checked(popped: Sequence[bytes] | None) -> Sequence[bytes] | None:
    """A queue's key and a message; None, as if nothing had come, in place of a damaged one."""
    if popped is None:
        return None
    key, message = popped
    rewritten = rewrite(message, queue=key.decode().partition(redis.Channel.sep)[0])
    if rewritten is None:
        DROPPED["message"] += 1
        log.warning("message_dropped", bytes=len(message), dropped=DROPPED["message"])
        return None
    return key, rewritten


def rewrite(message: bytes, *, queue: str = QUEUE) -> bytes | None:
    """An envelope of our own with the task and the id of `message`; None if these cannot be read."""
    if len(message) > LONGEST_MESSAGE:
        return None
    try:
        envelope = json.loads(message)
        task = envelope["headers"]["task"]
        arguments = _ARGUMENTS[task](json.loads(base64.b64decode(envelope["body"]))[0])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return json.dumps(_envelope(task, arguments, queue)).encode()


def _job_id(arguments: Sequence[str]) -> list[str]:
    return [str(UUID(arguments[0]))]


_ARGUMENTS: dict[str, Callable[[Sequence[str]], list[str]]] = {RUN: _job_id, CANARY: lambda _: []}


def _envelope(task: str, arguments: list[str], queue: str) -> dict[str, Any]:
    name = str(uuid4())
    return {
        "body": base64.b64encode(json.dumps([arguments, {}, {}]).encode()).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": task, "id": name, "root_id": name},
        "properties": {
            "body_encoding": "base64",
            "correlation_id": name,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "delivery_tag": name,
        },
    }


def mend(celery: Celery) -> bool:
    """Delete what stands on the broker under a name of ours and is of another type: no message passes it.

    False if the broker does not take part.
    """
    try:
        with celery.pool.acquire(block=True, timeout=celery.conf.broker_pool_acquire_timeout) as connection:
            _mend(connection.default_channel)
    except Exception as error:  # noqa: BLE001 - every transport has its own
        log.warning("broker_silent", reason=type(error).__name__)
        return False
    return True


def _mend(channel: Channel) -> None:
    with channel.conn_or_acquire() as client:
        for key, right in channel.types().items():
            if dropped := client.eval(DROP_OTHER_TYPE, 1, key, right):
                DROPPED["key"] += 1
                log.warning("key_dropped", key=key, type=dropped.decode())
