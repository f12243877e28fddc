"""Bounded, early, and nothing lost on the way: who may predict."""

import asyncio
import threading

import pytest

from app.errors import DeadlineExceeded, Overloaded
from app.services.prediction_admission import Admission
from app.settings import Settings


@pytest.fixture
def admission():
    made = Admission(Settings(max_predictions=4, predict_threads=1, max_waiting_predictions=1))
    yield made
    made.close()


async def predict(admission, call, *, large=True, seconds=None):
    async with admission.enter(seconds) as place:
        return await place.run(call, large=large)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_small_one_runs_on_the_loop_and_a_large_one_in_a_thread(admission):
    here = threading.get_ident()
    assert asyncio.run(predict(admission, threading.get_ident, large=False)) == here
    assert asyncio.run(predict(admission, threading.get_ident, large=True)) != here
    assert (admission.inside, admission.large) == (0, 0)


def test_large_ones_beyond_the_queue_are_refused_while_small_ones_go_on(admission):
    gate = threading.Event()

    async def load():
        taken = [asyncio.create_task(predict(admission, gate.wait)) for _ in range(2)]
        await settle()
        with pytest.raises(Overloaded) as refused:
            await predict(admission, gate.wait)
        assert int(refused.value.headers["Retry-After"]) > 0
        assert await predict(admission, lambda: 7, large=False) == 7
        gate.set()
        assert await asyncio.gather(*taken) == [True, True]
        assert await predict(admission, lambda: 8) == 8

    asyncio.run(load())
    assert (admission.inside, admission.large) == (0, 0)


def test_everyone_beyond_the_bound_is_refused_before_any_work(admission):
    async def load():
        leave = asyncio.Event()

        async def stay():
            async with admission.enter():
                await leave.wait()

        waiting = [asyncio.create_task(stay()) for _ in range(4)]
        await settle()
        with pytest.raises(Overloaded):
            await predict(admission, pytest.fail, large=False)
        leave.set()
        await asyncio.gather(*waiting)
        assert await predict(admission, lambda: 1, large=False) == 1

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

    for large in (True, False):
        with pytest.raises(KeyError):
            asyncio.run(predict(admission, fail, large=large, seconds=5))
    assert (admission.inside, admission.large) == (0, 0)
