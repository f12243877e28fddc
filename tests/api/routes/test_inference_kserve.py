"""The Open Inference Protocol as KServe's SDK sends it.

The bodies were recorded from `kserve.InferenceRESTClient` 0.21.0 over a transport that keeps what it is given:
`InferRequest("iris", [input], request_id="r-1", model_version="1")`, with the data set by `set_data_from_numpy`, once
with `binary_data=False` and once with True. The SDK itself is 300 MB of dependencies; the bytes are what matters.
"""

from uuid import uuid4

import orjson
import pytest

AS_JSON = {"accept": "*/*", "accept-encoding": "gzip, deflate", "content-type": "application/json"}
AS_BYTES = AS_JSON | {"content-type": "application/octet-stream"}
MATRIX = (
    (
        (
            b'{"id":"r-1","model_name":"iris","inputs":[{"name":"predict","shape":[1,3],"datatype":"FP32",'
            b'"data":[0.5,1.0,2.0]}]}'
        ),
        AS_JSON,
    ),
    (
        (
            b'{"id":"r-1","model_name":"iris","inputs":[{"name":"predict","shape":[1,3],"datatype":"FP32",'
            b'"parameters":{"binary_data_size":12}}]}\x00\x00\x00?\x00\x00\x80?\x00\x00\x00@'
        ),
        AS_BYTES | {"inference-header-content-length": "131"},
    ),
)
COLUMNS = (
    (
        (
            b'{"id":"r-2","model_name":"iris","inputs":[{"name":"length","shape":[1],"datatype":"FP64","data":[5.5]},'
            b'{"name":"width","shape":[1],"datatype":"FP64","data":[0.25]},{"name":"size","shape":[1],"datatype":"BYTES",'
            b'"data":["small"]}],"outputs":[{"name":"predict","parameters":{"binary_data":false}}],'
            b'"parameters":{"binary_data_output":false}}'
        ),
        AS_JSON,
    ),
    (
        (
            b'{"id":"r-2","model_name":"iris","inputs":[{"name":"length","shape":[1],"datatype":"FP64",'
            b'"parameters":{"binary_data_size":8}},{"name":"width","shape":[1],"datatype":"FP64",'
            b'"parameters":{"binary_data_size":8}},{"name":"size","shape":[1],"datatype":"BYTES",'
            b'"parameters":{"binary_data_size":9}}],"outputs":[{"name":"predict","parameters":{"binary_data":true}}],'
            b'"parameters":{"binary_data_output":true}}\x00\x00\x00\x00\x00\x00\x16@\x00\x00\x00\x00\x00\x00\xd0?'
            b"\x05\x00\x00\x00small"
        ),
        AS_BYTES | {"inference-header-content-length": "399"},
    ),
)
SENT = [(kind, *body) for kind, bodies in (("matrix", MATRIX), ("columns", COLUMNS)) for body in bodies]


@pytest.fixture(scope="module")
def mixed(services, publish):
    name = f"v-{uuid4()}"
    publish(services.work, name)
    return name


@pytest.fixture(scope="module")
def models(numeric, mixed):
    return {"matrix": numeric(), "columns": mixed}


@pytest.mark.parametrize(("kind", "body", "headers"), SENT)
def test_what_the_sdk_sends_is_predicted(client, models, kind, body, headers):
    model = models[kind]
    response = client.post(f"/v2/models/{model}/infer", content=body, headers=headers)
    assert response.status_code == 200, response.text
    end = int(response.headers.get("inference-header-content-length", len(response.content)))
    found = orjson.loads(response.content[:end])
    assert (found["model_name"], found["id"]) == (model, body[7:10].decode())
    rows = (
        {"columns": ["x", "y", "z"], "data": [[0.5, 1, 2]]}
        if kind == "matrix"
        else {"columns": ["length", "width", "size"], "data": [[5.5, 0.25, "small"]]}
    )
    [label] = client.post(f"/v1/models/{model}/predict", json=rows).json()["predictions"]
    binary = end < len(response.content)
    assert binary == (kind == "columns" and headers["content-type"] == "application/octet-stream")
    assert (response.content[end + 4 :].decode() if binary else found["outputs"][0]["data"][0]) == label


@pytest.mark.parametrize("stated", ["1", "7", None])
def test_a_stated_model_and_version_do_not_matter(client, mixed, stated):
    body = orjson.loads(COLUMNS[0][0]) | {"model_name": "another", "model_version": stated}
    assert client.post(f"/v2/models/{mixed}/infer", json=body).json()["model_version"] == "1"
