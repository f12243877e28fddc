"""CSV and npy in, npy and Arrow out: the same responses as JSON, and the same refusals."""

import io
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
COLUMNS = ["length", "width", "size"]
DATA = [[5.1, 0.2, "small"], [None, 2, "large, or so"], [6.5, 2.1, "large"], [100, 0.2, "5"]]
TABLE = 'size,length,width,extra\nsmall,5.1,0.2,x\n"large, or so",,2,\nlarge,6.5e0,2.1,\r\n\n5,100,.2,"1"\n'


@pytest.fixture(scope="module")
def mixed(services, publish):
    names = {}

    def name(algorithm="logistic", target="species"):
        if (algorithm, target) not in names:
            names[algorithm, target] = f"f-{uuid4()}"
            publish(services.work, names[algorithm, target], algorithm=algorithm, target=target)
        return names[algorithm, target]

    return name


@pytest.fixture(scope="module")
def numeric(services):
    """The name of a model of two numbers, and its inputs."""
    from app.ml.contract.columns import TableColumn
    from app.ml.training.planning.plan import plan
    from app.ml.training.planning.train_spec import TrainSpec
    from app.ml.training.train import train

    x = np.linspace(-2, 2, 60)
    table = pa.table({"x": x, "y": np.cos(x), "label": np.where(x > 0, "up", "down").astype(str).tolist()})
    columns = [TableColumn("x", "numeric", 0, 60), TableColumn("y", "numeric", 0, 60)]
    columns.append(TableColumn("label", "categorical", 0, 2))
    spec = TrainSpec.model_validate({"target": "label", "algorithm": {"name": "logistic"}})
    made, name = train(plan(spec, columns, table.num_rows), table, data_digest="sha256:" + "0" * 64), f"f-{uuid4()}"
    with services.work() as w:
        w.models.add_version(
            model=name, job_id=uuid4(), dataset_id=uuid4(), blob=made.blob, report=made.report, golden=made.golden
        )
    return name


@pytest.fixture
def ask(client):
    def send(model, content, kind, accept=None, **query):
        headers = {"Content-Type": kind} | ({} if accept is None else {"Accept": accept})
        return client.post(f"/v1/models/{model}/predict", content=content, headers=headers, params=query)

    return send


@pytest.fixture
def by_json(client):
    def send(model, columns, data, accept="application/json", **query):
        body = {"columns": columns, "data": data}
        return client.post(f"/v1/models/{model}/predict", json=body, headers={"Accept": accept}, params=query)

    return send


def npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def refused(response, status, code):
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return [(error["pointer"], error["code"]) for error in response.json()["errors"]]


def table_of(response):
    assert response.headers["content-type"] == ARROW
    return pa.ipc.open_stream(response.content).read_all()


def test_csv_is_predicted_as_json_is(ask, by_json, mixed):
    response = ask(mixed(), TABLE.encode(), "text/csv; charset=UTF-8")
    assert response.content == by_json(mixed(), COLUMNS, DATA).content
    assert response.headers["x-ignored-columns"] == "extra"
    assert ask(mixed(), b"\xef\xbb\xbf" + TABLE.encode(), "text/csv").content == response.content


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("small,one,0.2", [("/data/0/1", "not_a_number")]),
        ("small,9223372036854775808,1", [("/data/0/1", "inexact_number")]),
        ("small,1", [("/data/0", "ragged_row")]),
    ],
)
def test_nothing_is_guessed_in_csv(ask, mixed, line, faults):
    assert refused(ask(mixed(), f"size,length,width\n{line}\n".encode(), "text/csv"), 422, "invalid_data") == faults
    body = f"size,length,width\n{line}\n{line}\nsmall,5\n".encode()
    assert ask(mixed(), body, "text/csv", on_error="null").json()["predictions"] == [None, None, None]


@pytest.mark.parametrize("line", ["small,nan,inf", "small,1_0,0x1", "small,5?,1e999", "small,NA,"])
def test_what_an_upload_reads_as_missing_is_missing_in_csv_with_a_flag(ask, by_json, mixed, line):
    given = ask(mixed(), f"size,length,width\n{line}\n".encode(), "text/csv").json()
    plain = by_json(mixed(), ["size", "length", "width"], [["small", None, None]]).json()
    assert (given["predictions"], given["flags"]) == (plain["predictions"], plain["flags"])
    assert given["flags"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"size,length\nsmall,1\n", 422, "invalid_data"),
        (b"size,size,length,width\na,a,1,1\n", 422, "invalid_request"),
        (b"size,length,width\n", 422, "invalid_request"),
        (b"\n\n", 422, "invalid_request"),
        (b"size,length,width\n\0,1,1\n", 400, "nul_character"),
        (b"size,length,width\n\xff,1,1\n", 400, "invalid_encoding"),
        (b'size,length,width\n"a,1,1\n', 400, "malformed_table"),
        (b"size\n" + b"a" * 200_000, 400, "malformed_table"),
    ],
)
def test_csv_that_is_refused(ask, mixed, body, status, code):
    refused(ask(mixed(), body, "text/csv"), status, code)


def test_csv_is_read_in_the_charset_that_it_names(ask, mixed):
    plain = ask(mixed(), TABLE.encode(), "text/csv")
    assert ask(mixed(), TABLE.encode("utf-16"), "text/csv; charset=utf-16").content == plain.content
    refused(ask(mixed(), TABLE.encode(), "text/csv; charset=klingon"), 415, "unsupported_media_type")


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "<i8", "<u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_served_as_json_is(ask, by_json, numeric, dtype, order):
    values = np.asarray([[1, 2], [0, 1], [3, 0]], dtype, order=order)
    response = ask(numeric, npy(values), NPY)
    assert response.content == by_json(numeric, ["x", "y"], values.tolist()).content


def test_nan_is_null(ask, by_json, numeric):
    response = ask(numeric, npy(np.array([[np.nan, 0.5]])), NPY)
    assert response.content == by_json(numeric, ["x", "y"], [[None, 0.5]]).content


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (npy(np.zeros((1, 3))), 422, "invalid_data"),
        (npy(np.zeros((0, 2))), 422, "invalid_data"),
        (npy(np.zeros(2)), 422, "invalid_data"),
        (npy(np.array([[1, 2**63]], np.uint64)), 422, "invalid_data"),
        (npy(np.zeros((1, 2, 1))), 400, "malformed_table"),
        (npy(np.zeros((1, 2), "M8[s]")), 400, "malformed_table"),
        (npy(np.zeros((1, 2), bool)), 400, "malformed_table"),
        (npy(np.zeros((1, 2)))[:-1], 400, "malformed_table"),
        (npy(np.zeros((1, 2))) + b"\0", 400, "malformed_table"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8'}", 400, "malformed_table"),
        (b"no array", 400, "malformed_table"),
    ],
)
def test_npy_that_is_refused(ask, numeric, body, status, code):
    refused(ask(numeric, body, NPY), status, code)


def test_bad_cells_of_an_array_have_their_place(ask, numeric):
    body = npy(np.array([[1, 2], [2**63, 2], [0, 1]], np.uint64))
    assert refused(ask(numeric, body, NPY), 422, "invalid_data") == [("/data/1/0", "inexact_number")]
    given = ask(numeric, body, NPY, on_error="null").json()
    assert [one is None for one in given["predictions"]] == [False, True, False]


def test_infinite_numbers_of_an_array_are_missing(ask, numeric):
    infinite, missing = (ask(numeric, npy(np.array([[1, number]])), NPY) for number in (np.inf, np.nan))
    assert infinite.status_code == 200
    assert infinite.content == missing.content


def test_npy_is_for_numbers(ask, mixed):
    refused(ask(mixed(), npy(np.zeros((1, 3))), NPY), 422, "invalid_data")


@pytest.mark.parametrize(
    ("algorithm", "target"),
    [("logistic", "species"), ("ridge", "length"), ("kmeans", None), ("pca", None)],
)
def test_responses_as_arrays_and_tables(by_json, mixed, algorithm, target):
    model = mixed(algorithm, target)
    columns, data = [*COLUMNS, "species"], [[*row, "setosa"] for row in DATA[:3]] + [[1, 1, True, "setosa"]]
    given = by_json(model, columns, data, on_error="null").json()
    array = np.load(io.BytesIO(by_json(model, columns, data, NPY, on_error="null").content), allow_pickle=False)
    numbers = given.get("probabilities", given["predictions"])
    width = np.shape(numbers[0])
    expected = [np.full(width, np.nan) if one is None else one for one in numbers]
    np.testing.assert_array_equal(array, np.array(expected, np.float64))
    response = by_json(model, columns, data, ARROW, on_error="null")
    table = table_of(response)
    assert table["prediction"].to_pylist() == given["predictions"]
    assert table.schema.metadata[b"version"] == b"1"
    assert response.headers["x-model-version"] == "1"
    for place, label in enumerate(given.get("classes", [])):
        assert table[f"probability_{label}"].to_pylist() == [row and row[place] for row in given["probabilities"]]
    flags = [[] for _ in data]
    for flag in given["flags"]:
        for row in flag["rows"]:
            flags[row].append(f"{flag['code']}:{flag['column']}")
    flags[3].append("not_a_string")
    assert table["flags"].to_pylist() == flags


def test_all_rows_may_be_bad(by_json, mixed):
    for accept in (NPY, ARROW):
        assert by_json(mixed(), COLUMNS, [[1, 1, True]], accept, on_error="null").status_code == 200


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("application/*", "application/json"),
        (f"{NPY}, application/json;q=0.5", NPY),
        (f"{NPY};q=0.2, application/json;q=0.5, {ARROW};q=0.7", ARROW),
        ("application/json;q=0, */*", NPY),
        (ARROW.upper(), ARROW),
    ],
)
def test_the_caller_chooses(by_json, mixed, accept, kind):
    assert by_json(mixed(), COLUMNS, DATA, accept).headers["content-type"] == kind


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/*;q=1", "application/json;q=x"])
def test_what_there_is_not(by_json, mixed, accept):
    refused(by_json(mixed(), COLUMNS, DATA, accept), 406, "not_acceptable")
