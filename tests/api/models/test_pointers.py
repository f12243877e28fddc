"""Moves and deletions are seen by the next read, over HTTP."""

import asyncio
import threading
import time
from contextlib import contextmanager
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

import valiant
from app.base.errors import ModelNotFound
from app.main import create_app
from app.ml.contract.model_reference import VersionRef
from app.services.models.aliases import Aliases
from app.services.models.models import Models
from app.services.predictions.pointer_cache import Pointers
from app.store.models.pointer import Freshness

ROWS = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"]]}
MATRIX = {"inputs": [{"name": "width", "shape": [1], "datatype": "FP64", "data": [0.2]},
                     {"name": "length", "shape": [1], "datatype": "FP64", "data": [5.1]},
                     {"name": "size", "shape": [1], "datatype": "BYTES", "data": ["small"]}]}  # fmt: skip


@pytest.fixture
def name(services, publish):
    """A model with two versions."""
    name = f"a-{uuid4()}"
    publish(services.work, name)
    publish(services.work, name, seed=1)
    return name


@pytest.fixture(scope="module")
def slow(settings):
    """Another process, in which a pointer is fresh for an hour."""
    with TestClient(create_app(settings.model_copy(update={"pointer_seconds": 3600.0}))) as connected:
        yield connected


def move(client, name, version, alias="champion"):
    response = client.put(f"/v1/models/{name}/aliases/{alias}", json={"version": version})
    assert response.status_code in {200, 201}, response.text
    return response.json()["revision"]


def predict(client, name, body=None, query="", **headers):
    return client.post(f"/v1/models/{name}/predict{query}", json=body or ROWS, headers=headers)


def infer(client, name, **headers):
    return client.post(f"/v2/models/{name}/infer", json=MATRIX, headers=headers)


def version_of(response):
    assert response.status_code == 200, response.text
    return int(response.headers["x-model-version"])


def stale_reads(client, name, moves):
    wrong = 0
    for number in range(moves):
        version = number % 2 + 1
        move(client, name, version)
        query = "?alias=champion" if number % 4 > 1 else ""
        wrong += version_of(predict(client, name, query=query)) != version
    return wrong


def test_the_first_read_after_a_move_sees_it(slow, name):
    assert stale_reads(slow, name, 40) == 0


@pytest.mark.slow
def test_the_first_read_after_each_of_1000_moves_sees_it(slow, name):
    assert stale_reads(slow, name, 1000) == 0


def test_a_deletion_is_seen_at_once(slow, name):
    assert version_of(predict(slow, name)) == 2
    assert version_of(predict(slow, name, query="?version=2")) == 2
    assert slow.delete(f"/v1/models/{name}/versions/2").status_code == 204
    assert version_of(predict(slow, name)) == 1
    assert predict(slow, name, query="?version=2").json()["code"] == "version_not_found"
    assert slow.delete(f"/v1/models/{name}").status_code == 204
    assert predict(slow, name).json()["code"] == "model_not_found"


def test_the_first_read_of_another_process_sees_the_revision_it_insists_on(slow, client, name):
    assert version_of(predict(slow, name)) == 2
    assert version_of(infer(slow, name)) == 2
    revision = move(client, name, 1)
    assert revision == 1
    assert version_of(predict(slow, name)) == 2  # its pointer is fresh
    assert version_of(predict(slow, name, **{"X-Min-Revision": "1"})) == 1
    assert version_of(predict(slow, name)) == 1
    revision = move(client, name, 2)
    assert version_of(infer(slow, name, **{"X-Min-Revision": str(revision)})) == 2
    revision = move(client, name, 1)
    ask = {"vary": [{"column": "width", "points": 3}], "fixed": {"length": 5.1, "size": "small"}}
    response = slow.post(f"/v1/models/{name}/sweep", json=ask, headers={"X-Min-Revision": str(revision)})
    assert response.json()["version"] == 1, response.text
    assert version_of(predict(slow, name)) == 1


def test_a_revision_that_does_not_exist_yet_is_a_failed_precondition(client, name):
    for response in (predict(client, name, **{"X-Min-Revision": "1"}), infer(client, name, **{"X-Min-Revision": "1"})):
        assert (response.status_code, response.json()["code"]) == (412, "revision_not_reached")
    move(client, name, 1)
    assert version_of(predict(client, name, **{"X-Min-Revision": "1"})) == 1
    response = predict(client, name, **{"X-Min-Revision": "2"})
    assert (response.status_code, response.json()["code"]) == (412, "revision_not_reached")
    assert "revision 1" in response.json()["detail"]


@pytest.mark.parametrize("sent", ["0", "-1", "x", "", '"1"', "1.5", "9" * 30])
def test_a_malformed_revision_is_named(client, name, sent):
    for response in (
        predict(client, name, **{"X-Min-Revision": sent}),
        infer(client, name, **{"X-Min-Revision": sent}),
    ):
        assert response.status_code == 422, response.text
        assert [error["pointer"] for error in response.json()["errors"]] == ["/header/X-Min-Revision"]


def test_a_version_has_no_revision(client, name):
    response = predict(client, name, query="?version=1", **{"X-Min-Revision": "1"})
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == ["/header/X-Min-Revision"]


def test_another_process_predicts_with_a_version_that_the_caller_knows_of(slow, services, name, publish):
    sweep = {"vary": [{"column": "width", "points": 3}], "fixed": {"length": 5.1, "size": "small"}}
    assert version_of(predict(slow, name)) == 2
    for seed in (2, 3, 4):
        made = publish(services.work, name, seed=seed).version
        assert version_of(predict(slow, name)) == made - 1  # its pointer is fresh
        sent = {"X-Min-Version": str(made)}
        if seed == 2:
            assert version_of(predict(slow, name, **sent)) == made
        elif seed == 3:
            assert version_of(infer(slow, name, **sent)) == made
        else:
            assert slow.post(f"/v1/models/{name}/sweep", json=sweep, headers=sent).json()["version"] == made
        assert version_of(predict(slow, name)) == made
    with services.work() as w:
        w.models.delete_version(name, 5)
    assert version_of(predict(slow, name, **{"X-Min-Version": "6"})) == 4, "one that is gone is no fault"
    move(slow, name, 1)
    assert version_of(predict(slow, name, **{"X-Min-Version": "4"})) == 1, "the newest does not predict"
    for query in ("?version=1", "?alias=champion"):
        response = predict(slow, name, query=query, **{"X-Min-Version": "1"})
        assert [error["pointer"] for error in response.json()["errors"]] == ["/header/X-Min-Version"]


def test_the_client_demands_what_it_has_read(api_factory, services, client, name, publish):
    _, address = api_factory(pointer_seconds=3600.0)
    rows = [{"length": 5.1, "width": 0.2, "size": "small"}]
    with valiant.connect(address) as other:
        assert other.model(name).predict(rows).version == 2
        assert publish(services.work, name, seed=2).version == 3
        assert other.model(name).predict(rows).version == 3
        for version in (1, 2):
            move(client, name, version)
            assert other.model(name).predict(rows).version == version
        assert other.model(name).predict(rows, version=3).version == 3


@contextmanager
def held(engine):
    """`began`, `go`: the first read of a pointer waits after it has its row."""
    began, go = threading.Event(), threading.Event()

    def wait(_, __, statement, *___):
        if "FROM model_versions" in statement and not began.is_set():
            began.set()
            go.wait(10)

    event.listen(engine, "after_cursor_execute", wait)
    try:
        yield began, go
    finally:
        go.set()
        event.remove(engine, "after_cursor_execute", wait)


@pytest.mark.parametrize("change", ["move", "delete"])
def test_a_read_that_began_before_a_change_is_neither_joined_nor_kept(services, name, change):
    pointers = Pointers(services.work, 3600.0)
    models, aliases = Models(services.work, pointers), Aliases(services.work, pointers)
    expected = VersionRef(name)
    with held(services.work.engine) as (began, go):
        early = pointers.fetch(expected)
        assert began.wait(10)
        if change == "move":
            aliases.move(name, "champion", 1, if_match=None, request_id=None)
        else:
            models.delete(name)
        for land_first in (False, True):
            if land_first:
                go.set()
                assert early.result(10).version == 2
            if change == "move":
                assert asyncio.run(pointers.current(expected)).pointer.version == 1
            else:
                with pytest.raises(ModelNotFound):
                    asyncio.run(pointers.current(expected))


def test_whoever_insists_does_not_share_a_read_that_began_before_the_move(services, name):
    pointers, other = Pointers(services.work, 3600.0), Aliases(services.work, Pointers(services.work, 0.0))
    with held(services.work.engine) as (began, go):
        early = pointers.fetch(VersionRef(name), Freshness(1))  # somebody who guesses
        assert began.wait(10)
        moved, _ = other.move(name, "champion", 1, if_match=None, request_id=None)

        async def insist():
            late = asyncio.create_task(pointers.current(VersionRef(name), Freshness(moved.revision)))
            await asyncio.sleep(0.05)
            go.set()
            return await late

        assert asyncio.run(insist()).pointer.version == 1
        assert early.result(10).version == 2


def test_another_process_sees_a_move_within_the_pointer_time(api_factory, client, name):
    _, address = api_factory(pointer_seconds=0.2, stale_seconds=0)
    with httpx.Client(base_url=address) as other:
        assert version_of(predict(other, name)) == 2
        for version in (1, 2, 1):
            revision = move(client, name, version)
            time.sleep(0.2)
            assert version_of(predict(other, name)) == version
            revision = move(client, name, 3 - version)
            assert version_of(predict(other, name, **{"X-Min-Revision": str(revision)})) == 3 - version
