"""A head whose one changing line stands at a known place gives what it gives to a cache that knows no place."""

import itertools

import pytest

from app.api.edge.middleware import Own
from app.api.fast.head_cache import HeadCache, PreparedRequest

BEGIN = b"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost"
SOUND = [b"traceparent: 00-%032x-%016x-01" % (number, number) for number in (1, 2)]
LINES = [
    *SOUND,
    b"Traceparent:" + SOUND[0].partition(b":")[2] + b"",
    SOUND[0].replace(b"00-", b"ff-"),
    SOUND[0].replace(b"1-01", b"1\r\n1"),
    SOUND[0].replace(b"1-01", b"1-0\x7f"),
    b"traceparent: " + b"0" * (len(SOUND[0]) - 13),
    b"x-request-id: " + b"a" * (len(SOUND[0]) - 14),
    b"x-request-id: " + b" " * (len(SOUND[0]) - 14),
    b"X-Forwarded-For: " + b"1" * (len(SOUND[0]) - 17),
    b"x-unknown: " + b"1" * (len(SOUND[0]) - 11),
]
"""All of one length."""
HEADS = [
    b"\r\n".join([BEGIN, *lines, b"", b""]) for count in (1, 2) for lines in itertools.product(LINES, repeat=count)
]


def found(cache, head):
    """What is the same for the head, and what is the request's own."""
    prepared = cache[head]
    fields = getattr(prepared.process, "keywords", {}).get("fields")
    return prepared.size, fields and Own(*fields)


def fresh():
    return HeadCache(lambda rest: PreparedRequest(hash(rest), 0, print))


@pytest.mark.parametrize("first", SOUND + LINES[7:8])
def test_a_known_place_changes_nothing(first):
    cache = fresh()
    assert {len(line) for line in LINES} == {len(first)}
    assert found(cache, b"\r\n".join([BEGIN, first, b"", b""]))[1] is not None
    for head in HEADS:
        assert found(cache, head) == found(fresh(), head), head


def test_a_known_place_is_used():
    cache, looked = fresh(), []
    heads = [b"\r\n".join([BEGIN, line, b"", b""]) for line in SOUND]
    cache[heads[0]]
    cache._find = looked.append
    assert found(cache, heads[1])[1].trace_id == f"{2:032x}"
    assert looked == []
