"""`valiant serve` under the clients of other servers: NVIDIA's own, KServe's requests, MLServer's types and codecs."""

import httpx
import orjson
import pandas as pd
import pytest
from tritonclient.http import InferenceServerClient, InferRequestedOutput
from tritonclient.utils import InferenceServerException

from tests.api.routes.test_inference_clients import inputs, wanted
from tests.api.routes.test_inference_kserve import COLUMNS
from tests.api.routes.test_inference_types import JSON, exactly, infer_request, infer_with, mlserver
from tests.commands.test_serve_folder import serving

pytestmark = pytest.mark.slow
__all__ = ["mlserver"]  # a fixture of this file too
TABLE = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"], [6.5, 2.1, "naïve"]]}


@pytest.fixture(scope="module")
def client(tmp_path_factory, trained):
    root = tmp_path_factory.mktemp("models")
    (root / "own" / "1").mkdir(parents=True)
    (root / "own" / "1" / "model.safetensors").write_bytes(bytes(trained().blob))
    with serving(root) as connected:
        yield connected


@pytest.fixture(scope="module")
def triton(client):
    with InferenceServerClient(f"{client.base_url.host}:{client.base_url.port}") as connected:
        yield connected


@pytest.fixture(scope="module")
def expected(client):
    return client.post("/v1/models/own/predict", json=TABLE).raise_for_status().json()


@pytest.mark.parametrize("outward", [True, False, None], ids=["binary-back", "json-back", "all-back"])
@pytest.mark.parametrize("inward", [True, False], ids=["binary-in", "json-in"])
def test_tritons_client_infers_both_ways(triton, expected, inward, outward):
    outputs = None if outward is None else wanted(outward)
    result = triton.infer("own", inputs(inward), outputs=outputs, request_id="r-1", model_version="1")
    assert result.get_response()["id"] == "r-1"
    assert result.as_numpy("predict_proba").tolist() == expected["probabilities"]


def test_tritons_client_reads_metadata_and_refusals(triton):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("own", "1")
    assert not triton.is_model_ready("own", "2")
    assert [one["name"] for one in triton.get_model_metadata("own", "1")["outputs"]] == ["predict", "predict_proba"]
    with pytest.raises(InferenceServerException, match="outputs are predict, predict_proba"):
        triton.infer("own", inputs(binary=True), outputs=[InferRequestedOutput("unknown")])


@pytest.mark.parametrize(("body", "headers"), COLUMNS, ids=["json", "binary"])
def test_requests_of_kserves_client_are_predicted(client, body, headers):
    response = client.post("/v2/models/own/infer", content=body, headers=headers)
    assert response.status_code == 200, response.text
    end = int(response.headers.get("inference-header-content-length", len(response.content)))
    found = orjson.loads(response.content[:end])
    rows = {"columns": TABLE["columns"], "data": [[5.5, 0.25, "small"]]}
    [label] = client.post("/v1/models/own/predict", json=rows).json()["predictions"]
    assert (response.content[end + 4 :].decode() or found["outputs"][0]["data"][0]) == label
    instances = {"instances": [dict(zip(TABLE["columns"], rows["data"][0], strict=True))]}
    assert client.post("/v1/models/own:predict", json=instances).json()["predictions"] == [label]


def test_mlservers_types_and_codecs_fit(client, mlserver, expected):
    types = mlserver.types
    exactly(types.MetadataServerResponse, client.get("/v2").content)
    described = exactly(types.MetadataModelResponse, client.get("/v2/models/own").content)
    body = infer_request(
        types, described.inputs, outputs=[types.RequestOutput(name=one.name) for one in described.outputs]
    )
    reply = exactly(types.InferenceResponse, client.post("/v2/models/own/infer", content=body, headers=JSON).content)
    assert [one.name for one in reply.outputs] == [one.name for one in described.outputs]
    sizes = pd.Series([row[-1] for row in TABLE["data"]], dtype=object)
    frame = pd.DataFrame({"length": [5.1, 6.5], "width": [0.2, 2.1], "size": sizes})
    codec = mlserver.codecs.PandasCodec
    found = codec.decode_response(infer_with(client, types, "own", codec.encode_request(frame)))
    assert found["predict"].tolist() == expected["predictions"]
    gone = client.get("/v2/models/no-such")
    assert gone.status_code == httpx.codes.NOT_FOUND
    assert types.MetadataModelErrorResponse.model_validate_json(gone.content).error
