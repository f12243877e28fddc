"""Warm models predict while the database is stopped or frozen."""

import http.client
import json
import time
from contextlib import contextmanager

import psutil
import pytest

from app.commands import processes
from app.processes import ports
from app.store.engine import make_engine
from app.store.unit_of_work import WorkFactory

ROWS = json.dumps({"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]})
STALE = "x-model-stale-seconds"


@pytest.fixture
def work_of():
    made = []

    def make(stack):
        made.append(WorkFactory(make_engine(stack.settings, role="worker")))
        return made[-1]

    yield make
    for work in made:
        work.engine.dispose()


@contextmanager
def api(stack, **settings):
    """A real process, and a caller of it that keeps its connection."""
    with ports.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    child = processes.api(stack.settings.model_copy(update={"port": port, **settings}), stack.folder, to_terminal=False)
    child.start()
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def call(method, path, body=None, **headers):
        line.request(method, path, body, {"Content-Type": "application/json", **headers})
        response = line.getresponse()
        given = response.read()
        return response, json.loads(given)

    try:
        yield call
    finally:
        line.close()
        child.stop()


@contextmanager
def frozen(child):
    """Every process of a server stands still."""
    leader = psutil.Process(child.pid)
    leader.suspend()  # first, so that it begins no other
    family = [leader, *leader.children(recursive=True)]
    for process in family:
        process.suspend()
    try:
        yield
    finally:
        for process in family:
            process.resume()


@contextmanager
def killed(child):
    child.kill()
    try:
        yield
    finally:
        child.start()


def predicted(call, names, seconds):
    """The ages that predictions of these models reported for so long; none failed or took over a second."""
    ages, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        for name in names:
            begun = time.monotonic()
            response, given = call("POST", f"/v1/models/{name}/predict", ROWS)
            assert response.status == 200, given
            assert time.monotonic() - begun < 1
            ages.append(response.headers.get(STALE))
    return ages


@pytest.mark.slow
@pytest.mark.parametrize("away", [killed, frozen])
def test_warm_models_predict_while_the_database_is_away(stack_factory, work_of, publish, away):
    stack = stack_factory()
    work, names = work_of(stack), ["one", "two"]
    for name in [*names, "cold"]:
        publish(work, name)
        publish(work, name, seed=1)
    work.engine.dispose()
    with api(stack, pointer_seconds=0.2) as call:
        assert predicted(call, names, 0.3)[-1] is None
        with away(stack.servers["postgres"]):
            time.sleep(0.2)
            ages = predicted(call, names, 3)
            assert ages[-1] is not None
            assert int(ages[-1]) in {2, 3}
            response, given = call("POST", "/v2/models/one/infer", json.dumps(TENSORS))
            assert (response.status, response.headers[STALE].isdigit()) == (200, True), given
            for _ in range(5):  # the first may wait for its own attempt
                begun = time.monotonic()
                response, given = call("POST", "/v1/models/cold/predict", ROWS)
                assert (response.status, given["code"]) == (503, "database_unavailable")
                assert int(response.headers["retry-after"]) > 0
                assert time.monotonic() - begun < 4
            response, given = call("POST", "/v1/models/one/predict", ROWS, **{"X-Min-Revision": "1"})
            assert (response.status, given["code"]) == (503, "database_unavailable")
        deadline = time.monotonic() + 20
        while predicted(call, names, 0.1)[-1] is not None:
            assert time.monotonic() < deadline
        response, moved = call("PUT", "/v1/models/one/aliases/champion", json.dumps({"version": 1}))
        assert response.status == 201, moved
        response, given = call("POST", "/v1/models/one/predict", ROWS)
        assert (given["version"], response.headers.get(STALE)) == (1, None)


TENSORS = {
    "inputs": [
        {"name": "length", "shape": [1], "datatype": "FP64", "data": [5.1]},
        {"name": "width", "shape": [1], "datatype": "FP64", "data": [0.2]},
        {"name": "size", "shape": [1], "datatype": "BYTES", "data": ["small"]},
    ]
}


@pytest.mark.slow
def test_warm_models_predict_no_longer_than_they_may(stack_factory, work_of, publish):
    stack = stack_factory()
    work = work_of(stack)
    publish(work, "one")
    work.engine.dispose()
    with api(stack, pointer_seconds=0.1, stale_seconds=1.5) as call:
        predicted(call, ["one"], 0.2)
        with frozen(stack.servers["postgres"]):
            time.sleep(0.2)
            assert predicted(call, ["one"], 0.5)[-1] in {"0", "1"}
            time.sleep(1.5)
            response, given = call("POST", "/v1/models/one/predict", ROWS)
            assert (response.status, given["code"]) == (503, "database_unavailable")
