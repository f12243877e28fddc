"""The Open Inference Protocol in MLServer's own types and codecs: they write requests and read responses.

MLServer requires an old FastAPI, so it cannot be installed beside ours: its wheel is fetched without its requirements,
and only its types and codecs are imported, which need pydantic, numpy and pandas.
"""

import importlib
import subprocess
import sys
from types import ModuleType
from uuid import uuid4

import numpy as np
import orjson
import pandas as pd
import pytest

WHEEL = "mlserver==1.7.1"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory):
    """The packages `mlserver.types` and `mlserver.codecs`.

    Without the package index this fails, as the installation of the tests does.
    """
    folder = tmp_path_factory.mktemp("mlserver")
    fetch = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--target", folder, WHEEL]
    done = subprocess.run(fetch, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{WHEEL} could not be fetched: {done.stderr[-2000:]}"
    package = sys.modules["mlserver"] = ModuleType("mlserver")  # its own __init__ imports the server
    package.__path__ = [str(folder / "mlserver")]
    package.types = importlib.import_module("mlserver.types")
    package.codecs = importlib.import_module("mlserver.codecs")
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlserver"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def types(mlserver):
    return mlserver.types


KINDS = [("logistic", "species"), ("ridge", "length"), ("kmeans", None), ("pca", None), ("decision_tree", "size")]


@pytest.fixture(scope="module", params=KINDS, ids=[name for name, _ in KINDS])
def model(request, services, publish):
    algorithm, target = request.param
    name = f"t-{uuid4()}"
    publish(services.work, name, algorithm=algorithm, target=target)
    return name


def exactly(kind, body):
    """Read by their type; nothing is lost on the way, so nothing is there that they do not know."""
    read = kind.model_validate_json(body)
    assert orjson.loads(read.model_dump_json(exclude_none=False)) == orjson.loads(body)
    return read


VALUES = {"length": [5.1, None, 6.5], "width": [0.2, 1.1, 2.1], "size": ["small", "large", "naïve"]}


def infer_request(types, inputs, **more):
    """A request by their types, for the tensors that the metadata names, as it is sent."""
    tensors = [
        types.RequestInput(
            name=one.name,
            shape=[3],
            datatype=one.datatype,
            parameters=types.Parameters(content_type="str" if one.datatype == "BYTES" else "np"),
            data=VALUES.get(one.name, ["setosa"] * 3),
        )
        for one in inputs
    ]
    return types.InferenceRequest(id="r-1", inputs=tensors, **more).model_dump_json()


def test_what_is_there(client, types, model):
    server = exactly(types.MetadataServerResponse, client.get("/v2").content)
    assert "binary_tensor_data" in server.extensions
    for path in (f"/v2/models/{model}", f"/v2/models/{model}/versions/1"):
        result = exactly(types.MetadataModelResponse, client.get(path).content)
        assert (result.name, result.versions) == (model, ["1"])
        for tensor in [*result.inputs, *result.outputs]:
            assert types.Datatype(tensor.datatype)


@pytest.mark.parametrize("path", ["", "/versions/1"])
def test_their_request_and_our_response(client, types, model, path):
    result = types.MetadataModelResponse.model_validate_json(client.get(f"/v2/models/{model}").content)
    body = infer_request(types, result.inputs, outputs=[types.RequestOutput(name=one.name) for one in result.outputs])
    response = client.post(
        f"/v2/models/{model}{path}/infer", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 200, response.text
    reply = exactly(types.InferenceResponse, response.content)
    assert (reply.model_name, reply.model_version, reply.id) == (model, "1", "r-1")
    assert [(one.name, one.datatype, len(one.shape)) for one in reply.outputs] == [
        (one.name, one.datatype, len(one.shape)) for one in result.outputs
    ]
    for one in reply.outputs:
        count = 1
        for length in one.shape:
            count *= length
        assert one.shape[0] == 3
        assert len(one.data.root) == count


def test_our_refusals_are_theirs(client, types, model):
    result = types.MetadataModelResponse.model_validate_json(client.get(f"/v2/models/{model}").content)
    short = types.InferenceRequest.model_validate_json(infer_request(types, result.inputs))
    short.inputs[0].shape = [2]
    refused = client.post(f"/v2/models/{model}/infer", json=short.model_dump())
    assert refused.status_code == 400
    assert types.InferenceErrorResponse.model_validate_json(refused.content).error
    gone = client.get("/v2/models/no-such")
    assert gone.status_code == 404
    assert types.MetadataModelErrorResponse.model_validate_json(gone.content).error


def infer_with(client, types, model, request):
    response = client.post(f"/v2/models/{model}/infer", content=request.model_dump_json(), headers=JSON)
    assert response.status_code == 200, response.text
    return types.InferenceResponse.model_validate_json(response.content)


@pytest.mark.parametrize("algorithm", ["ridge", "kmeans", "pca", "logistic", "decision_tree"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8"])
def test_a_numpy_array_goes_through_their_request_codec_and_back(client, mlserver, numeric, algorithm, dtype):
    targets = {"ridge": "z", "kmeans": None, "pca": None}
    model = numeric(algorithm, targets.get(algorithm, "label"))
    width = client.get(f"/v2/models/{model}").json()["inputs"][0]["shape"][1]
    rows = np.arange(1, 1 + 2 * width).reshape(2, width).astype(dtype)
    codec = mlserver.codecs.NumpyRequestCodec
    response = infer_with(client, mlserver.types, model, codec.encode_request(rows))
    expected = client.post(
        f"/v1/models/{model}/predict", json={"columns": ["x", "y", "z"][:width], "data": rows.tolist()}
    ).json()["predictions"]
    assert codec.decode_response(response).tolist() == expected


def test_nan_in_a_numpy_array_is_a_missing_value(client, mlserver, numeric):
    codec = mlserver.codecs.NumpyRequestCodec
    found = codec.decode_response(
        infer_with(client, mlserver.types, numeric(), codec.encode_request(np.array([[np.nan, 0.5, 1.0]])))
    )
    v1 = client.post(f"/v1/models/{numeric()}/predict", json={"rows": [{"x": None, "y": 0.5, "z": 1}]}).json()
    assert found.tolist() == v1["predictions"]


def test_outputs_that_are_named_come_whatever_the_codec(client, mlserver, numeric):
    request = mlserver.codecs.NumpyRequestCodec.encode_request(np.ones((1, 3)))
    request.outputs = [mlserver.types.RequestOutput(name=name) for name in ("predict_proba", "predict")]
    response = infer_with(client, mlserver.types, numeric(), request)
    assert [one.name for one in response.outputs] == ["predict_proba", "predict"]


def test_a_data_frame_goes_through_their_request_codec_and_back(client, mlserver, services, publish):
    model = f"t-{uuid4()}"
    publish(services.work, model)
    frame = pd.DataFrame({"length": [5.1, None], "width": [1, 2], "size": pd.Series(["small", "naïve"], dtype=object)})
    codec = mlserver.codecs.PandasCodec
    found = codec.decode_response(infer_with(client, mlserver.types, model, codec.encode_request(frame)))
    rows = {"columns": list(frame), "data": [[5.1, 1, "small"], [None, 2, "naïve"]]}
    assert list(found) == ["predict"]
    assert found["predict"].tolist() == client.post(f"/v1/models/{model}/predict", json=rows).json()["predictions"]


def test_booleans_are_no_numbers(client, mlserver, numeric):
    request = mlserver.codecs.NumpyRequestCodec.encode_request(np.ones((1, 3), bool))
    response = client.post(f"/v2/models/{numeric()}/infer", content=request.model_dump_json(), headers=JSON)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "/inputs/0/datatype"
    assert "send a numeric datatype" in response.json()["error"]


@pytest.mark.parametrize("kind", ["base64", "pd_json"])
def test_strings_that_are_encoded_once_more_are_refused(client, mlserver, services, publish, kind):
    model = f"t-{uuid4()}"
    publish(services.work, model)
    size = mlserver.codecs.Base64Codec.encode_input("size", [b"small"])
    size.parameters.content_type = kind
    size.shape = [1]
    numbers = [mlserver.codecs.NumpyCodec.encode_input(name, np.array([1.5])) for name in ("length", "width")]
    request = mlserver.types.InferenceRequest(inputs=[*numbers, size])
    response = client.post(f"/v2/models/{model}/infer", content=request.model_dump_json(), headers=JSON)
    assert response.status_code == 400, response.text
    assert response.json()["errors"][0]["pointer"] == "/inputs/2/parameters/content_type"
