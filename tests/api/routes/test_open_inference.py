"""The Open Inference Protocol: the same responses as /v1, in tensors; and nothing hostile gets further than a 4xx."""

import math
import struct
from uuid import uuid4

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ml.contract.model_reference import VersionRef
from app.schemas.open_inference import ModelMetadata

JSON_BYTES = "Inference-Header-Content-Length"
COLUMNS = ("x", "y", "z")
"""Of the models of numbers."""


@pytest.fixture(scope="module")
def mixed(services, publish):
    name = f"v-{uuid4()}"
    publish(services.work, name)
    return name


@pytest.fixture
def infer(client):
    def ask(model, *inputs, payload=b"", headers=None, path="", **more):
        text = orjson.dumps({"inputs": list(inputs)} | more)
        sent = {JSON_BYTES: str(len(text))} if payload else {"Content-Type": "application/json"}
        return client.post(f"/v2/models/{model}{path}/infer", content=text + payload, headers=sent | (headers or {}))

    return ask


def tensor(name, shape, datatype, data=None, **parameters):
    made = {"name": name, "shape": shape, "datatype": datatype}
    return made | ({} if data is None else {"data": data}) | ({"parameters": parameters} if parameters else {})


def outputs(response):
    assert response.status_code == 200, response.text
    return {output["name"]: output for output in response.json()["outputs"]}


def refusal(response, status, code):
    assert response.status_code == status, response.text
    given = response.json()
    assert given["code"] == code
    assert given["error"] == given["detail"]
    return [error["pointer"] for error in given["errors"]]


def test_large_binary_tensors_are_served_alike_on_the_event_loop_and_off_it(client, numeric, infer):
    name, rows = numeric(), np.random.default_rng(0).normal(size=(4000, 3))
    predictions = client.app.services.predictions
    paces, digest = predictions._paces, predictions.pointers.fetch(VersionRef(name)).result().digest
    requested = tensor("input-0", [*rows.shape], "FP64", binary_data_size=rows.nbytes)
    messages = outputs(infer(name, tensor("input-0", [*rows.shape], "FP64", rows.tolist())))
    assert digest not in paces
    for pace in (math.inf, 0.0):  # of those before
        paces[digest] = pace
        assert outputs(infer(name, requested, payload=rows.tobytes())) == messages
        assert (paces.pop(digest) < math.inf) == (pace < math.inf)


ROWS = [[0.1, 0.2, 3.0], [-1.5, 1 / 3, 6.0], [1e-17, -0.7, 0.0]]


@pytest.mark.parametrize(
    ("algorithm", "target"),
    [("logistic", "label"), ("decision_tree", "label"), ("ridge", "z"), ("kmeans", None), ("pca", None)],
)
def test_every_form_gives_the_bits_of_v1(client, numeric, infer, algorithm, target):
    name = numeric(algorithm, target)
    columns = [column for column in COLUMNS if column != target]
    rows = [row[: len(columns)] for row in ROWS]
    v1 = client.post(f"/v1/models/{name}/predict", json={"columns": columns, "data": rows}).json()
    shape, flat = [3, len(columns)], [value for row in rows for value in row]
    packed = np.array(rows).tobytes()
    per_column = [
        tensor(column, [3], "FP64", [row[place] for row in rows], content_type="pd")
        for place, column in enumerate(columns)
    ]
    forms = [
        infer(name, tensor("input-0", shape, "FP64", rows)),
        infer(name, tensor("input-0", shape, "FP64", flat)),
        infer(name, tensor("input-0", shape, "FP64", binary_data_size=len(packed)), payload=packed),
        infer(name, *per_column),
        infer(name, *reversed([column | {"shape": [3, 1]} for column in per_column])),
        infer(name, tensor("input-0", shape, "FP64", rows), path="/versions/1"),
    ]
    for form in forms:
        found = outputs(form)
        assert found["predict"]["data"] == np.ravel(v1["predictions"]).tolist()
        assert ("predict_proba" in found) == ("probabilities" in v1)
        if "probabilities" in v1:
            assert found["predict_proba"]["data"] == np.ravel(v1["probabilities"]).tolist()
        assert form.headers["x-model-version"] == form.json()["model_version"] == "1"
        assert form.json()["model_name"] == name


def test_flags_are_an_output_on_request(client, numeric, infer):
    name, rows = numeric("ridge", "z"), [[0.1, 0.2], [None, 1e9]]
    sent = tensor("input-0", [2, 2], "FP64", rows)
    direct = client.post(f"/v1/models/{name}/predict", json={"columns": ["x", "y"], "data": rows}).json()
    assert {(flag["code"], flag["column"]) for flag in direct["flags"]} == {("outside_range", "y"), ("imputed", "x")}
    found = infer(name, sent, outputs=[{"name": "flags"}, {"name": "predict"}]).json()["outputs"]
    assert found[0] == {
        "name": "flags",
        "shape": [2],
        "datatype": "BYTES",
        "data": ["", "outside_range:y imputed:x"],
    }
    assert found[1]["data"] == direct["predictions"]
    response = infer(name, sent, outputs=[{"name": "flags", "parameters": {"binary_data": True}}])
    texts = response.content[int(response.headers[JSON_BYTES]) :]
    assert texts == struct.pack("<I", 0) + struct.pack("<I", 25) + b"outside_range:y imputed:x"
    assert "flags" not in outputs(infer(name, sent))


@pytest.mark.parametrize(
    ("algorithm", "target"),
    [("logistic", "label"), ("decision_tree", "label"), ("ridge", "z"), ("kmeans", None), ("pca", None)],
)
def test_metadata_describes_what_infer_takes_and_gives(client, numeric, infer, algorithm, target):
    name = numeric(algorithm, target)
    metadata = client.get(f"/v2/models/{name}").json()
    ModelMetadata.model_validate(metadata)
    assert metadata == client.get(f"/v2/models/{name}/versions/1").json()
    [taken] = metadata["inputs"]
    width = taken["shape"][1]
    assert taken["parameters"]["columns"] == [column for column in COLUMNS if column != target]
    named = [{"name": one["name"]} for one in metadata["outputs"]]
    matrix = tensor(taken["name"], [2, width], taken["datatype"], [1] * 2 * width)
    found = infer(name, matrix, outputs=named).json()["outputs"]
    usual = infer(name, matrix).json()["outputs"]
    assert usual == [one for one in found if one["name"].startswith("predict")], "others come where they are named"
    described = [(o["name"], o["datatype"], [2, *o["shape"][1:]]) for o in metadata["outputs"]]
    assert [(o["name"], o["datatype"], o["shape"]) for o in found] == described


@pytest.mark.parametrize("name", ["input-0", "input-1", "x", "predict"])
def test_one_numeric_tensor_of_two_dimensions_is_the_matrix_whatever_its_name(numeric, infer, name):
    flat, packed = [value for row in ROWS for value in row], np.array(ROWS).tobytes()
    expected = infer(numeric(), tensor("input-0", [3, 3], "FP64", ROWS))
    for form in (
        infer(numeric(), tensor(name, [3, 3], "FP64", ROWS)),
        infer(numeric(), tensor(name, [3, 3], "FP64", flat)),
        infer(numeric(), tensor(name, [3, 3], "FP64", [*flat[:-1], 0])),  # read by the general reader
        infer(numeric(), tensor(name, [3, 3], "FP64", binary_data_size=len(packed)), payload=packed),
    ):
        assert outputs(form) == outputs(expected)


def test_a_model_of_one_column_takes_it_in_every_form(numeric, infer):
    single = numeric("ridge", "z", ["x"])
    expected = outputs(infer(single, tensor("x", [2], "FP64", [5.5, 6.5])))
    for name, shape, data in (
        ("x", [2, 1], [5.5, 6.5]),
        ("x", [2, 1], [[5.5], [6.5]]),
        ("input-0", [2], [5.5, 6.5]),
        ("input-7", [2, 1], [5.5, 6.5]),
        ("predict", [2], [5.5, 6.5]),
    ):
        assert outputs(infer(single, tensor(name, shape, "FP64", data))) == expected


def test_one_column_of_several_is_no_matrix(numeric, infer):
    assert refusal(infer(numeric(), tensor("x", [2, 1], "FP64", [1, 2])), 422, "invalid_data") == ["/inputs"]


def test_classes_of_the_probabilities_are_in_the_metadata(client, numeric, mixed, infer):
    for name in (numeric(), mixed):
        labels, odds = client.get(f"/v2/models/{name}").json()["outputs"]
        v1 = client.get(f"/v1/models/{name}/versions/1").json()
        assert "parameters" not in labels
        assert odds["parameters"] == {"labels": sorted(odds["parameters"]["labels"])}
        assert len(odds["parameters"]["labels"]) == odds["shape"][1]
        assert v1["version"] == 1
    found = outputs(infer(numeric(), tensor("m", [3, 3], "FP64", ROWS)))
    columns = np.reshape(found["predict_proba"]["data"], (3, -1)).argmax(axis=1)
    named = client.get(f"/v2/models/{numeric()}").json()["outputs"][1]["parameters"]["labels"]
    assert [named[column] for column in columns] == found["predict"]["data"]
    [only] = client.get(f"/v2/models/{numeric('ridge', 'z')}").json()["outputs"]
    assert "parameters" not in only


def test_all_versions_are_named(client, services, publish):
    name = f"v-{uuid4()}"
    for seed in range(2):
        publish(services.work, name, seed=seed)
    assert sorted(client.get(f"/v2/models/{name}").json()["versions"]) == ["1", "2"]
    assert client.get(f"/v2/models/{name}/versions/1").json()["versions"] == ["1"]


def test_overload_is_refused_early(settings, services, numeric):
    from starlette.testclient import TestClient

    from app.main import create_app

    client, url = TestClient(create_app(settings, services)), f"/v2/models/{numeric()}/infer"
    places = services.admission._places
    services.admission.inside += places
    try:
        refused = client.post(url, json={"inputs": [MATRIX]})
    finally:
        services.admission.inside -= places
    assert refused.status_code == 503, refused.text
    assert refused.headers["retry-after"]
    assert client.post(url, json={"inputs": [MATRIX]}, headers={"X-Request-Timeout": "0"}).status_code == 422
    assert client.post(url, json={"inputs": [MATRIX]}, headers={"X-Request-Timeout": "5"}).status_code == 200


def test_columns_of_several_kinds(client, mixed, infer):
    inputs = client.get(f"/v2/models/{mixed}").json()["inputs"]
    assert [(i["name"], i["datatype"]) for i in inputs] == [("length", "FP64"), ("width", "FP64"), ("size", "BYTES")]
    rows = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"], [None, 2, "naïve"]]}
    v1 = client.post(f"/v1/models/{mixed}/predict", json=rows).json()
    sizes = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in ("small", "naïve"))
    numbers = np.array([5.1, np.nan]).tobytes()
    as_json = infer(
        mixed,
        tensor("length", [2], "FP64", [5.1, None]),
        tensor("width", [2, 1], "FP64", [[0.2], [2]]),
        tensor("size", [2], "BYTES", ["small", "naïve"]),
    )
    as_bytes = infer(
        mixed,
        tensor("size", [2], "BYTES", binary_data_size=len(sizes)),
        tensor("width", [2], "FP64", [0.2, 2]),
        tensor("length", [2], "FP64", binary_data_size=len(numbers)),
        payload=sizes + numbers,
    )
    for form in (as_json, as_bytes):
        assert outputs(form)["predict"]["data"] == v1["predictions"]
        assert outputs(form)["predict_proba"]["data"] == np.ravel(v1["probabilities"]).tolist()


def test_null_is_nan(numeric, infer, client):
    packed = np.array([np.nan, 0.5, 1.0]).tobytes()
    name = numeric()
    v1 = client.post(f"/v1/models/{name}/predict", json={"rows": [{"x": None, "y": 0.5, "z": 1}]}).json()
    for form in (
        infer(name, tensor("input-0", [1, 3], "FP64", [None, 0.5, 1])),
        infer(name, tensor("input-0", [1, 3], "FP64", binary_data_size=24), payload=packed),
    ):
        assert outputs(form)["predict_proba"]["data"] == v1["probabilities"][0]


@pytest.mark.parametrize("datatype", ["UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"])
@pytest.mark.parametrize("binary", [False, True])
def test_every_integer(numeric, infer, datatype, binary):
    dtype = datatype.lower()
    packed = np.array([1, 2, 3], dtype).tobytes() if binary else b""
    how = {"binary_data_size": len(packed)} if binary else {"data": [1, 2, 3]}
    found = infer(numeric(), tensor("input-0", [1, 3], datatype, **how), payload=packed)
    expected = infer(numeric(), tensor("input-0", [1, 3], "FP64", [1, 2, 3]))
    assert found.content == expected.content


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64"])
def test_every_float(numeric, infer, datatype):
    packed = np.array([0.1, 2, 3], f"f{int(datatype[2:]) // 8}").tobytes()
    binary = infer(numeric(), tensor("input-0", [1, 3], datatype, binary_data_size=len(packed)), payload=packed)
    assert binary.content == infer(numeric(), tensor("input-0", [1, 3], datatype, [0.1, 2, 3])).content


def test_booleans_and_binary_booleans(services):
    from app.formats.tensor_decoding import InvalidTensor, read_tensors
    from app.schemas.open_inference import InferInput

    requested = InferInput.model_validate(tensor("b", [3], "BOOL", binary_data_size=3))
    assert read_tensors([requested], memoryview(b"\0\1\1"))[0].values == [False, True, True]
    with pytest.raises(InvalidTensor):
        read_tensors([requested], memoryview(b"\0\1\2"))


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("INT64", [1, 2, 1.5]),
        ("INT64", [1, 2, 3.0]),
        ("INT64", [1, 2, None]),
        ("INT8", [1, 2, 128]),
        ("UINT8", [1, 2, -1]),
        ("FP16", [1, 2, 70000.5]),
        ("FP16", [1, 2, 2049]),
        ("FP32", [1, 2, 2**24 + 1]),
        ("FP64", [1, 2, 2**63]),
        ("FP64", [1, 2, True]),
        ("FP64", [1, 2, "3"]),
        ("FP64", [1, 2, [3]]),
        ("FP64", [[1, 2], [3]]),
        ("FP64", [[1, 2, 3], [1, 2, 3]]),
        ("FP64", [1, 2]),
        ("FP64", []),
        ("BOOL", [True, True, False]),
        ("BYTES", ["1", "2", "3"]),
        ("BYTES", [1, 2, 3]),
        ("BF16", [1, 2, 3]),
        ("fp64", [1, 2, 3]),
    ],
)
def test_nothing_is_rounded_or_guessed(numeric, infer, datatype, data):
    assert refusal(infer(numeric(), tensor("input-0", [1, 3], datatype, data)), 400, "invalid_tensor")


@pytest.mark.parametrize(
    ("sent", "places", "words"),
    [
        (([2, 3], "INT64", [1, None, 3, 4, 5, 0.5]), ["1", "5"], "send FP64 with null"),
        (([2, 3], "INT8", [[1, 2, 3], [4, 500, True]]), ["1/1", "1/2"], "INT8 cannot hold this number"),
        (([2, 3], "FP64", [[1, 2, "3"], [False, 5, None]]), ["0/2", "1/0"], "FP64 takes numbers and null."),
        (([1, 3], "FP16", [1, 1e6, 2049]), ["1", "2"], "a wider datatype"),
        (([1, 3], "BYTES", ["a", 1, None]), ["1"], "BYTES takes strings and null."),
    ],
)
def test_every_value_that_does_not_fit_is_named(numeric, infer, sent, places, words):
    response = infer(numeric(), tensor("m", *sent))
    assert refusal(response, 400, "invalid_tensor") == [f"/inputs/0/data/{place}" for place in places]
    assert words in response.json()["error"]
    assert ("see errors" in response.json()["error"]) == (len(places) > 1)


def test_values_that_do_not_fit_are_looked_for_within_bounds(numeric, infer):
    data = [1] * 3 * 8000 + [0.5] * 3
    response = infer(numeric(), tensor("m", [8001, 3], "INT64", data))
    assert refusal(response, 400, "invalid_tensor") == ["/inputs/0/data"]


def test_names_that_fit_no_column_are_listed_with_those_that_lack_a_tensor(mixed, numeric, infer):
    numbers = [tensor(name, [1], "FP64", [1.5]) for name in ("length", "wdth", "more")]
    assert refusal(infer(mixed, *numbers), 422, "invalid_data") == ["/inputs", "/inputs/1/name", "/inputs/2/name"]
    refused = infer(mixed, tensor("m", [1, 3], "FP64", [1, 2, 3]))
    assert refusal(refused, 422, "invalid_data") == ["/inputs", "/inputs/0/name"]
    assert "length, width, size" in refused.json()["error"]
    four = [tensor(name, [1], "FP64", [1]) for name in ("x", "a", "y", "z", "b")]
    assert refusal(infer(numeric(), *four), 400, "invalid_tensor") == ["/inputs/1/name", "/inputs/4/name"]


@pytest.mark.parametrize("shape", [[3], [2, 2], [3, 1]])
def test_a_matrix_of_another_shape_is_refused_with_what_it_should_be(numeric, infer, shape):
    response = infer(numeric(), tensor("m", shape, "FP64", [1] * math.prod(shape)))
    assert refusal(response, 400, "invalid_tensor") == ["/inputs/0/shape"]
    assert "the matrix has 3 columns (x, y, z)" in response.json()["error"]


def test_values_a_column_does_not_take(numeric, mixed, infer):
    beyond = infer(numeric(), tensor("input-0", [2, 3], "UINT64", [[1, 2, 3], [1, 2**63, 3]]))
    assert refusal(beyond, 422, "invalid_data") == ["/inputs/0/data/1/1"]
    numbers = [tensor("length", [1], "FP64", [1.5]), tensor("width", [1], "FP64", [1])]
    assert refusal(infer(mixed, *numbers, tensor("size", [1], "INT64", [1])), 422, "invalid_data") == [
        "/inputs/2/data/0"
    ]
    assert refusal(infer(mixed, *numbers), 422, "invalid_data") == ["/inputs"]


def test_infinite_numbers_are_missing_and_long_ones_the_nearest_floats(numeric, infer):
    name, packed = numeric(), np.array([1, np.inf, 3]).tobytes()
    missing = outputs(infer(name, tensor("input-0", [1, 3], "FP64", [1, None, 3])))
    assert outputs(infer(name, tensor("input-0", [1, 3], "FP64", binary_data_size=24), payload=packed)) == missing
    rounded = outputs(infer(name, tensor("input-0", [1, 3], "FP64", [1, 2**53, 3])))
    for datatype in ("INT64", "FP64"):
        assert outputs(infer(name, tensor("input-0", [1, 3], datatype, [1, 2**53 + 1, 3]))) == rounded


MATRIX = tensor("input-0", [1, 3], "FP64", [1, 2, 3])


@pytest.mark.parametrize(
    ("inputs", "more"),
    [
        ([MATRIX, MATRIX], {}),
        ([MATRIX | {"shape": [3]}], {}),
        ([MATRIX | {"shape": [3, 1]}], {}),
        ([tensor("x", [1], "FP64", [1]), tensor("x", [1], "FP64", [1])], {}),
        ([tensor(name, [1], "FP64", [1]) for name in "xyzw"], {}),
        ([tensor("x", [1], "FP64", [1]), tensor("y", [2], "FP64", [1, 2]), tensor("z", [1], "FP64", [1])], {}),
        ([MATRIX], {"outputs": [{"name": "unknown"}]}),
        ([MATRIX], {"outputs": [{"name": "predict"}, {"name": "predict"}]}),
        ([MATRIX], {"outputs": [{"name": "predict", "parameters": {"binary_data": 1}}]}),
        ([MATRIX], {"outputs": [{"name": "predict", "parameters": {"classification": 2}}]}),
        ([MATRIX], {"parameters": {"binary_data_output": "yes"}}),
        ([MATRIX | {"data": None}], {}),
        ([MATRIX | {"parameters": {"binary_data_size": 24}}], {}),
        ([MATRIX | {"parameters": {"binary_data_size": True}}], {}),
        ([MATRIX | {"parameters": {"binary_data_size": -1}}], {}),
    ],
)
def test_what_does_not_fit_is_refused(numeric, infer, inputs, more):
    assert refusal(infer(numeric(), *inputs, **more), 400, "invalid_tensor")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"inputs": [NaN]}', 400),
        (b'{"inputs": [], "inputs": []}', 400),
        (b'{"inputs": "\\u0000"}', 400),
        (b"[]", 422),
        (b'{"inputs": []}', 422),
        (b'{"inputs": [{"name": "a", "shape": [0], "datatype": "FP64", "data": []}]}', 422),
        (b'{"inputs": [{"name": "a", "shape": ["1"], "datatype": "FP64", "data": [1]}]}', 422),
        (b'{"inputs": [{"name": "a", "shape": [true], "datatype": "FP64", "data": [1]}]}', 422),
        (b'{"inputs": [{"name": "a", "shape": [4294967296], "datatype": "FP64", "data": [1]}]}', 422),
        (b'{"inputs": [{"name": "a", "shape": [1,1,1], "datatype": "FP64", "data": [1]}]}', 422),
        (b'{"inputs": [1], "surprise": 1}', 422),
    ],
)
def test_json_is_read_strictly(client, numeric, body, status):
    response = client.post(f"/v2/models/{numeric()}/infer", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == status, response.text
    assert response.json()["error"]


@pytest.mark.parametrize("length", ["-1", "x", "", "1e2", "99999999", "9" * 30, "\u0663".encode(), "0", "5"])
def test_hostile_lengths(client, numeric, length):
    body = orjson.dumps({"inputs": [MATRIX]})
    response = client.post(f"/v2/models/{numeric()}/infer", content=body, headers={JSON_BYTES: length})
    assert response.status_code == 400, response.text


@pytest.mark.parametrize(
    "payload",
    [
        b"\0\0\0",
        b"\xff\xff\xff\xffabc",
        b"\2\0\0\0a",
        b"\1\0\0\0\xff",
        b"\1\0\0\0\0",
        b"\1\0\0\0a\0\0\0\0",
        b"\1\0\0\0ab",
    ],
)
def test_hostile_texts(mixed, infer, payload):
    numbers = [tensor("length", [1], "FP64", [1.5]), tensor("width", [1], "FP64", [1])]
    response = infer(mixed, *numbers, tensor("size", [1], "BYTES", binary_data_size=len(payload)), payload=payload)
    assert response.status_code == 400, response.text


def test_too_many_rows_are_refused_before_they_are_read(settings, services, numeric):
    from starlette.testclient import TestClient

    from app.main import create_app

    app = create_app(settings.model_copy(update={"max_predict_rows": 10, "max_body_bytes": 2000}), services)
    small, url = TestClient(app), f"/v2/models/{numeric()}/infer"
    for rows, status in ((10, 200), (11, 413), (2**31 - 1, 413)):
        body = {"inputs": [tensor("input-0", [rows, 3], "FP64", [0.5] * 30)]}
        assert small.post(url, json=body).status_code == status
    assert small.post(url, content=b" " * 2001, headers={"Content-Type": "application/json"}).status_code == 413


def test_requested_outputs_come_in_order_and_as_requested(numeric, infer):
    both = infer(numeric(), MATRIX, id="é-7", outputs=[{"name": "predict_proba"}, {"name": "predict"}])
    assert [output["name"] for output in both.json()["outputs"]] == ["predict_proba", "predict"]
    assert both.json()["id"] == "é-7"
    assert "id" not in infer(numeric(), MATRIX).json()
    expected = [{"name": "predict"}, {"name": "predict_proba", "parameters": {"binary_data": False}}]
    response = infer(numeric(), MATRIX, outputs=expected, parameters={"binary_data_output": True})
    end = int(response.headers[JSON_BYTES])
    labels, numbers = orjson.loads(response.content[:end])["outputs"]
    tail = response.content[end:]
    assert labels["parameters"]["binary_data_size"] == len(tail) == 4 + struct.unpack("<I", tail[:4])[0]
    assert tail[4:].decode() in ("up", "down")
    assert numbers["data"] == outputs(infer(numeric(), MATRIX))["predict_proba"]["data"]


def test_health_and_metadata(client, numeric):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    server = client.get("/v2").json()
    assert server == client.get("/v2/").json()
    assert server["name"] == "valiant"
    assert server["extensions"] == ["binary_tensor_data"]
    for path in ("", "/versions/1"):
        ready = client.get(f"/v2/models/{numeric()}{path}/ready")
        assert ready.json() == {"name": numeric(), "ready": True}
    for path in ("", "/ready", "/versions/2", "/versions/2/ready"):
        refusal(
            client.get(f"/v2/models/{'no-such' if 'versions' not in path else numeric()}{path}"),
            404,
            ("version_not_found" if "versions" in path else "model_not_found"),
        )


def test_not_ready_says_when_to_ask_again(settings, services):
    from starlette.testclient import TestClient

    from app.main import create_app

    app = create_app(settings, services)
    app.state.draining = True
    response = TestClient(app).get("/v2/health/ready")
    refusal(response, 503, "not_ready")
    assert int(response.headers["retry-after"]) > 0


TOO_LARGE = {"inputs": [tensor("m", [2**31 - 1, 3], "FP64", [0.5] * 30)]}
REFUSED = [
    ("GET", "/v2/nothing", {}, 404),
    ("GET", "/v2/models/no-such", {}, 404),
    ("GET", "/v2/models/no-such/ready", {}, 404),
    ("GET", "/v2/models/Not%20a%20name", {}, 422),
    ("GET", "/v2/models/{model}/versions/7", {}, 404),
    ("GET", "/v2/models/{model}/versions/7/ready", {}, 404),
    ("GET", "/v2/models/{model}/versions/x", {}, 422),
    ("GET", "/v2/models/{model}/infer", {}, 405),
    ("DELETE", "/v2", {}, 405),
    ("POST", "/v2/models/no-such/infer", {"json": {"inputs": [MATRIX]}}, 404),
    ("POST", "/v2/models/{model}/versions/7/infer", {"json": {"inputs": [MATRIX]}}, 404),
    ("POST", "/v2/models/{model}/versions/0/infer", {"json": {"inputs": [MATRIX]}}, 422),
    ("POST", "/v2/models/{model}/infer", {"json": {}}, 422),
    ("POST", "/v2/models/{model}/infer", {"json": {"inputs": [tensor("m", [1, 2], "FP64", [1, 2])]}}, 400),
    ("POST", "/v2/models/{model}/infer", {"json": TOO_LARGE}, 413),
    ("POST", "/v2/models/{model}/infer", {"content": b"{"}, 400),
    ("POST", "/v2/models/{model}/infer", {"content": b""}, 400),
    ("POST", "/v2/models/{model}/infer", {"content": b"1", "headers": {"Content-Type": "text/csv"}}, 415),
    ("POST", "/v2/models/{model}/infer", {"content": b"1", "headers": {"Content-Encoding": "br"}}, 415),
    ("POST", "/v2/models/{model}/infer", {"content": b"1", "headers": {"Content-Encoding": "gzip"}}, 400),
    ("POST", "/v2/models/{model}/infer", {"content": b"{}", "headers": {JSON_BYTES: "9"}}, 400),
    ("POST", "/v2/models/{model}/infer", {"json": {"inputs": [MATRIX]}, "headers": {"X-Request-Timeout": "0"}}, 422),
]


@pytest.mark.parametrize("refused", REFUSED, ids=range(len(REFUSED)))
def test_every_refusal_has_the_protocols_error_and_the_members_of_a_problem(client, numeric, refused):
    method, path, body, status = refused
    response = client.request(method, path.format(model=numeric()), **body)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    given = response.json()
    assert given["error"] == given["detail"]
    assert {"type", "title", "status", "detail", "code", "instance", "errors", "request_id"} <= given.keys()
    assert given["status"] == status


def test_other_media_types_are_refused(client, numeric):
    response = client.post(f"/v2/models/{numeric()}/infer", content=b"a,b", headers={"Content-Type": "text/csv"})
    refusal(response, 415, "unsupported_media_type")


SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=3)
)
TENSORS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["input-0", "x", "y", "z"]),
        "shape": st.sampled_from([[1, 3], [1], [2], [2, 3]]) | st.lists(st.integers(0, 4) | SCALARS, max_size=3),
        "datatype": st.sampled_from(["BOOL", "BYTES", "INT8", "UINT64", "FP16", "FP64", "?"]),
    },
    optional={
        "data": st.lists(SCALARS | st.lists(SCALARS, max_size=3), max_size=6),
        "parameters": st.fixed_dictionaries({}, optional={"binary_data_size": st.integers(0, 30) | SCALARS}),
    },
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    tensors=st.lists(TENSORS, max_size=3),
    parameters=st.dictionaries(st.sampled_from(["binary_data_output", "content_type"]), SCALARS),
    payload=st.sampled_from([b""]) | st.binary(max_size=60),
    shift=st.sampled_from([0, 0, 0, -3, 3]),
)
def test_no_input_is_a_fault_of_ours(client, numeric, tensors, parameters, **after):
    text = orjson.dumps({"inputs": tensors, "parameters": parameters})
    headers, payload = {JSON_BYTES: str(len(text) + after["shift"])}, after["payload"]
    response = client.post(f"/v2/models/{numeric()}/infer", content=text + payload, headers=headers)
    assert response.status_code in {200, 400, 413, 422}, response.text
