"""Arrow streams in: the responses and refusals of JSON, and nothing is unpacked beyond the size of a body."""

import io
from datetime import UTC, date, datetime
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def models(services, publish):
    """Names of a model of two numbers, of one with a category, and of one with a date and a truth."""
    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    names = {kind: f"a-{uuid4()}" for kind in ("numbers", "mixed", "times")}
    publish(services.work, names["mixed"])
    x = np.linspace(-2, 2, 60)
    label = np.where(x > 0, "up", "down").astype(str).tolist()
    days = [datetime(2020, 1, 1 + i % 28, tzinfo=UTC) for i in range(60)]
    tables = {
        "numbers": ({"x": x, "y": np.cos(x)}, ["numeric", "numeric"]),
        "times": ({"when": pa.array(days, pa.timestamp("us", "UTC")), "is": x > 1}, ["datetime", "boolean"]),
    }
    for kind, (columns, kinds) in tables.items():
        sheet = [TableColumn(name, of, 0, 60) for name, of in zip(columns, kinds, strict=True)]
        spec = TrainSpec.model_validate({"target": "label", "algorithm": {"name": "logistic"}})
        table = pa.table({**columns, "label": label})
        made = train(
            plan(spec, [*sheet, TableColumn("label", "categorical", 0, 2)], table.num_rows),
            table,
            data_digest="sha256:" + "0" * 64,
        )
        with services.work() as w:
            w.models.add_version(
                model=names[kind], job_id=uuid4(), dataset_id=uuid4(), blob=made.blob, report=made.report,
                golden=made.golden,
            )  # fmt: skip
    return names


@pytest.fixture
def ask(client, models):
    def send(kind, table, **query):
        content = table if isinstance(table, bytes) else stream(table)
        return client.post(
            f"/v1/models/{models[kind]}/predict", content=content, headers={"Content-Type": ARROW}, params=query
        )

    return send


@pytest.fixture
def by_json(client, models):
    return lambda kind, rows, **query: client.post(
        f"/v1/models/{models[kind]}/predict", json={"rows": rows}, params=query
    )


def stream(table, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return [(error["pointer"], error["code"]) for error in response.json()["errors"]]


ROWS = [{"x": 1.0, "y": 0.25}, {"x": None, "y": 2.0}, {"x": -3.0, "y": None}]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16(), pa.int64(), pa.uint8()])
def test_columns_of_numbers_are_found_by_name(ask, by_json, kind):
    rows = [{"x": 1, "y": 0}, {"x": None, "y": 2}, {"x": 3, "y": 1}]
    columns = {name: pa.array([row[name] for row in rows], pa.float64()).cast(kind) for name in "yx"}
    response = ask("numbers", pa.table({"more": ["a", "b", "c"], **columns}))
    assert response.content == by_json("numbers", rows).content
    assert response.headers["x-ignored-columns"] == "more"


@pytest.mark.parametrize("of", [pa.float64(), pa.float16(), pa.int32()])
def test_lists_are_rows(ask, by_json, of):
    rows = [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 0, "y": 1}]
    lists = pa.array([[row["x"], row["y"]] for row in rows], pa.list_(of, 2))
    assert ask("numbers", pa.table({"any": lists})).content == by_json("numbers", rows).content
    assert ask("numbers", pa.table({"any": lists}).slice(1)).content == by_json("numbers", rows[1:]).content


def test_nan_and_null_are_missing(ask, by_json):
    expected = by_json("numbers", ROWS).content
    lists = pa.array([[row["x"], row["y"]] for row in ROWS], pa.list_(pa.float64(), 2))
    gaps = {name: pa.array([np.nan if row[name] is None else row[name] for row in ROWS]) for name in "xy"}
    for table in (pa.Table.from_pylist(ROWS), pa.table(gaps), pa.table({"any": lists})):
        assert ask("numbers", table).content == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_categories_and_gaps_are_served_as_json_is(ask, by_json, kind):
    sizes, length, width = ["small", "large", "other", None], [5.1, None, 6, 7], [0, 2, 1, 3]
    table = pa.table({"size": pa.array(sizes).cast(kind), "width": pa.array(width), "length": pa.array(length)})
    assert ask("mixed", table).content == by_json("mixed", table.to_pylist()).content


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("s", "UTC"), pa.date32()]
)
def test_times_are_served_as_json_is(ask, by_json, kind):
    when = [date(2020, 1, 5), None, date(2021, 3, 1)]
    table = pa.table(
        {"when": pa.array(when, pa.date32()).cast(pa.timestamp("us")).cast(kind), "is": [True, None, False]}
    )
    rows = [
        {"when": one and f"{one}T00:00:00Z", "is": truth} for one, truth in zip(when, [True, None, False], strict=True)
    ]
    if kind == pa.timestamp("ns", "Europe/Berlin"):
        table = table.set_column(0, "when", pa.array(when).cast(pa.timestamp("us", "UTC")).cast(kind))
    assert ask("times", table).json()["probabilities"] == by_json("times", rows).json()["probabilities"]


def test_nothing_is_guessed(ask):
    numbers = pa.table({"x": [1.0, 2.0], "y": pa.array([2**63, 1], pa.uint64())})
    assert refused(ask("numbers", numbers), 422, "invalid_data") == [("/rows/0/y", "inexact_number")]
    given = ask("numbers", numbers, on_error="null").json()
    assert [one is None for one in given["predictions"]] == [True, False]
    for wrong in (["1"], [True]):
        table = pa.table({"x": wrong, "y": [1.0]})
        assert refused(ask("numbers", table), 422, "invalid_data") == [("/rows/0/x", "not_a_number")]


def test_infinite_numbers_are_missing_and_long_ones_the_nearest_floats(ask, by_json):
    table = pa.table({"x": [1.0, np.inf], "y": [2**53 + 1, 1]})
    expected = by_json("numbers", [{"x": 1, "y": 2**53 + 1}, {"x": None, "y": 1}]).content
    assert by_json("numbers", [{"x": 1, "y": 2**53}, {"x": None, "y": 1}]).content == expected
    assert ask("numbers", table).content == expected
    lists = pa.array([[1.0, 2.0**53], [np.inf, 1]], pa.list_(pa.float64(), 2))
    assert ask("numbers", pa.table({"any": lists})).content == expected


def two(name, *columns):
    return pa.Table.from_arrays([pa.array(column) for column in columns], names=name)


NUMBERS = pa.table({"x": [1.0, 2.0, 3.0], "y": [1.0, 0.0, 1.0]})


@pytest.mark.parametrize(
    ("table", "faults"),
    [
        (pa.table({"x": [1.0]}), [("/rows", "missing_columns")]),
        (pa.table({"z": [1.0]}), [("/rows", "missing_columns")]),
        (two(["x", "x", "y"], [1.0], [1.0], [1.0]), [("/columns/x", "duplicate_column")]),
        (pa.table({"x": [[1.0]], "y": [1.0]}), [("/columns/x", "column_type")]),
        (pa.table({"x": pa.array([1]).cast(pa.decimal128(20)), "y": [b"a"]}), [
            ("/columns/x", "column_type"), ("/columns/y", "column_type")]),
        (pa.table({"any": pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float64(), 3))}), [("/rows", "missing_columns")]),
        (pa.table({"any": pa.array([None], pa.list_(pa.float64(), 2))}), [("/rows", "missing_columns")]),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(ask, table, faults):
    assert refused(ask("numbers", table), 422, "invalid_data") == faults


def test_no_rows(ask):
    refused(ask("numbers", NUMBERS.slice(0, 0)), 422, "invalid_request")


def chunked():
    """A dictionary that grows with the second batch."""
    sink, texts = io.BytesIO(), pa.array(["a", "b", "c"])
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema({"size": kind})
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for size in (2, 3):
            column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), texts[:size])
            writer.write_batch(pa.record_batch([column], schema=schema))
    return sink.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        b"no stream",
        stream(NUMBERS)[:-20],
        stream(NUMBERS)[:300],
        stream(NUMBERS) + b"\0",
        stream(NUMBERS, compression="lz4"),
        stream(pa.table({"size": pa.array(["a" * 99] * 9).dictionary_encode()}), compression="zstd"),
        chunked(),
        stream(pa.table({"size": ["abc"]})).replace(b"abc", b"\xff\xff\xff"),
        b"\xff\xff\xff\xff\xf0\xff\xff\x7f" + bytes(64),
    ],
)
def test_streams_that_are_refused(ask, body):
    refused(ask("mixed", body), 400, "malformed_table")


def test_any_damage_has_a_response(ask):
    size, days = pa.array(["small", "large"]).dictionary_encode(), pa.array([0, 1], pa.timestamp("s", "UTC"))
    whole = stream(pa.table({"size": size, "length": [1.0, 2.0], "width": days}))
    rng = np.random.default_rng(0)
    for _ in range(150):
        body = bytearray(whole)
        for place in rng.integers(len(body), size=3).tolist():
            body[place] = int(rng.integers(256))
        assert ask("mixed", bytes(body)).status_code in {400, 413, 422}


def test_what_is_small_only_on_the_way_is_refused(ask, settings):
    from app.base.settings import MiB

    indices = pa.array(np.zeros(2000, np.int8))
    text = pa.DictionaryArray.from_arrays(indices, ["a" * MiB])
    gaps = pa.nulls(2000, pa.float64())
    refused(ask("mixed", pa.table({"size": text, "length": gaps, "width": gaps})), 413, "body_too_large")
    many = pa.table({"x": pa.nulls(settings.max_predict_rows + 1), "y": pa.nulls(settings.max_predict_rows + 1)})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, many.schema) as writer:
        writer.write_table(many)
    refused(ask("numbers", sink.getvalue()), 413, "body_too_large")
