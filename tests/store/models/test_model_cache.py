"""The cache on a real Redis that is healthy, dead, stuck, full or full of lies."""

import hashlib
import os
import signal

import pytest
from pydantic import SecretStr
from redis import Redis

from app.base.settings import Settings
from app.embedded.stack import Stack
from app.store.models.model_cache import Cache

SIZE = 5000
ELSEWHERE = SecretStr("not started here")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A Redis for caching only: the other servers are reported to be elsewhere."""
    folder = tmp_path_factory.mktemp("cache")
    given = Settings(data=folder, database_url=ELSEWHERE, broker_url=ELSEWHERE, cache_memory_bytes=64 << 20)
    with Stack(given) as stack:
        yield stack


@pytest.fixture
def redis(server):
    client = Redis.from_url(server.settings.cache_url.get_secret_value())
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def cache(server, redis):
    opened = Cache(server.settings)
    yield opened
    opened.close()


@pytest.fixture
def blob():
    return os.urandom(SIZE)


def digest(blob):
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def get(cache, blob):
    return cache.get(digest(blob), len(blob))


def test_what_was_put_is_got(cache, blob):
    assert get(cache, blob) is None
    cache.put(digest(blob), blob)
    assert get(cache, blob) == blob


def test_unused_bytes_leave_in_the_end(cache, redis, blob):
    cache.put(digest(blob), blob)
    (key,) = redis.keys()
    assert 0 < redis.ttl(key) <= 86_400


def lie(redis, key, blob, how):
    match how:
        case "bit":
            redis.set(key, bytes([blob[0] ^ 1]) + blob[1:])
        case "last bit":
            redis.set(key, blob[:-1] + bytes([blob[-1] ^ 128]))
        case "short":
            redis.set(key, blob[:-1])
        case "long":
            redis.set(key, blob + b"\0")
        case "enormous":
            redis.setrange(key, 30 << 20, b"x")
        case "empty":
            redis.set(key, b"")
        case "other kind":
            redis.delete(key)
            redis.rpush(key, blob)
        case "swapped":
            other = os.urandom(SIZE)
            redis.set(key, other)


@pytest.mark.parametrize("how", ["bit", "last bit", "short", "long", "enormous", "empty", "other kind", "swapped"])
def test_a_lie_is_a_miss_and_is_overwritten(cache, redis, blob, how):
    cache.put(digest(blob), blob)
    (key,) = redis.keys()
    lie(redis, key, blob, how)
    assert get(cache, blob) is None
    cache.put(digest(blob), blob)
    assert get(cache, blob) == blob


def test_large_values_stay_out(server, redis, blob):
    cache = Cache(server.settings.model_copy(update={"cache_value_bytes": SIZE - 1}))
    cache.put(digest(blob), blob)
    assert redis.dbsize() == 0
    Cache(server.settings).put(digest(blob), blob)
    assert get(cache, blob) is None


def test_a_full_redis_is_tried_again(cache, redis, blob):
    redis.config_set("maxmemory", "1kb")  # less than it holds already
    redis.config_set("maxmemory-policy", "noeviction")
    try:
        for _ in range(5):
            cache.put(digest(blob), blob)
            assert get(cache, blob) is None
        assert cache._breaker.allows()
    finally:
        redis.config_set("maxmemory", "64mb")
        redis.config_set("maxmemory-policy", "allkeys-lfu")
    cache.put(digest(blob), blob)
    assert get(cache, blob) == blob


def opens_after_three(cache, blob):
    for requested in range(3):
        assert cache._breaker._failures == requested
        assert get(cache, blob) is None
    assert not cache._breaker.allows()
    cache.put(digest(blob), blob)
    assert get(cache, blob) is None
    assert cache._breaker._failures == 3  # nothing was sent


def test_a_stuck_redis_is_left_alone(server, cache, blob):
    cache.put(digest(blob), blob)
    pid = server.servers["cache"].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        opens_after_three(cache, blob)
    finally:
        os.kill(pid, signal.SIGCONT)
    cache._breaker._closed_at = 0.0  # as if the time were over
    assert get(cache, blob) == blob
    assert cache._breaker._failures == 0


def test_a_dead_redis_is_left_alone(server, cache, blob):
    get(cache, blob)  # a connection that will turn out to be dead
    server.servers["cache"].kill()
    try:
        opens_after_three(cache, blob)
    finally:
        server.servers["cache"].start()
    cache._breaker._closed_at = 0.0
    cache.put(digest(blob), blob)
    assert get(cache, blob) == blob


@pytest.mark.parametrize("url", [None, "redis://127.0.0.1:1/0", "unix:///nowhere/at/all.sock"])
def test_no_redis_at_all(server, blob, url):
    address = None if url is None else SecretStr(url)
    cache = Cache(server.settings.model_copy(update={"cache_url": address}))
    for _ in range(5):
        cache.put(digest(blob), blob)
        assert get(cache, blob) is None
    cache.close()


def test_something_else_at_the_address(server, blob):
    """A server that responds, but not as Redis does."""
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def babble():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"$12abc\r\nHTTP/1.1 400\r\n" * 3)

        threading.Thread(target=babble, daemon=True).start()
        url = SecretStr(f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
        cache = Cache(server.settings.model_copy(update={"cache_url": url}))
        for _ in range(4):
            cache.put(digest(blob), blob)
            assert get(cache, blob) is None
        cache.close()
