"""The Open Inference Protocol as NVIDIA's client speaks it, with a real server over a real socket."""

from uuid import uuid4

import numpy as np
import orjson
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException


@pytest.fixture(scope="module")
def model(services, publish):
    name = f"t-{uuid4()}"
    publish(services.work, name)
    return name


@pytest.fixture(scope="module")
def address(api_address):
    return api_address()


@pytest.fixture(scope="module")
def triton(address):
    with InferenceServerClient(address.partition("://")[2]) as client:
        yield client


@pytest.fixture(scope="module")
def expected(address, model):
    import httpx

    body = {"columns": ["length", "width", "size"], "data": [[5.1, 0.2, "small"], [6.5, 2.1, "naïve"]]}
    return httpx.post(f"{address}/v1/models/{model}/predict", json=body).json()


def inputs(binary):
    columns = {
        "length": np.array([5.1, 6.5]),
        "width": np.array([0.2, 2.1]),
        "size": np.array(["small", "naïve".encode()], np.object_),
    }
    made = []
    for name, values in columns.items():
        made.append(InferInput(name, [2], "BYTES" if name == "size" else "FP64"))
        made[-1].set_data_from_numpy(values, binary_data=binary)
    return made


def wanted(binary):
    return [InferRequestedOutput(name, binary_data=binary) for name in ("predict_proba", "predict")]


@pytest.mark.parametrize("outward", [True, False, None], ids=["binary-back", "json-back", "all-back"])
@pytest.mark.parametrize("inward", [True, False], ids=["binary-in", "json-in"])
def test_both_ways_and_both_forms(triton, model, expected, inward, outward):
    outputs = None if outward is None else wanted(outward)
    result = triton.infer(model, inputs(inward), outputs=outputs, request_id="r-1", model_version="1")
    assert result.get_response()["id"] == "r-1"
    assert result.as_numpy("predict_proba").tolist() == expected["probabilities"]
    labels = [one.decode() if isinstance(one, bytes) else one for one in result.as_numpy("predict")]
    assert labels == expected["predictions"]


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests(triton, model, expected, algorithm, binary):
    result = triton.infer(
        model,
        inputs(binary),
        outputs=wanted(binary),
        request_compression_algorithm=algorithm,
        response_compression_algorithm=algorithm,  # which a server may leave out
    )
    assert result.as_numpy("predict_proba").tolist() == expected["probabilities"]


def test_what_it_asks_before(triton, model):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready(model)
    assert triton.is_model_ready(model, "1")
    assert not triton.is_model_ready(model, "2")
    assert "binary_tensor_data" in triton.get_server_metadata()["extensions"]
    assert triton.get_model_metadata(model, "1") == triton.get_model_metadata(model)
    assert [one["name"] for one in triton.get_model_metadata(model)["outputs"]] == ["predict", "predict_proba"]


def test_it_understands_what_went_wrong(triton, model):
    with pytest.raises(InferenceServerException, match="outputs are predict, predict_proba"):
        triton.infer(model, inputs(binary=True), outputs=[InferRequestedOutput("unknown")])
    with pytest.raises(InferenceServerException, match="There is no model") as gone:
        triton.get_model_metadata("no-such")
    assert gone.value.status() == "404"


def test_it_reads_responses_that_came_another_way(client, model, expected):
    """A body it made, carried by another client, and the response read by it again."""
    body, length = InferenceServerClient.generate_request_body(inputs(binary=True), outputs=wanted(binary=True))
    headers = {"Inference-Header-Content-Length": str(length), "Content-Type": "application/octet-stream"}
    response = client.post(f"/v2/models/{model}/infer", content=body, headers=headers)
    result = InferenceServerClient.parse_response_body(
        response.content, header_length=int(response.headers["inference-header-content-length"])
    )
    assert result.as_numpy("predict_proba").tolist() == expected["probabilities"]
    assert orjson.loads(body[:length])["inputs"][0]["parameters"]["binary_data_size"] == 16
