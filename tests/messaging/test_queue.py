"""The broker is a hint: whatever state it is in, nobody waits for it and nothing breaks."""

import signal
import threading
from uuid import uuid4

import pytest

from app.messaging.broker import DROPPED, QUEUE, RUN, mend
from app.messaging.queue import depth, make_celery, publish


@pytest.fixture
def celery(settings):
    from pydantic import SecretStr

    own = SecretStr(settings.broker_url.get_secret_value() + "?virtual_host=15")
    made = make_celery(settings.model_copy(update={"broker_url": own}))
    with made.connection_for_write() as connection:
        connection.default_channel.client.flushdb()
    yield made
    made.close()


def result_of(call, *arguments):
    """What `call` returns; a call that hangs is a failure, not a hang."""
    got = []
    thread = threading.Thread(target=lambda: got.append(call(*arguments)), daemon=True)
    thread.start()
    thread.join(30)
    assert got, "it hangs"
    return got[0]


def test_a_message_is_the_id_and_nothing_else(celery):
    job_id = uuid4()
    assert publish(celery, job_id)
    with celery.connection_for_read() as connection:
        message = connection.default_channel.basic_get("valiant", no_ack=True)
    assert message.content_type == "application/json"
    assert message.headers["task"] == RUN
    assert message.payload[:2] == [[str(job_id)], {}]


def test_messages_are_counted(celery):
    assert depth(celery) == 0
    for _ in range(3):
        publish(celery, uuid4())
    assert depth(celery) == 3


def test_a_key_of_another_type_makes_room_for_the_queue_and_a_queue_stays(celery):
    before = DROPPED["key"]
    with celery.connection_for_write() as connection:
        client = connection.default_channel.client
        client.set(QUEUE, "x")
        assert mend(celery)
        assert publish(celery, uuid4())
        assert mend(celery)
    assert DROPPED["key"] == before + 1
    assert depth(celery) == 1


def test_a_queue_that_takes_the_place_of_such_a_key_meanwhile_is_never_deleted(celery):
    over, lost = threading.Event(), []

    def look():
        while not over.is_set():
            mend(celery)

    looking = threading.Thread(target=look)
    looking.start()
    with celery.connection_for_write() as connection:
        client = connection.default_channel.client
        for number in range(300):
            client.set(QUEUE, "x")
            with client.pipeline() as pipe:
                _, _, held = pipe.delete(QUEUE).lpush(QUEUE, "message").llen(QUEUE).execute()
            assert held == 1
            client.ping()
            lost += [number] * (client.delete(QUEUE) == 0)
    over.set()
    looking.join()
    assert lost == []


def test_a_broker_that_is_gone_hung_or_back(stack_factory):
    stack = stack_factory()
    celery, broker = make_celery(stack.settings), stack.servers["broker"]
    assert result_of(publish, celery, uuid4())

    broker.process.send_signal(signal.SIGSTOP)
    assert result_of(publish, celery, uuid4()) is False
    assert result_of(depth, celery) is None
    broker.process.send_signal(signal.SIGCONT)

    broker.kill()
    assert result_of(publish, celery, uuid4()) is False
    assert result_of(depth, celery) is None

    broker.start()
    assert result_of(publish, celery, uuid4())
    assert result_of(depth, celery) >= 1
    celery.close()


def test_nothing_but_json_is_read_and_nothing_is_late(celery):
    conf = celery.conf
    assert conf.accept_content == ["json"]
    assert not conf.task_acks_late
    assert conf.task_ignore_result
    assert conf.broker_connection_max_retries is None
    assert conf.worker_prefetch_multiplier == 1


def test_without_an_address_it_says_which_variable(settings):
    with pytest.raises(ValueError, match="VALIANT_BROKER_URL"):
        make_celery(settings.model_copy(update={"broker_url": None}))
