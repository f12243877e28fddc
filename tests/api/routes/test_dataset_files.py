"""A dataset downloaded as a file, and uploaded again."""

import io
from uuid import uuid4

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from app.formats.table_files import FILES, written

CSV, ARROW, PARQUET = FILES
TRICKY = b'''id,price,whole,flag,note,"odd, name",when
a1,0.30000000000000004,1.0,true,"says ""no""",7,2024-12-31T23:59:59Z
a2,1e300,2.0,false," two
lines",,2024-01-01T00:00:00Z
a3,,-3.0,,=1+1,9007199254740993,2024-01-02T00:00:00Z
a4,-2.5,4.0,true,"a;b",-1,2024-02-29T12:30:00.25Z
'''
OF_TEXTS = {"notation", "other_notation", "cell_texts"}
CHANGING = {"id", "name", "created_at", "size_bytes", "digest", "file_format", "reading"}


def upload(client, body, **query):
    response = client.post("/v1/datasets", params=query, content=body)
    assert response.status_code == 201, response.text
    return response.json()


def download(client, dataset, accept):
    response = client.get(f"/v1/datasets/{dataset['id']}/file", headers={"Accept": accept})
    assert response.status_code == 200, response.text
    return response


def content(client, dataset):
    """The data sheets, but for how the cells of a file of text are written, and the rows."""
    rows = client.get(f"/v1/datasets/{dataset['id']}/rows").json()
    sheets = [{name: value for name, value in column.items() if name not in OF_TEXTS} for column in dataset["columns"]]
    return {name: value for name, value in dataset.items() if name not in CHANGING | {"columns"}}, sheets, rows


@pytest.mark.parametrize("accept", FILES)
def test_a_file_that_is_uploaded_again_is_the_same_dataset(client, accept):
    first = upload(client, TRICKY, name="first")
    again = upload(client, download(client, first, accept).content, name="again")
    assert content(client, again) == content(client, first)


def test_the_formats_hold_the_same_table(client):
    dataset = upload(client, TRICKY)
    arrow = pa.ipc.open_stream(download(client, dataset, ARROW).content).read_all()
    parquet = pq.read_table(io.BytesIO(download(client, dataset, PARQUET).content))
    assert arrow.num_rows == 4
    assert arrow.equals(parquet)
    assert arrow.column("odd, name").to_pylist() == [7, None, 9007199254740993, -1]


def test_accept_chooses_the_format_and_the_file_has_the_name_of_the_dataset(client):
    dataset = upload(client, b"a,b\n1,x\n2,y\n", name='Preise "München"')
    for accept, kind, suffix in [
        ("*/*", CSV, "csv"),
        ("text/*", CSV, "csv"),
        (f"{CSV};q=0.5, {PARQUET}", PARQUET, "parquet"),
        (f"{ARROW}, */*;q=0.1", ARROW, "arrow"),
    ]:
        response = download(client, dataset, accept)
        assert response.headers["content-type"].partition(";")[0] == kind
        assert response.headers["content-disposition"] == (
            f'attachment; filename="Preise _M_nchen_.{suffix}"; '
            f"filename*=UTF-8''Preise%20%22M%C3%BCnchen%22.{suffix}"
        )  # fmt: skip


def test_another_format_is_refused_with_the_list(client):
    dataset = upload(client, b"a,b\n1,x\n2,y\n")
    response = client.get(f"/v1/datasets/{dataset['id']}/file", headers={"Accept": "application/json"})
    assert (response.status_code, response.json()["code"]) == (406, "not_acceptable")
    assert all(kind in response.json()["detail"] for kind in FILES)


def test_a_dataset_that_does_not_exist_has_no_file(client):
    response = client.get(f"/v1/datasets/{uuid4()}/file")
    assert (response.status_code, response.json()["code"]) == (404, "dataset_not_found")


@pytest.mark.slow
@pytest.mark.parametrize("accept", FILES)
def test_a_file_of_any_length_takes_the_memory_of_a_chunk(accept):
    chunk = pa.table({f"x{j}": np.random.default_rng(j).normal(size=20_000) for j in range(5)})
    list(written([chunk] * 5, FILES[accept]))
    process, size = psutil.Process(), 0
    before = most = process.memory_info().rss
    for part in written((chunk for _ in range(100)), FILES[accept]):
        size, most = size + len(part), max(most, process.memory_info().rss)
    assert size > 75 << 20
    assert most - before < 24 << 20


def test_numbers_in_csv_keep_every_bit():
    x = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(-300, 300, 1000)
    read = csv.read_csv(io.BytesIO(b"".join(written([pa.table({"x": x})], FILES[CSV]))))
    assert read["x"].to_numpy().tobytes() == x.tobytes()
