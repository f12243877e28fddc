import hashlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from app.base.errors import DatasetNotFound, InvalidData, InvalidRequest, StorageFull
from app.services.datasets.datasets import Datasets, clean_name


@pytest.fixture
def ingest(services):
    def run(data, name="table", file_format=None, by=services.datasets):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            return by.ingest(Path(file.name), name=name, file_format=file_format, size_bytes=len(data), digest=digest)

    return run


def csv_of(rows):
    rng = np.random.default_rng(0)
    lines = (f"{n},{x!r},{'abc'[n % 3]}\n" for n, x in enumerate(rng.normal(size=rows).tolist()))
    return ("n,x,level\n" + "".join(lines)).encode()


@pytest.fixture(scope="module")
def small_chunks(settings, services):
    made = Datasets(services.work, settings.model_copy(update={"chunk_bytes": 16_384}))
    yield made
    made.close()


def test_a_file_becomes_a_table(services, ingest):
    data = b"a,b\n1,x\n2,\n"
    made = ingest(data, name="Größe.csv")
    assert services.datasets.get(made.id) == made
    assert (made.name, made.file_format, made.rows, made.size_bytes) == ("Größe.csv", "csv", 2, len(data))
    assert made.digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert [(c.name, c.kind, c.missing) for c in made.columns] == [("a", "numeric", 0), ("b", "categorical", 1)]


def test_payloads_are_the_table_chunk_by_chunk(ingest, small_chunks):
    made = ingest(csv_of(5000), by=small_chunks)
    payloads = list(small_chunks.payloads(made.id))
    assert len(payloads) > 3
    table = pa.concat_tables(pa.ipc.open_stream(payload).read_all() for payload in payloads)
    assert table.column("n").to_pylist() == list(range(5000))
    assert table.schema.types == [pa.int64(), pa.float64(), pa.string()]


def test_payloads_of_a_dataset_that_goes_away(ingest, small_chunks):
    made = ingest(csv_of(2000), by=small_chunks)
    payloads = small_chunks.payloads(made.id)
    next(payloads)
    small_chunks.delete(made.id)
    with pytest.raises(DatasetNotFound):
        list(payloads)


@pytest.mark.parametrize(("offset", "limit"), [(0, 5), (700, 900), (4990, 100), (5000, 1), (10**9, 1)])
def test_rows_are_a_window_over_chunks(ingest, small_chunks, offset, limit):
    made = ingest(csv_of(5000), by=small_chunks)
    rows = small_chunks.rows(made.id, offset, limit, ["level", "n"])
    expected = [["abc"[n % 3], n] for n in range(offset, min(offset + limit, 5000))]
    assert (rows.columns, rows.data, rows.offset, rows.total) == (["level", "n"], expected, offset, 5000)


def test_rows_read_only_the_chunks_they_need(ingest, small_chunks, monkeypatch):
    made = ingest(csv_of(5000), by=small_chunks)
    opened = []
    real = pa.ipc.open_stream
    monkeypatch.setattr(pa.ipc, "open_stream", lambda payload: opened.append(1) or real(payload))
    small_chunks.rows(made.id, 2500, 1)
    assert len(opened) == 1


def test_rows_end_early_where_values_are_long(ingest, small_chunks):
    made = ingest(
        b"text\n" + b"\n".join(bytes([letter]) * 1_000_000 for letter in b"abcdefghijklmnopqrst"), by=small_chunks
    )
    seen = []
    while len(seen) < made.rows:
        rows = small_chunks.rows(made.id, len(seen), 1000).data
        assert 0 < len(rows) < 20
        seen += [row[0][0] for row in rows]
    assert "".join(seen) == "abcdefghijklmnopqrst"


def test_rows_show_times_and_missing_values(services, ingest):
    made = ingest(b"t,b,s\n2024-02-29T12:00:00.5,true,\n,,x\n")
    assert services.datasets.rows(made.id, 0, 9).data == [
        ["2024-02-29T12:00:00.500000Z", True, None],
        [None, None, "x"],
    ]


def test_rows_name_unknown_columns_and_refuse_too_many_values(services, ingest):
    made = ingest(b"a,b\n1,2\n")
    with pytest.raises(InvalidRequest) as refused:
        services.datasets.rows(made.id, 0, 1, ["a", "x", "y"])
    assert [fault.pointer for fault in refused.value.faults] == ["/query/columns/1", "/query/columns/2"]
    with pytest.raises(InvalidRequest):
        services.datasets.rows(made.id, 0, 500_001)
    with pytest.raises(DatasetNotFound):
        services.datasets.rows(uuid4(), 0, 1)


def test_nothing_is_kept_of_a_refused_file(services, ingest):
    before = services.datasets.page(1).items
    with pytest.raises(InvalidData):
        ingest(b"a,b\n1\n")
    assert services.datasets.page(1).items == before


def test_pages(services, ingest):
    made = [ingest(b"a\n1\n", name=f"page {n}").id for n in range(3)]
    first = services.datasets.page(2)
    assert [dataset.id for dataset in first.items] == made[:0:-1]
    assert services.datasets.page(1, first.next_cursor).items[0].id == made[0]
    with pytest.raises(InvalidRequest):
        services.datasets.page(1, "no-cursor")


def test_uploads_at_once_do_not_mix(services, ingest):
    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda n: ingest(f"a\n{n}\n".encode(), name=f"at once {n}"), range(3)))
    assert [dataset.columns[0].minimum for dataset in made] == [0, 1, 2]
    assert [services.datasets.rows(dataset.id, 0, 1).data for dataset in made] == [[[0]], [[1]], [[2]]]


def test_a_lost_connection_at_the_end_keeps_one_dataset(services, ingest, monkeypatch):
    """The commit has happened, its response is lost: the whole is tried again, and finds itself."""
    from sqlalchemy.exc import OperationalError
    from sqlalchemy.orm import Session

    real, lost = Session.commit, []

    def commit(session):
        real(session)
        if not lost and session.info.get("keeping"):
            lost.append(1)
            raise OperationalError("commit", {}, Exception("gone"))

    def add(repository, *args, **kwargs):
        repository.session.info["keeping"] = True
        return real_add(repository, *args, **kwargs)

    from app.store.datasets.datasets import DatasetRepository

    real_add = DatasetRepository.add
    monkeypatch.setattr(Session, "commit", commit)
    monkeypatch.setattr(DatasetRepository, "add", add)
    made = ingest(b"a\n1\n2\n", name="kept once")
    assert lost
    assert [d.id for d in services.datasets.page(5).items if d.name == "kept once"] == [made.id]
    assert services.datasets.rows(made.id, 0, 9).data == [[1], [2]]


def test_a_spool_has_no_name_and_needs_a_folder(settings, services, tmp_path):
    folder = tmp_path / "spool"
    made = Datasets(services.work, settings.model_copy(update={"spool": folder}))
    with made.spool() as file:
        file.write(b"x")
        assert list(folder.iterdir()) == []
    blocked = Datasets(services.work, settings.model_copy(update={"spool": Path("/dev/null/spool")}))
    with pytest.raises(StorageFull):
        blocked.spool()


@pytest.mark.parametrize("name", ["x", "Größe 2024.csv", "日" * 200])
def test_good_names(name):
    assert clean_name(name) == name


@pytest.mark.parametrize("name", ["", " ", "a\0b", "a\nb", "\ud800", "x" * 201, "\u202e", "\x7f"])
def test_bad_names(name):
    with pytest.raises(InvalidRequest):
        clean_name(name)


def test_no_name_is_a_name():
    assert clean_name(None) == "dataset"
