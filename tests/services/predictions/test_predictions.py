"""Predictions from memory, Redis and Postgres: the time differs, never the response."""

import asyncio
import dataclasses
import os
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import orjson
import pytest
from redis import Redis
from sqlalchemy import event, select, text

from app.base.errors import (
    AliasNotFound,
    CorruptModel,
    GoldenMismatch,
    InvalidData,
    InvalidRequest,
    ModelNotFound,
    VersionNotFound,
)
from app.ml.contract.model_reference import VersionRef
from app.ml.models.model import decode, encode
from app.ml.numerics import jit
from app.ml.tables.rows import read_rows
from app.services.predictions.model_loading import StoredModels
from app.services.predictions.pointer_cache import Pointers
from app.services.predictions.prediction_counts import Tally
from app.services.predictions.predictions import (
    LOADS,
    MEASURED_SHARE,
    SMALL_BODY,
    SMALL_MODEL,
    SMALL_SECONDS,
    Predictions,
)
from app.store.engine import make_engine
from app.store.models.model_cache import Cache
from app.store.models.model_tables import ModelChunkRow, ModelVersionRow
from app.store.unit_of_work import WorkFactory

MOST = 1_000_000


def from_store(work, cache, settings):
    """Predictions of a process on these servers, as `app.composition.wiring` builds them."""
    tally, pointers = Tally(), Pointers(work, settings.pointer_seconds, settings.stale_seconds)
    return Predictions(pointers, StoredModels(work, cache, tally).load, settings, tally)


@pytest.fixture
def name():
    return f"p-{uuid4()}"


@pytest.fixture
def process(services):
    """`process(**settings)`: predictions with nothing in memory, as in another process."""
    caches = []

    def start(**changed):
        settings = services.settings.model_copy(update={"pointer_seconds": 3600.0, **changed})
        caches.append(Cache(settings))
        return from_store(services.work, caches[-1], settings)

    yield start
    for cache in caches:
        cache.close()


@pytest.fixture
def redis(services):
    client = Redis.from_url(services.settings.cache_url.get_secret_value())
    client.flushall()
    yield client
    client.close()


@contextmanager
def statements(engine):
    """The SQL that runs meanwhile."""
    seen = []

    def note(_, __, statement, *___):
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def chunks_read(seen):
    return sum("FROM model_chunks" in statement for statement in seen)


def predict(predictions, name, rows, **expected):
    served = asyncio.run(predictions.serve(name, **expected))
    return predictions.respond(served, read_rows(rows, served.model.inputs, max_rows=MOST)).body


def rows_of(made):
    return {"columns": made.golden["columns"], "data": made.golden["data"]}


@pytest.fixture
def published(services, publish, trained):
    """`published(name, …)`: a new version in the registry; its golden rows, to be predicted."""

    def add(name, **how):
        publish(services.work, name, **how)
        return rows_of(trained(**how))

    return add


@pytest.mark.parametrize(
    ("algorithm", "target"),
    [("logistic", "species"), ("ridge", "length"), ("kmeans", None), ("pca", None), ("decision_tree", "size")],
)
def test_what_was_fitted_is_what_predicts(process, published, trained, algorithm, target):
    name, how = f"p-{uuid4()}", {"algorithm": algorithm, "target": target}
    given = orjson.loads(predict(process(), name, published(name, **how)))
    golden = trained(**how).golden
    assert given["predictions"] == golden["predictions"]
    assert given.get("probabilities") == golden.get("probabilities")


def test_postgres_redis_and_memory_give_the_same_bytes(services, process, redis, published, name):
    first, body = process(), published(name)
    with statements(services.work.engine) as seen:
        from_postgres = predict(first, name, body)
    assert chunks_read(seen) > 1
    assert redis.dbsize() == 1
    with statements(services.work.engine) as seen:
        from_redis = predict(process(), name, body)
    assert chunks_read(seen) == 0
    with statements(services.work.engine) as seen:
        from_memory = predict(first, name, body)
    assert not seen
    assert from_postgres == from_redis == from_memory


def test_a_warm_prediction_asks_nobody(services, process, redis, published, name):
    warm, body = process(), published(name)
    predict(warm, name, body)
    before = redis.info("stats")["total_commands_processed"]
    with statements(services.work.engine) as seen:
        for _ in range(20):
            predict(warm, name, body)
    assert not seen
    assert redis.info("stats")["total_commands_processed"] == before + 1  # the request itself


def test_a_crowd_in_the_cold_loads_once_and_blocks_nobody(services, process, redis, published, name):
    predictions, warm = process(), f"{name}-warm"
    predict(predictions, warm, published(warm, seed=1))
    published(name, seed=2)
    others = [f"{name}-{i}" for i in range(LOADS)]
    for i, other in enumerate(others):
        published(other, seed=3 + i)

    async def crowd(blocker):
        ahead = [asyncio.create_task(predictions.serve(other)) for other in others]  # so that the crowd must queue
        await asyncio.sleep(0.05)
        callers = [asyncio.create_task(predictions.serve(name)) for _ in range(500)]
        for _ in range(100):
            await predictions.serve(warm)
        await asyncio.sleep(0.05)
        assert not any(caller.done() for caller in callers)  # the table is locked
        callers[0].cancel()  # one hangs up
        await asyncio.sleep(0)
        blocker.rollback()
        served = await asyncio.gather(*callers[1:])
        await asyncio.gather(*ahead)
        assert len({id(one.model) for one in served}) == 1

    with services.work.engine.connect() as blocker, statements(services.work.engine) as seen:
        blocker.execute(text("LOCK TABLE model_chunks IN ACCESS EXCLUSIVE MODE"))
        asyncio.run(crowd(blocker))
    sizes = [services.models.version(one, 1).size_bytes for one in (name, *others)]
    assert chunks_read(seen) == sum(-(-size // 1000) for size in sizes)
    assert sum("coalesce" in one for one in seen) == len(sizes)  # the pointers


LARGE = 100_000_000


@pytest.fixture(scope="module")
def large(services, trained):
    """The name of a model of 100 MB: what it does not need to predict has grown."""
    made, name = trained("linear", "length"), f"p-{uuid4()}"
    model = decode(made.blob)
    factor = np.zeros((len(model.state.factor), LARGE // 8 // len(model.state.factor)))
    blob = encode(dataclasses.replace(model, state=model.state._replace(factor=factor)))
    with services.work() as w:
        w.models.add_version(
            model=name, job_id=uuid4(), dataset_id=uuid4(), blob=blob, report=made.report, golden=made.golden,
        )  # fmt: skip
    yield name
    services.models.delete(name)


def test_a_large_model_blocks_nobody_while_it_loads(process, published, large, name):
    predictions, cold = process(model_memory_bytes=2 * LARGE), f"{name}-cold"
    body = published(name)
    predict(predictions, name, body)
    published(cold, seed=1)

    async def meanwhile():
        loading = asyncio.create_task(predictions.serve(large))
        other = asyncio.create_task(predictions.serve(cold))
        done = 0
        while not loading.done():
            served = await predictions.serve(name)
            predictions.respond(served, read_rows(body, served.model.inputs, max_rows=MOST))
            done += 1
            if other.done():
                order.append("other")
            await asyncio.sleep(0)
        order.append("large")
        await other
        return done, (await loading).model.nbytes

    order = []
    done, size = asyncio.run(meanwhile())
    assert done > 50  # they take microseconds, the loading hundreds of milliseconds
    assert order[0] == "other"  # which was requested later, and was not in memory either
    assert size >= LARGE
    assert predictions.memory.nbytes <= 2 * LARGE


def test_a_model_larger_than_all_of_the_memory_is_served_and_not_kept(process, published, large, name):
    predictions = process(model_memory_bytes=LARGE // 10)
    body = published(name)
    kept = asyncio.run(predictions.serve(name)).model
    assert asyncio.run(predictions.serve(large)).model.nbytes >= LARGE
    assert asyncio.run(predictions.serve(name)).model is kept
    assert predict(predictions, name, body)


def test_no_caller_waits_for_a_compiler(process, published, monkeypatch, name):
    body, predictions = published(name, algorithm="random_forest"), process()
    for kernel in jit._kernels:
        monkeypatch.setattr(kernel, "_compiled", None)  # as in a process that has compiled nothing yet
        monkeypatch.setattr(kernel, "lean", kernel._first)
    served = asyncio.run(predictions.serve(name))
    ready = jit.made()
    assert ready > 0
    for rows in (body["data"], body["data"][:1]):
        came = read_rows({**body, "data": rows}, served.model.inputs, max_rows=MOST)
        predictions.respond(served, came)
        assert jit.made() == ready


def test_ten_times_the_memory_is_served_within_it(process, published, trained, name):
    size = decode(trained().blob).nbytes
    predictions = process(model_memory_bytes=3 * size)
    for seed in range(30):
        body = published(name, seed=seed)
        given = orjson.loads(predict(predictions, name, body, version=seed + 1))
        assert given["version"] == seed + 1
        assert predictions.memory.nbytes <= 3 * size
    assert orjson.loads(predict(predictions, name, body, version=1))["version"] == 1


def slowly(error=None):
    begun = time.thread_time()
    while time.thread_time() - begun < 2 * SMALL_SECONDS:
        pass
    if error is not None:
        raise error


def test_a_large_body_of_plain_numbers_stays_on_the_loop_while_those_before_were_quick(process, published, name):
    predictions, expected, size = process(), VersionRef(name), 10 * SMALL_BODY
    predict(predictions, name, published(name))
    served = predictions.at_hand(expected, SMALL_BODY, None)
    plain = served._replace(model=SimpleNamespace(preparation=SimpleNamespace(numbers=("length", "width"))))

    def at_hand(size=size, within=None, *, plain=True):
        return predictions.at_hand(expected, size, within, plain=plain)

    def paced(served, call=lambda: None):
        with predictions.paced(served, size, plain=True):
            call()

    paced(served)  # it takes texts too
    assert at_hand() is None
    paced(plain)
    assert at_hand() == served
    assert at_hand(plain=False) is None
    assert at_hand(size << 30) is None
    assert at_hand(within=5.0) is None
    for error in (None, InvalidData("no")):
        with nullcontext() if error is None else pytest.raises(InvalidData):
            paced(plain, partial(slowly, error))
        assert at_hand() is None
        quick = 0
        while at_hand() is None:  # it is forgotten
            paced(plain)
            quick += 1
        assert quick >= 5


@pytest.mark.parametrize("nbytes", [SMALL_MODEL, SMALL_MODEL + 1])
def test_small_bodies_stay_on_the_loop_by_the_time_that_they_take_whatever_the_size_of_the_model(
    process, published, name, nbytes
):
    predictions, expected, size = process(), VersionRef(name), 100
    predict(predictions, name, published(name))
    served = predictions.at_hand(expected, size, None)
    model = SimpleNamespace(
        **{each: getattr(served.model, each) for each in ("preparation", "algorithm")}, nbytes=nbytes
    )
    predictions.memory = SimpleNamespace(get=lambda _: model)

    def paced(call=lambda: None, times=1):
        for _ in range(times * MEASURED_SHARE):
            with predictions.paced(served._replace(model=model), size, plain=False):
                call()

    assert (predictions.at_hand(expected, size, None) is not None) == (nbytes <= SMALL_MODEL)
    paced(times=3)
    assert predictions.at_hand(expected, size, None) is not None
    paced(slowly)  # a pause
    assert predictions.at_hand(expected, size, None) is not None
    paced(slowly, times=20)
    assert predictions.at_hand(expected, size, None) is None
    assert SMALL_SECONDS < predictions.seconds(served, size) < 1
    assert predictions.seconds(served, SMALL_BODY + 1) is None
    paced(times=30)
    assert predictions.at_hand(expected, size, None) is not None


def test_which_version_is_meant(services, process, publish, name):
    for seed in range(3):
        publish(services.work, name, seed=seed)
    services.aliases.move(name, "canary", 2, if_match=None, request_id=None)
    assert asyncio.run(process().serve(name)).pointer.version == 3
    assert asyncio.run(process().serve(name, alias="canary")).pointer.version == 2
    services.aliases.move(name, "champion", 1, if_match=None, request_id=None)
    assert asyncio.run(process().serve(name)).pointer.version == 1
    assert asyncio.run(process().serve(name, version=3)).pointer.version == 3
    for expected, error in [
        ({"model": "no-such"}, ModelNotFound),
        ({"model": name, "version": 4}, VersionNotFound),
        ({"model": name, "alias": "none"}, AliasNotFound),
        ({"model": name, "alias": "canary", "version": 1}, InvalidRequest),
    ]:
        with pytest.raises(error):
            asyncio.run(process().serve(**expected))


def test_a_pointer_lives_for_its_seconds_and_no_longer(services, publish, name):
    publish(services.work, name)
    clock = type("Clock", (), {"now": 0.0, "__call__": lambda self: self.now})()
    pointers, expected = Pointers(services.work, 1.0, clock=clock), VersionRef(name)
    assert pointers.at_hand(expected) is None
    pointer = pointers.fetch(expected).result()
    with services.work() as w:
        w.models.delete(name)
    clock.now = 0.999
    assert pointers.at_hand(expected) == (pointer, None)
    clock.now = 1.0
    assert pointers.at_hand(expected) is None
    with pytest.raises(ModelNotFound):
        pointers.fetch(expected).result()


def test_without_staleness_a_deletion_is_seen_at_once(services, process, published, name):
    body = published(name)
    replicas = [process(pointer_seconds=0.0, stale_seconds=0.0) for _ in range(3)]
    for replica in replicas:
        predict(replica, name, body)
    services.models.delete(name)
    for replica in replicas:
        with pytest.raises(ModelNotFound):
            asyncio.run(replica.serve(name))
    published(name, seed=1)
    for replica in replicas:
        assert orjson.loads(predict(replica, name, body))["version"] == 2


def test_a_model_that_forgot_its_golden_rows_is_not_served(services, process, redis, publish, name):
    publish(services.work, name)
    with services.work() as w:
        row = w.session.get_one(ModelVersionRow, (name, 1))
        row.golden = row.golden | {"predictions": ["setosa"] * 8}
    with pytest.raises(GoldenMismatch):
        asyncio.run(process().serve(name))
    assert redis.dbsize() == 0


def test_bytes_that_changed_in_the_database_are_not_served(services, process, redis, publish, name):
    publish(services.work, name)
    with services.work() as w:
        chunk = w.session.scalars(
            select(ModelChunkRow).where(ModelChunkRow.model == name).order_by(ModelChunkRow.seq.desc())
        ).first()
        # The last bit of the last number: neither the decoder nor a golden row would notice.
        chunk.payload = chunk.payload[:-8] + bytes([chunk.payload[-8] ^ 1]) + chunk.payload[-7:]
    with pytest.raises(CorruptModel):
        asyncio.run(process().serve(name))
    assert redis.dbsize() == 0


def test_whatever_befalls_redis_the_predictions_are_right(stack_factory, publish, trained):
    """Flipped bits, swapped keys, flushed, full, stuck, dead: no error, the same bytes."""
    stack = stack_factory()
    work = WorkFactory(make_engine(stack.settings, role="api"))
    redis = Redis.from_url(stack.settings.cache_url.get_secret_value())
    names = [f"m{seed}" for seed in range(3)]
    for seed, name in enumerate(names):
        publish(work, name, seed=seed, algorithm="ridge", target="length")
    body = rows_of(trained(algorithm="ridge", target="length"))

    def predict_all():
        """Of a process with nothing in memory."""
        cache = Cache(stack.settings)
        predictions = from_store(work, cache, stack.settings)
        given = [predict(predictions, name, body) for name in names]
        cache.close()
        return given

    def flip():
        for key in list(redis.scan_iter()):
            value = bytearray(redis.get(key))
            value[len(value) // 2] ^= 4
            redis.set(key, bytes(value))

    def swap():
        keys = sorted(redis.scan_iter())
        values = redis.mget(keys)
        for key, value in zip(keys, values[1:] + values[:1], strict=True):
            redis.set(key, value)

    def full():
        redis.flushall()
        redis.config_set("maxmemory", "1kb")

    pid = stack.servers["cache"].pid
    expected = predict_all()
    assert redis.dbsize() == 3
    for befall in (flip, swap, redis.flushall, full, lambda: os.kill(pid, signal.SIGSTOP)):
        befall()
        assert predict_all() == expected, befall
    os.kill(pid, signal.SIGCONT)
    stack.servers["cache"].kill()
    assert predict_all() == expected
    work.engine.dispose()


def test_many_threads_may_predict_with_one_model(process, published, name):
    predictions, body = process(), published(name, algorithm="decision_tree")
    expected, given = predict(predictions, name, body), []
    threads = [threading.Thread(target=lambda: given.append(predict(predictions, name, body))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given == [expected] * 8
