from uuid import uuid4

import pytest

from app.base.errors import DatasetInUse, DatasetNotFound
from app.ml.tables.data_sheet import Column
from app.store.base.new_ids import uuid7
from app.store.datasets.dataset_tables import DatasetChunkRow, DatasetRow
from app.store.jobs.job_tables import JobRow


@pytest.fixture
def kept(services):
    """A dataset of three chunks of two rows, committed."""
    dataset_id = uuid7()
    with services.work() as w:
        made = w.datasets.add(
            dataset_id,
            name="kept",
            file_format="csv",
            size_bytes=12,
            rows=6,
            digest="sha256:00",
            columns=[Column(name="a", kind="numeric", count=6, missing=0, minimum=1.5)],
            warnings=["One."],
        )
        for seq in range(3):
            w.datasets.add_chunk(dataset_id, seq, first_row=2 * seq, rows=2, payload=bytes([seq]))
    return made


def job(dataset_id, **state):
    return JobRow(
        id=uuid7(),
        kind="train",
        state="queued",
        request={},
        request_hash="",
        dataset_id=dataset_id,
        max_attempts=1,
        time_limit_seconds=1,
        **state,
    )


def test_what_was_added_is_found(services, kept):
    with services.work() as w:
        assert w.datasets.get(kept.id) == kept
        assert w.datasets.find(kept.id) == kept
        assert w.datasets.find(uuid4()) is None
        with pytest.raises(DatasetNotFound):
            w.datasets.get(uuid4())
    assert kept.columns[0].minimum == 1.5
    assert kept.warnings == ["One."]


def test_chunks_come_one_by_one_and_by_row(services, kept):
    with services.work() as w:
        assert [w.datasets.chunk(kept.id, seq) for seq in range(4)] == [b"\0", b"\1", b"\2", None]
        found = [w.datasets.chunk_with_row(kept.id, row) for row in range(6)]
        assert [chunk.payload for chunk in found] == [b"\0", b"\0", b"\1", b"\1", b"\2", b"\2"]
        assert [chunk.first_row for chunk in found] == [0, 0, 2, 2, 4, 4]
        assert w.datasets.chunk_with_row(kept.id, 6) is None
        with pytest.raises(DatasetNotFound):
            w.datasets.chunk(uuid4(), 0)


def test_nobody_sees_half_a_dataset(services):
    dataset_id = uuid7()
    with services.work() as w:
        w.datasets.add(
            dataset_id, name="x", file_format="csv", size_bytes=1, rows=1, digest="", columns=[], warnings=[]
        )
        with services.work() as other:
            assert other.datasets.find(dataset_id) is None
        w.session.rollback()
    with services.work() as w:
        assert w.datasets.find(dataset_id) is None


def test_pages_are_newest_first(services, kept):
    with services.work() as w:
        first = w.datasets.page(1, None)
        assert first.next_cursor == str(first.items[0].id)
        second = w.datasets.page(1, first.items[0].id)
        assert second.items[0].id < first.items[0].id
        rest = w.datasets.page(10_000, kept.id)
        assert rest.next_cursor is None
        assert kept.id not in {dataset.id for dataset in rest.items}


def test_pages_of_wide_tables_are_short(services, kept, monkeypatch):
    from app.store.datasets import datasets

    with services.work() as w:
        whole = [dataset.id for dataset in w.datasets.page(200, None).items]
        monkeypatch.setattr(datasets, "PAGE_COLUMNS", 0)
        seen, after = [], None
        while len(seen) < len(whole):
            page = w.datasets.page(200, after)
            seen, after = seen + [dataset.id for dataset in page.items], page.items[-1].id
    assert seen == whole


def test_delete_takes_the_chunks_along(services, kept, monkeypatch):
    monkeypatch.setattr("app.store.base.chunk_rows.DELETED_TOGETHER", 2)
    with services.work() as w:
        w.datasets.delete(kept.id)
    with services.work() as w:
        assert w.session.get(DatasetRow, kept.id) is None
        assert w.session.query(DatasetChunkRow).filter_by(dataset_id=kept.id).count() == 0
        with pytest.raises(DatasetNotFound):
            w.datasets.delete(kept.id)


def test_delete_is_refused_while_a_job_needs_it(services, kept):
    with services.work() as w:
        needs = job(kept.id)
        w.session.add(needs)
    with services.work() as w, pytest.raises(DatasetInUse):
        w.datasets.delete(kept.id)
    with services.work() as w:
        w.session.delete(w.session.get(JobRow, needs.id))
    with services.work() as w:
        w.datasets.delete(kept.id)


def test_delete_and_submission_do_not_pass_each_other(services, kept):
    """A submission under way holds the dataset; the deletion waits, and then sees the job."""
    from concurrent.futures import ThreadPoolExecutor, wait

    def delete():
        with services.work() as w:
            w.datasets.delete(kept.id)

    with ThreadPoolExecutor(1) as threads:
        with services.work() as w:
            w.jobs.hold_dataset(kept.id)
            deletion = threads.submit(delete)
            assert not wait([deletion], timeout=0.3).done
            needs = job(kept.id)
            w.session.add(needs)
        with pytest.raises(DatasetInUse):
            deletion.result(timeout=30)
    with services.work() as w:
        w.session.delete(w.session.get(JobRow, needs.id))
