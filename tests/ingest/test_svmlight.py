"""SVMLight and LibSVM files, against scikit-learn's reader; malformed lines are named."""

import io

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from app.base.errors import InvalidData


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("queries", [True, False])
def test_a_table_that_scikit_learn_writes_is_the_same_table(parse, zero_based, queries):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 7)) * (rng.random((300, 7)) < 0.4)
    x[0, 0] = x[0, -1] = 1.5
    x[:, 3] = np.round(x[:, 3])
    y, query = rng.choice([-1, 1], 300), np.arange(300) // 10
    sink = io.BytesIO()
    options = {"query_id": query} if queries else {}
    dump_svmlight_file(x, y, sink, zero_based=zero_based, comment="made by a program", **options)
    parsed, table = parse(sink.getvalue())
    assert parsed.reading.file_format == "svmlight"
    first = 0 if zero_based else 1
    names = ["label", *(["qid"] if queries else []), *(f"f{number}" for number in range(first, first + 7))]
    assert table.column_names == names
    assert table.column("label").to_pylist() == y.tolist()
    assert not queries or table.column("qid").to_pylist() == query.tolist()
    assert np.allclose(np.column_stack([table.column(name) for name in names[-7:]]), x, rtol=0, atol=1e-12)
    assert str(table.schema.field(f"f{first + 3}").type) == "int64"


def test_comments_blank_lines_and_order_do_not_count(parse):
    data = b"# made by a program\n+1 3:2 1:0.5 # first\n\n-1\t2:1e2   \r\n0 1:-7\n"
    assert parse(data)[1].to_pydict() == {
        "label": [1, -1, 0], "f1": [0.5, 0, -7], "f2": [0, 100, 0], "f3": [2, 0, 0],
    }  # fmt: skip


@pytest.mark.parametrize(("labels", "read"), [("1.5 2", [1.5, 2.0]), ("a 2", ["a", "2"]), ("1,2 2", ["1,2", "2"])])
def test_labels_are_numbers_if_all_are(parse, labels, read):
    data = "".join(f"{label} 1:3\n" for label in labels.split())
    assert parse(data.encode(), name="table.libsvm")[1].column("label").to_pylist() == read


def test_batches_are_joined_in_order(parse, monkeypatch):
    monkeypatch.setattr("app.ingest.svmlight.BATCH_CELLS", 70)
    monkeypatch.setattr("app.ingest.svmlight.BLOCK_BYTES", 500)
    data = "".join(f"{number} qid:{number // 9} {1 + number % 7}:{number + 1}\n" for number in range(400))
    table = parse(data.encode())[1]
    assert table.column("label").to_pylist() == list(range(400))
    assert table.column("qid").to_pylist() == [number // 9 for number in range(400)]
    assert np.column_stack([table.column(f"f{number}") for number in range(1, 8)]).sum() == sum(range(1, 401))


@pytest.mark.parametrize(
    "line",
    ["3 2:1 SECRET", "3 2:SECRET", "3 x:1", "3 -1:1", "3 2:1 2:2", "3 2:nan", "3 2:1:1", "3:1 2:1", "3 2.5:1", "3 :1"],
)
def test_a_malformed_line_is_named(faults, line):
    data = f"1 1:1 # c\n\n2 1:2\n{line}\n".encode()
    assert faults(data, file_format="svmlight") == {"/line/4": "malformed_line"}


def test_a_table_too_wide_is_refused_with_numbers(parse):
    with pytest.raises(InvalidData) as refused:
        parse(b"1 1:1\n2 50000:1\n")
    (fault,) = refused.value.faults
    assert fault.code == "too_many_columns"
    assert "50000" in fault.detail
    assert "2000" in fault.detail
    with pytest.raises(InvalidData, match="3 rows"):
        parse(b"1 1:1\n" * 4, max_rows=3)


def test_lines_without_pairs_only_are_refused(faults):
    assert faults(b"1\n2\n", file_format="svmlight") == {"": "no_values"}


@pytest.mark.parametrize(
    "data", [b"1 12:30\n2 12:45\n3 13:00\n", b"a,b\n1:2,3\n", b"when;x\n1 2:3;4\n", b"note\nsee 1:2 and 3\nno 4:5\n"]
)
def test_times_and_words_with_colons_are_no_such_file(parse, data):
    assert parse(data)[0].reading.file_format == "csv"
