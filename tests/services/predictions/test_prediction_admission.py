"""Bounded, early, and nothing lost on the way: who may predict."""

import asyncio
import threading

import pytest

from app.base.errors import DeadlineExceeded, Overloaded
from app.base.settings import Settings
from app.services.predictions.prediction_admission import MAX_WAIT_SECONDS, Admission


@pytest.fixture
def admission():
    made = Admission(Settings(max_predictions=4, predict_threads=1, max_waiting_predictions=1))
    yield made
    made.close()


async def predict(admission, call, *, cost=None, seconds=None):
    """cost: seconds that a small one takes; null: it is large."""
    async with admission.enter(seconds) as place:
        return await place.run(call, seconds=cost)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_predictions_run_in_a_thread(admission):
    for cost in (None, 0.1):
        assert asyncio.run(predict(admission, threading.get_ident, cost=cost)) != threading.get_ident()
    assert (admission.inside, admission.large, admission.small_seconds) == (0, 0, 0)


def test_large_ones_beyond_the_queue_are_refused_while_small_ones_go_on(admission):
    gate = threading.Event()

    async def load():
        taken = [asyncio.create_task(predict(admission, gate.wait)) for _ in range(2)]
        await settle()
        with pytest.raises(Overloaded) as refused:
            await predict(admission, gate.wait)
        assert int(refused.value.headers["Retry-After"]) > 0
        taken.append(asyncio.create_task(predict(admission, gate.wait, cost=0.1)))
        await settle()
        gate.set()
        assert await asyncio.gather(*taken) == [True] * 3
        assert await predict(admission, lambda: 8) == 8

    asyncio.run(load())
    assert (admission.inside, admission.large) == (0, 0)


def test_small_ones_wait_while_their_turn_comes_soon(admission):
    gate = threading.Event()

    async def load():
        taken = [asyncio.create_task(predict(admission, gate.wait, cost=MAX_WAIT_SECONDS / 2)) for _ in range(2)]
        await settle()
        with pytest.raises(Overloaded) as refused:
            await predict(admission, gate.wait, cost=0.001)
        assert int(refused.value.headers["Retry-After"]) > 0
        taken.append(asyncio.create_task(predict(admission, gate.wait)))  # a large one has a place of its own
        await settle()
        gate.set()
        assert await asyncio.gather(*taken) == [True] * 3
        assert await predict(admission, lambda: 8, cost=0.001) == 8

    asyncio.run(load())
    assert (admission.inside, admission.large, admission.small_seconds) == (0, 0, 0)


def test_everyone_beyond_the_bound_is_refused_before_any_work(admission):
    async def load():
        leave = asyncio.Event()

        async def stay():
            async with admission.enter():
                await leave.wait()

        waiting = [asyncio.create_task(stay()) for _ in range(4)]
        await settle()
        with pytest.raises(Overloaded):
            await predict(admission, pytest.fail, cost=0.001)
        leave.set()
        await asyncio.gather(*waiting)
        assert await predict(admission, lambda: 1, cost=0.001) == 1

    asyncio.run(load())


def test_whoever_cannot_begin_in_time_is_refused_and_never_runs(admission):
    gate, ran = threading.Event(), []

    async def load():
        first = asyncio.create_task(predict(admission, gate.wait))
        await settle()
        with pytest.raises(DeadlineExceeded):
            await predict(admission, lambda: ran.append(1), seconds=0.01)
        assert (admission.inside, admission.large) == (1, 1)
        gate.set()
        await first

    asyncio.run(load())
    assert ran == []


def test_a_model_that_is_not_there_in_time_is_a_deadline_too(admission):
    async def cold():
        async with admission.enter(0.01):
            await asyncio.Event().wait()

    with pytest.raises(DeadlineExceeded):
        asyncio.run(cold())
    assert admission.inside == 0


def test_what_has_begun_is_finished_past_its_deadline(admission):
    gate = threading.Event()

    async def load():
        task = asyncio.create_task(predict(admission, gate.wait, seconds=0.01))
        await asyncio.sleep(0.05)
        gate.set()
        return await task

    assert asyncio.run(load())


def test_a_caller_who_leaves_does_not_free_a_thread_that_still_works(admission):
    gate, order = threading.Event(), []

    async def load():
        first = asyncio.create_task(predict(admission, gate.wait))
        await settle()
        first.cancel()
        second = asyncio.create_task(predict(admission, lambda: order.append("second")))
        await settle()
        assert admission.large == 2
        with pytest.raises(Overloaded):
            await predict(admission, gate.wait)
        gate.set()
        await second

    asyncio.run(load())
    assert order == ["second"]
    assert (admission.inside, admission.large) == (0, 0)


def test_a_failure_is_the_callers_and_leaves_no_trace(admission):
    def fail():
        raise KeyError("once")

    for cost in (None, 0.1):
        with pytest.raises(KeyError):
            asyncio.run(predict(admission, fail, cost=cost, seconds=5))
    assert (admission.inside, admission.large, admission.small_seconds) == (0, 0, 0)
