"""Encoded models in Redis, by digest. It saves time or does nothing: it never raises and is never believed.

The key is the hash of the value, so a value is either right or a miss: swapped keys, flipped
bits and cut values are all found before anything is decoded. Nothing here needs invalidating.
"""

import hashlib
from collections.abc import Callable
from typing import TypeVar

import structlog
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from app.base.settings import Settings
from app.store.base.circuit_breaker import Breaker

T = TypeVar("T")
log = structlog.get_logger()
KEPT_SECONDS = 86_400
"""Unused bytes leave a Redis that evicts nothing by itself."""


class Cache:
    """Without an address, or while Redis fails, every `get` is a miss and every `put` is nothing."""

    def __init__(self, settings: Settings) -> None:
        self._largest = settings.cache_value_bytes
        self._breaker = Breaker()
        self._redis = None if settings.cache_url is None else _client(settings.cache_url.get_secret_value(), settings)

    def get(self, digest: str, size_bytes: int) -> bytes | None:
        """The bytes of that digest and length, or None."""
        if size_bytes > self._largest:
            return None
        # One byte more than requested, at most: a foreign value of any size is seen to be too long.
        payload = self.attempt(lambda redis: redis.getrange(_key(digest), 0, size_bytes))
        if not isinstance(payload, bytes) or len(payload) != size_bytes:
            return None
        if f"sha256:{hashlib.sha256(payload).hexdigest()}" != digest:
            log.warning("cache_corrupt", digest=digest)
            return None
        return payload

    def put(self, digest: str, blob: bytes) -> None:
        if len(blob) <= self._largest:
            self.attempt(lambda redis: redis.set(_key(digest), blob, ex=KEPT_SECONDS))

    def reachable(self) -> bool:
        return bool(self.attempt(lambda redis: redis.ping()))

    def close(self) -> None:
        if self._redis is not None:
            self._redis.close()

    def attempt(self, call: Callable[[Redis], T]) -> T | None:
        """Result of the call; None without Redis, and where it fails."""
        if self._redis is None or not self._breaker.allows():
            return None
        try:
            response = call(self._redis)
        except ResponseError as error:  # it responds at once, only not as wished: full, or another kind of value
            self._breaker.succeeded()
            log.warning("cache_refused", error=type(error).__name__)
            return None
        except Exception as error:  # noqa: BLE001  whatever a dead, slow or foreign server may cause is a miss
            self._breaker.failed()
            log.warning("cache_failed", error=type(error).__name__)
            return None
        self._breaker.succeeded()
        return response


def _key(digest: str) -> str:
    return f"valiant:model:{digest}"


def _client(url: str, settings: Settings) -> Redis:
    """Every default that could make a caller wait is stated: redis-py would retry for seconds."""
    return Redis.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=settings.cache_timeout_seconds,
        socket_connect_timeout=settings.cache_timeout_seconds,
        health_check_interval=0,
        protocol=2,
        decode_responses=False,
    )
