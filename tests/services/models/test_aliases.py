"""Aliases move only to versions that prove themselves, and of two writers with one ETag one wins."""

import threading
from uuid import uuid4

import pytest
from sqlalchemy import select

from app.base.errors import CorruptModel, GoldenMismatch, PreconditionFailed, RetiredFormat, VersionNotFound
from app.ml.models import safetensors_format
from app.ml.models.model import digest
from app.store.models.model_tables import ModelChunkRow, ModelVersionRow


@pytest.fixture
def name(services, publish):
    name = f"m-{uuid4()}"
    for seed in range(3):
        publish(services.work, name, seed=seed)
    return name


def move(services, name, version, if_match=None):
    return services.aliases.move(name, "champion", version, if_match=if_match, request_id="r")


def test_an_alias_is_made_and_moved(services, name):
    made, is_new = move(services, name, 1)
    assert is_new
    moved, is_new = move(services, name, 2, made.etag)
    assert not is_new
    assert moved.version == 2
    assert moved.etag != made.etag
    assert services.models.get(name).aliases == [moved]


def test_the_same_move_again_changes_nothing(services, name):
    made, _ = move(services, name, 1)
    assert move(services, name, 1) == (made, False)
    assert move(services, name, 1, made.etag) == (made, False)
    assert len(services.aliases.history(name, "champion", 10).items) == 1


@pytest.mark.parametrize("tag", ['"99"', '"1', "1", 'W/"1"', '"0", "7"', ""])
def test_another_state_is_refused(services, name, tag):
    made, _ = move(services, name, 1)
    assert made.etag == '"1"'
    with pytest.raises(PreconditionFailed) as caught:
        move(services, name, 2, tag)
    assert caught.value.headers["ETag"] == made.etag
    assert services.models.get(name).aliases == [made]


@pytest.mark.parametrize("tag", ['"1"', "*", ' "7" , "1"'])
def test_this_state_is_accepted(services, name, tag):
    move(services, name, 1)
    assert move(services, name, 2, tag)[0].version == 2


@pytest.mark.parametrize("tag", ['"1"', "*"])
def test_an_alias_that_is_not_set_has_no_state(services, name, tag):
    with pytest.raises(PreconditionFailed):
        move(services, name, 1, tag)
    assert services.models.get(name).aliases == []


def test_of_writers_with_the_same_etag_one_wins(services, name):
    for _ in range(5):
        current, _ = move(services, name, 1)
        outcomes, start = [], threading.Barrier(4)

        def write(version, etag=current.etag, start=start, outcomes=outcomes):
            start.wait()
            try:
                outcomes.append(move(services, name, version, etag)[0].version)
            except PreconditionFailed:
                outcomes.append(None)

        threads = [threading.Thread(target=write, args=(version,)) for version in (2, 3, 2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = [version for version in outcomes if version is not None]
        assert services.models.get(name).aliases[0].version == winner


def test_writers_who_make_one_alias_at_once(services, name):
    made, start = [], threading.Barrier(4)

    def write(version):
        start.wait()
        made.append(move(services, name, version)[1])

    threads = [threading.Thread(target=write, args=(version,)) for version in (1, 2, 3, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, False, True]
    history = services.aliases.history(name, "champion", 10).items
    assert [record.previous_version for record in history[:-1]] == [record.version for record in history[1:]]


def test_a_version_that_fails_its_golden_rows_does_not_go_live(services, name):
    move(services, name, 1)
    with services.work() as w:
        row = w.session.get_one(ModelVersionRow, (name, 2))
        row.golden = row.golden | {"predictions": row.golden["predictions"][::-1]}
    with pytest.raises(GoldenMismatch):
        move(services, name, 2)
    assert services.models.get(name).aliases[0].version == 1


def test_a_version_of_an_earlier_release_is_refused_by_name(services, name):
    """Its parameters have other names."""
    with services.work() as w:
        row = w.session.get_one(ModelVersionRow, (name, 2))
        mine = select(ModelChunkRow).where(ModelChunkRow.model == name, ModelChunkRow.version == 2)
        chunks = w.session.scalars(mine.order_by(ModelChunkRow.seq)).all()
        document, arrays = safetensors_format.read(b"".join(chunk.payload for chunk in chunks))
        document |= {"format": 2, "parameters": {"penalty": 1.0}}
        chunks[0].payload = safetensors_format.write(document, arrays)
        for chunk in chunks[1:]:
            w.session.delete(chunk)
        row.size_bytes, row.digest = len(chunks[0].payload), digest(chunks[0].payload)
    with pytest.raises(RetiredFormat, match=f"^Version 2 of {name} is stored in format 2") as refused:
        move(services, name, 2)
    remedy = "Train the model again, with the present names of its parameters."
    assert (refused.value.status, refused.value.remedy) == (409, remedy)


def test_a_version_whose_bytes_changed_does_not_go_live(services, name):
    with services.work() as w:
        mine = select(ModelChunkRow).where(ModelChunkRow.model == name, ModelChunkRow.version == 2)
        chunk = w.session.scalars(mine.order_by(ModelChunkRow.seq.desc())).first()
        # The last bit of the last number: neither the decoder nor a golden row would notice.
        chunk.payload = chunk.payload[:-8] + bytes([chunk.payload[-8] ^ 1]) + chunk.payload[-7:]
    with pytest.raises(CorruptModel):
        move(services, name, 2)
    with pytest.raises(VersionNotFound):
        move(services, name, 4)
