"""The broker is an input: whatever lies on it, a real job is done."""

import base64
import json
import time
from queue import Empty
from uuid import uuid4

import pytest
from redis import Redis

from app.messaging.broker import QUEUE, RUN, rewrite
from app.schemas.jobs import JobState


def body(*arguments):
    return base64.b64encode(json.dumps([list(arguments), {}, {}]).encode()).decode()


def envelope(*without, **changes):
    """A message as Celery writes it, for a job that never was; `without` some members, with others changed."""
    name = str(uuid4())
    whole = {
        "body": body(str(uuid4())),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": RUN, "id": name},
        "properties": {
            "correlation_id": name, "delivery_tag": name, "body_encoding": "base64", "priority": 0,
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
        },
    } | changes  # fmt: skip
    return json.dumps({key: value for key, value in whole.items() if key not in without}).encode()


DAMAGED = {
    "nothing": b"",
    "text that is no JSON": b"hello",
    "an envelope that is text": b'"hello"',
    "a number": b"7",
    "null": b"null",
    "a list": b"[1, 2]",
    "half an envelope": envelope()[:100],
    "bytes that are no text": b"\xff\xfe\x00\x80" * 8,
    "deep nesting": b"[" * 50_000,
    "no headers": envelope("headers"),
    "headers that are text": envelope(headers="task"),
    "a task nobody knows": envelope(headers={"task": "os.system", "id": "1"}),
    "a task that is a list": envelope(headers={"task": [RUN], "id": "1"}),
    "no body": envelope("body"),
    "a body that is a number": envelope(body=5),
    "a body that is no base64": envelope(body="%%%"),
    "a body that is no JSON": envelope(body=base64.b64encode(b"{").decode()),
    "a body that is an object": envelope(body=base64.b64encode(b'{"args": 1}').decode()),
    "no id": envelope(body=body()),
    "an id that is no UUID": envelope(body=body("seven")),
    "an id that is an object": envelope(body=body({"id": 1})),
    "a megabyte": envelope(more="x" * (1 << 20)),
}
ODD = {
    "no properties": envelope("properties"),
    "properties that are text": envelope(properties="none"),
    "a header that is no time": envelope(headers={"task": RUN, "id": "1", "eta": "soon", "expires": "never"}),
    "headers of other types": envelope(headers={"task": RUN, "id": {}, "retries": "x", "timelimit": 5, "stamps": 1}),
    "another type of content": envelope(**{"content-type": "application/x-python-serialize"}),
    "compression nobody knows": envelope(headers={"task": RUN, "id": "1", "compression": "x-none"}),
}
"""Kombu or Celery stumble over these; for us they name a task and an id."""


@pytest.fixture
def raw(fleet):
    """A plain connection to the broker of the fleet."""
    address = fleet.settings.broker_url.get_secret_value()
    with Redis.from_url(address.replace("redis+socket", "unix").replace("virtual_host", "db")) as connected:
        yield connected


def succeeds(fleet, worker, **how):
    job = fleet.ended(fleet.submit(**how))
    assert job.state is JobState.SUCCEEDED, job
    assert worker.alive


@pytest.fixture(scope="module")
def worker(fleet):
    return fleet.start()


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_message_is_no_message(kind):
    assert rewrite(DAMAGED[kind]) is None


@pytest.mark.parametrize("kind", ODD)
def test_of_an_odd_message_only_task_and_id_are_kept(kind):
    kept = json.loads(rewrite(ODD[kind]))
    assert kept["headers"]["task"] == RUN
    assert json.loads(base64.b64decode(kept["body"])) == json.loads(base64.b64decode(json.loads(ODD[kind])["body"]))


def test_damaged_messages_delay_no_job(fleet, worker, raw):
    raw.lpush(QUEUE, *DAMAGED.values(), *ODD.values())
    succeeds(fleet, worker)
    assert f'"dropped":{len(DAMAGED)}' in worker.logfile.read_text().replace(" ", "")


@pytest.mark.parametrize("key", [QUEUE, f"_kombu.binding.{QUEUE}"])
def test_a_key_of_another_type_delays_no_job(fleet, worker, raw, key):
    raw.delete(key)
    raw.set(key, "taken")
    succeeds(fleet, worker)


@pytest.mark.parametrize("key", [QUEUE, f"_kombu.binding.{QUEUE}", "unacked", "unacked_index"])
def test_a_key_that_is_taken_again_and_again_ends_no_worker(fleet, worker, raw, key):
    for _ in range(300):
        raw.delete(key)
        raw.set(key, "taken")
        time.sleep(0.001)
    succeeds(fleet, worker)


def test_a_key_of_another_type_does_not_end_a_worker_that_waits_for_a_message(fleet, raw):
    """It may come just before the worker waits."""
    with fleet.services.celery.connection() as connection, connection.channel() as channel:
        raw.delete(QUEUE)
        raw.set(QUEUE, "taken")
        channel._active_queues.append(QUEUE)
        channel._queue_cycle.update([QUEUE])
        channel.client.connection = channel.client.connection_pool.get_connection()
        channel._brpop_start()
        with pytest.raises(Empty):
            channel._brpop_read()
        assert raw.type(QUEUE) == b"none"


def test_unknown_ids_delay_no_job(fleet, worker, raw):
    raw.lpush(QUEUE, *(envelope() for _ in range(20_000)))
    succeeds(fleet, worker)
    assert raw.llen(QUEUE) > 10_000
    raw.delete(QUEUE)


def test_a_job_nobody_announced_is_done_behind_many_messages(fleet, worker, raw):
    raw.lpush(QUEUE, *(envelope() for _ in range(5_000)))
    succeeds(fleet, worker, announce=False)
    assert raw.llen(QUEUE) > 1_000
    raw.delete(QUEUE)
