"""Callers whose rows are computed together cannot tell: the same bits, their own faults, their own time."""

import asyncio
import threading
from types import SimpleNamespace
from uuid import uuid4

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import DeadlineExceeded
from app.base.settings import Settings
from app.main import create_app
from app.ml.models.model import Predicted, decode
from app.services.predictions.batching import Batching
from app.services.predictions.prediction_admission import Admission

MOST = 8


class Counted:
    """A model that says how many rows it gets at a time, and fails for rows of -1."""

    algorithm = SimpleNamespace(rowwise=True)

    def __init__(self, model=None):
        self.model, self.sizes = model, []

    def predict_raw(self, raw):
        self.sizes.append(len(raw))
        if self.model is None and (raw == -1).any():
            raise ArithmeticError
        return Predicted(raw[:, 0], None, None, ()) if self.model is None else self.model.predict_raw(raw)


def batching(wait=0.0, rows=MOST):
    return Batching(Settings(batch_rows=rows, batch_wait_seconds=wait))


def nothing():
    pass


def same(one, other):
    assert one.values.tobytes() == other.values.tobytes()
    assert one.predictions == other.predictions
    assert (one.probabilities is None) == (other.probabilities is None)
    if one.probabilities is not None:
        assert one.probabilities.tobytes() == other.probabilities.tobytes()
    result = [[(flag.code, flag.column, flag.rows.tolist()) for flag in each.flags] for each in (one, other)]
    assert result[0] == result[1]
    assert (one.unknown is None) == (other.unknown is None)


MODELS = [("logistic", "species"), ("ridge", "size"), ("linear", "length"), ("decision_tree", "species")]


@pytest.mark.parametrize(("algorithm", "target"), MODELS)
@settings(max_examples=25)
@given(drawn=st.data())
def test_the_same_bits_as_alone(trained, algorithm, target, drawn):
    model = decode(trained(algorithm, target).blob)
    odd = st.sampled_from([0.0, -0.0, 1e-300, 1e300, float("nan"), 1.0])
    cells = st.one_of(odd, st.floats(-10, 10))
    codes = [len(column.levels or ()) for column in model.inputs]
    row = st.tuples(*(st.sampled_from([-1.0, *map(float, range(n)), float("nan")]) if n else cells for n in codes))
    requests = drawn.draw(st.lists(st.lists(row, min_size=1, max_size=5), min_size=1, max_size=9))
    counted, together = Counted(model), batching(rows=16)
    raws = [np.array(rows) for rows in requests]

    async def crowd():
        return await asyncio.gather(*(together.predict(counted, raw, nothing) for raw in raws))

    for raw, response in zip(raws, asyncio.run(crowd()), strict=True):
        same(response, model.predict_raw(raw))
    assert max(counted.sizes) <= 16
    assert len(counted.sizes) <= 1 + sum(map(len, raws)) // 11  # full but for less than the largest request


def test_only_algorithms_that_promise_it_are_batched(trained):
    assert batching().takes(decode(trained("logistic").blob))
    assert not batching(rows=0).takes(decode(trained("logistic").blob))
    assert not batching().takes(decode(trained("kmeans", None).blob))


def test_one_turn_of_the_loop_is_one_computation_and_nobody_waits_longer():
    model, together = Counted(), batching()

    async def crowd():
        first = [asyncio.create_task(together.predict(model, np.full((1, 1), i), nothing)) for i in range(5)]
        found = await asyncio.gather(*first)
        await together.predict(model, np.zeros((1, 1)), nothing)
        return found

    assert [one.values.tolist() for one in asyncio.run(crowd())] == [[i] for i in range(5)]
    assert model.sizes == [5, 1]


@given(sizes=st.lists(st.integers(1, MOST + 3), min_size=1, max_size=12))
def test_no_batch_is_larger_than_it_may(sizes):
    model, together = Counted(), batching()

    async def crowd():
        requested = (together.predict(model, np.full((n, 1), i), nothing) for i, n in enumerate(sizes))
        return await asyncio.gather(*requested)

    for i, (n, one) in enumerate(zip(sizes, asyncio.run(crowd()), strict=True)):
        assert one.values.tolist() == [i] * n
    assert sum(model.sizes) == sum(sizes)
    assert all(size <= MOST or size in sizes for size in model.sizes)
    assert not together._open


def test_a_batch_waits_no_longer_than_it_may_and_not_once_it_is_full():
    model, together = Counted(), batching(wait=3600)

    async def crowd():
        early = asyncio.create_task(together.predict(model, np.zeros((1, 1)), nothing))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not early.done()
        timer = together._open[id(model)].timer
        assert timer.when() <= asyncio.get_running_loop().time() + 3600
        await asyncio.gather(early, *(together.predict(model, np.zeros((1, 1)), nothing) for _ in range(MOST - 1)))
        assert timer.cancelled()

    asyncio.run(crowd())
    assert model.sizes == [MOST]


def test_models_do_not_mix():
    one, other, together = Counted(), Counted(), batching()

    async def crowd():
        await asyncio.gather(*(together.predict(model, np.zeros((1, 1)), nothing) for model in (one, other, one)))

    asyncio.run(crowd())
    assert (one.sizes, other.sizes) == ([2], [1])


def test_whoever_hangs_up_is_not_computed_and_takes_nobody_along():
    model, together, begun = Counted(), batching(wait=0.02), []

    async def crowd():
        tasks = [
            asyncio.create_task(together.predict(model, np.full((1, 1), i), lambda i=i: begun.append(i)))
            for i in range(3)
        ]
        await asyncio.sleep(0)
        tasks[1].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[1], asyncio.CancelledError)
        assert [found[i].values.tolist() for i in (0, 2)] == [[0], [2]]

    asyncio.run(crowd())
    assert (model.sizes, begun) == ([2], [0, 2])


def test_everybody_hung_up():
    model, together = Counted(), batching(wait=0.01)

    async def crowd():
        task = asyncio.create_task(together.predict(model, np.zeros((1, 1)), nothing))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0.03)

    asyncio.run(crowd())
    assert model.sizes == []
    assert not together._open


def test_one_callers_failure_is_his_alone():
    model, together = Counted(), batching()

    async def crowd():
        requested = (together.predict(model, np.full((2, 1), value), nothing) for value in (1, -1, 3))
        return await asyncio.gather(*requested, return_exceptions=True)

    good, bad, other = asyncio.run(crowd())
    assert (good.values.tolist(), other.values.tolist()) == ([1, 1], [3, 3])
    assert isinstance(bad, ArithmeticError)


def test_one_callers_deadline_is_his_alone_and_stops_when_it_is_computed():
    model, together = Counted(), batching(wait=0.2)
    admission = Admission(Settings())

    async def ask(value, seconds):
        async with admission.enter(seconds) as place:
            return await together.predict(model, np.full((1, 1), value), place.begin)

    async def crowd():
        found = await asyncio.gather(ask(1, None), ask(2, 0.01), ask(3, 60), return_exceptions=True)
        assert [found[0].values.tolist(), found[2].values.tolist()] == [[1], [3]]
        assert isinstance(found[1], DeadlineExceeded)

    asyncio.run(crowd())
    assert model.sizes == [2]
    assert admission.inside == 0
    admission.close()


@pytest.fixture(scope="module")
def name(services, publish):
    made = f"b-{uuid4()}"
    publish(services.work, made)
    return made


def test_over_http_every_caller_gets_what_he_would_get_alone(settings, name):
    """Bad rows, bad JSON, other parameters and good requests at once: each has the very response it has alone."""
    rows = [{"length": 4 + i / 7, "width": i / 9, "size": "small" if i % 3 else "unheard of"} for i in range(12)]
    bodies = [{"rows": rows[i : i + 1 + i % 3]} for i in range(12)]
    bodies += [{"rows": [{"length": "no", "width": 1, "size": "small"}]}, {"rows": [{"width": 1}]}, {"rows": []}]
    queries = ["", "?on_error=null", "?version=1", "?version=7"]
    requested = [(body, query) for body in bodies for query in queries]

    def decoded(response):
        body = {key: value for key, value in response.json().items() if key not in {"request_id", "instance"}}
        return response.status_code, body

    async def predictions_of(batch_rows, at_once):
        own = settings.model_copy(update={"batch_rows": batch_rows, "batch_wait_seconds": 0.005})
        app = create_app(own)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
        ):
            limit = asyncio.Semaphore(at_once)

            async def one(body, query):
                async with limit:
                    return decoded(await client.post(f"/v1/models/{name}/predict{query}", json=body))

            return await asyncio.gather(*(one(*each) for each in requested))

    alone, together = asyncio.run(predictions_of(0, 1)), asyncio.run(predictions_of(16, 60))
    assert together == alone
    assert {status for status, _ in alone} == {200, 404, 422}


def test_no_thread_is_needed():
    before, model = threading.active_count(), Counted()
    asyncio.run(batching().predict(model, np.zeros((1, 1)), nothing))
    assert threading.active_count() == before
