"""The Open Inference Protocol in MLServer's own types: they write our requests and read our answers.

MLServer asks for an old FastAPI, so it cannot stand beside ours: its wheel is fetched without its requirements, and of
it only the types are loaded, which need nothing but pydantic.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import orjson
import pytest

WHEEL = "mlserver==1.7.1"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory):
    """The module `mlserver.types`. Without the package index this fails, as the installation of the tests does."""
    folder = tmp_path_factory.mktemp("mlserver")
    fetch = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--target", folder, WHEEL]
    done = subprocess.run(fetch, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{WHEEL} could not be fetched: {done.stderr[-2000:]}"
    place = Path(folder) / "mlserver" / "types"
    found = importlib.util.spec_from_file_location(
        "mlserver_types", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == found.name]:
        del sys.modules[name]


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


def asked(types, inputs, **more):
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


def test_what_is_there(client, mlserver, model):
    server = exactly(mlserver.MetadataServerResponse, client.get("/v2").content)
    assert "binary_tensor_data" in server.extensions
    for path in (f"/v2/models/{model}", f"/v2/models/{model}/versions/1"):
        told = exactly(mlserver.MetadataModelResponse, client.get(path).content)
        assert (told.name, told.versions) == (model, ["1"])
        for tensor in [*told.inputs, *told.outputs]:
            assert mlserver.Datatype(tensor.datatype)


@pytest.mark.parametrize("path", ["", "/versions/1"])
def test_their_request_and_our_answer(client, mlserver, model, path):
    told = mlserver.MetadataModelResponse.model_validate_json(client.get(f"/v2/models/{model}").content)
    body = asked(mlserver, told.inputs, outputs=[mlserver.RequestOutput(name=one.name) for one in told.outputs])
    response = client.post(
        f"/v2/models/{model}{path}/infer", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 200, response.text
    answer = exactly(mlserver.InferenceResponse, response.content)
    assert (answer.model_name, answer.model_version, answer.id) == (model, "1", "r-1")
    assert [(one.name, one.datatype, len(one.shape)) for one in answer.outputs] == [
        (one.name, one.datatype, len(one.shape)) for one in told.outputs
    ]
    for one in answer.outputs:
        count = 1
        for length in one.shape:
            count *= length
        assert one.shape[0] == 3
        assert len(one.data.root) == count


def test_our_refusals_are_theirs(client, mlserver, model):
    told = mlserver.MetadataModelResponse.model_validate_json(client.get(f"/v2/models/{model}").content)
    short = mlserver.InferenceRequest.model_validate_json(asked(mlserver, told.inputs))
    short.inputs[0].shape = [2]
    refused = client.post(f"/v2/models/{model}/infer", json=short.model_dump())
    assert refused.status_code == 400
    assert mlserver.InferenceErrorResponse.model_validate_json(refused.content).error
    gone = client.get("/v2/models/no-such")
    assert gone.status_code == 404
    assert mlserver.MetadataModelErrorResponse.model_validate_json(gone.content).error
