"""The Open Inference Protocol v2: the protocol of clients of KServe, Triton and MLServer."""

import re
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Body, Request
from fastapi.concurrency import run_in_threadpool

from app.api.edge.body import Headers
from app.api.edge.middleware import Reply
from app.api.edge.negotiation import BINARY, demand_json
from app.api.edge.openapi import declare
from app.api.edge.router import OPEN, PREDICT, Router
from app.api.fast.route import Call, DirectRoute, Holds, Respond
from app.api.params.common import ModelPath, RequestTimeout, ServicesDep, VersionPath, seconds
from app.api.params.freshness import DESCRIPTION, STALE, MinRevision, MinVersion, stale_header
from app.api.routes.operation.health import check_readiness
from app.formats.bytes import Sent
from app.formats.tensor_decoding import refused
from app.formats.tensor_metadata import PLATFORM, inputs_of, outputs_of
from app.formats.tensor_requests import LONGEST_HEAD, TensorRequest, read_request
from app.formats.tensor_responses import Inferred, included, write
from app.ml.contract.model_reference import VersionRef
from app.ml.models.included_outputs import with_outputs
from app.ml.models.model import Model, Predicted
from app.schemas.open_inference import (
    InferRequest,
    InferResponse,
    ModelMetadata,
    ModelReadiness,
    ServerLiveness,
    ServerMetadata,
    ServerReadiness,
)
from app.services.predictions.predictions import Served
from app.store.models.pointer import ANY, Freshness

JSON_BYTES = "Inference-Header-Content-Length"
HEADER = JSON_BYTES.lower().encode()
TENSORS = {"application/octet-stream": BINARY}
INFERRED = declare(
    200,
    {
        "X-Model-Version": "The version that predicted.",
        STALE: DESCRIPTION,
        JSON_BYTES: "Length of the JSON part of a binary response, in bytes.",
    },
    optional=(STALE, JSON_BYTES),
)
INFERRED[200]["content"] = TENSORS
BINARY_TOO: dict[str, Any] = {
    "requestBody": {"content": TENSORS},
    "parameters": [
        {
            "name": JSON_BYTES,
            "in": "header",
            "description": "Length of the JSON part of a body with binary tensors, in bytes; null: it has none.",
            "schema": {"type": "string", "pattern": "^[0-9]{1,18}$"},
        }
    ],
}


class _TensorRoute(DirectRoute):
    """Also takes binary bodies, and bodies without a media type: common clients send none."""

    @staticmethod
    def demand(sent: Headers) -> Mapping[str, Any]:
        kind = sent.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind not in {b"", b"application/octet-stream"}:
            demand_json(sent)
        return {}

    @staticmethod
    def lead(sent: Headers) -> int:
        return _lead(sent)


server = Router(needs=OPEN, prefix="/v2", tags=["inference"])
described = Router(needs=PREDICT, prefix="/v2", tags=["inference"])
inferring = Router(needs=PREDICT, prefix="/v2", tags=["inference"], route_class=_TensorRoute)
InferBody = Annotated[bytes, Body(), Holds(InferRequest)]


@server.get("/health/live")
async def check_server_live() -> ServerLiveness:
    """The process is alive."""
    return ServerLiveness(live=True)


@server.get("/health/ready", responses=declare(503, {"Retry-After": "Seconds after which to send the request again."}))
async def check_server_ready(request: Request, services: ServicesDep) -> ServerReadiness:
    """The same checks as `/readyz`."""
    await check_readiness(request, services)
    return ServerReadiness(ready=True)


@server.get("/", include_in_schema=False)
@server.get("")
async def get_server_metadata(request: Request) -> ServerMetadata:
    """Name, version and the protocol's extensions that are offered."""
    return ServerMetadata(name=PLATFORM, version=request.app.version, extensions=["binary_tensor_data"])


@described.get("/models/{model}")
async def get_model_metadata(model: ModelPath, services: ServicesDep) -> ModelMetadata:
    """All versions, and the tensors of the default one: that of the alias `champion` if it is set, else the newest.

    `parameters.labels` of the output `predict_proba` names the class of each of its columns.
    """
    served = await services.predictions.serve(model)
    record = await run_in_threadpool(services.models.get, model)
    return _metadata(served, record.versions)


@described.get("/models/{model}/versions/{version}")
async def get_version_metadata(model: ModelPath, version: VersionPath, services: ServicesDep) -> ModelMetadata:
    """Tensors of this version."""
    return _metadata(await services.predictions.serve(model, version), [version])


@described.get("/models/{model}/ready")
async def check_model_ready(model: ModelPath, services: ServicesDep) -> ModelReadiness:
    """The version that predicts by default is in memory now; a problem if it cannot be."""
    await services.predictions.serve(model)
    return ModelReadiness(name=model, ready=True)


@described.get("/models/{model}/versions/{version}/ready")
async def check_version_ready(model: ModelPath, version: VersionPath, services: ServicesDep) -> ModelReadiness:
    """The requested version is in memory now; a problem if it cannot be."""
    await services.predictions.serve(model, version)
    return ModelReadiness(name=model, ready=True)


@inferring.post("/models/{model}/infer", response_model=InferResponse, responses=INFERRED, openapi_extra=BINARY_TOO)
def infer_model(
    model: ModelPath,
    body: InferBody,  # noqa: ARG001  for the OpenAPI document
    x_request_timeout: RequestTimeout = None,
    x_min_revision: MinRevision = None,
    x_min_version: MinVersion = None,
) -> Respond:
    """Predict, as `/v1/models/{model}/predict` does, from tensors to tensors; JSON, binary or both.

    A model of numbers only takes one matrix (rows, columns) of any name, with its columns in the order of the metadata.
    Every model takes a tensor per column, by its name. null, and NaN in bytes, are missing values.
    """
    demand = Freshness(x_min_revision or 0, x_min_version or 0)
    return partial(_infer, VersionRef(model), seconds(x_request_timeout), demand)


@inferring.post(
    "/models/{model}/versions/{version}/infer",
    response_model=InferResponse,
    responses=INFERRED,
    openapi_extra=BINARY_TOO,
)
def infer_version(
    model: ModelPath,
    version: VersionPath,
    body: InferBody,  # noqa: ARG001  for the OpenAPI document
    x_request_timeout: RequestTimeout = None,
) -> Respond:
    """Predict like `infer_model`, by this version."""
    return partial(_infer, VersionRef(model, version), seconds(x_request_timeout), ANY)


def _metadata(served: Served, versions: Sequence[int]) -> ModelMetadata:
    return ModelMetadata(
        name=served.pointer.model,
        versions=list(map(str, versions)),
        platform=PLATFORM,
        inputs=inputs_of(served.model),
        outputs=outputs_of(served.model, served.pointer.names),
        parameters=served.pointer.facts,
    )


def _infer(
    reference: VersionRef, within: float | None, demand: Freshness, call: Call, body: Sent
) -> Reply | Coroutine[Any, Any, Reply]:
    services = call.app.services
    served = services.predictions.at_hand(reference, len(body), within, demand, plain=_is_plain(call))
    if served is None:
        return _in_turn(reference, within, demand, call, body)
    services.admission.check()
    return _reply(call, served, _respond(call, body, served))


def _respond(call: Call, body: Sent, served: Served) -> Inferred:
    with call.app.services.predictions.paced(served, len(body), plain=_is_plain(call)):
        sent = _read(call, body, served.model)
        return _written(served, sent, served.model.predict_raw(sent.raw))


def _written(served: Served, sent: TensorRequest, predicted: Predicted) -> Inferred:
    """The requested outputs, those that only some requests name computed now."""
    names = included(served.model, sent.request)
    return write(served.pointer, served.model, sent.request, with_outputs(served.model, sent.raw, predicted, names))


def _is_plain(call: Call) -> bool:
    return _lead(call.headers) > 0


def _lead(headers: Headers) -> int:
    """Length of the head of a body that is the bytes of tensors but for a short head; else 0."""
    messages = headers.get(HEADER, b"")
    end = int(messages) if messages.isdigit() and len(messages) <= len(str(LONGEST_HEAD)) else 0
    return end if end <= LONGEST_HEAD else 0


async def _in_turn(reference: VersionRef, within: float | None, demand: Freshness, call: Call, body: Sent) -> Reply:
    services = call.app.services
    async with services.admission.enter(within) as place:
        served = await services.predictions.ready(reference, demand)
        if services.predictions.is_quick(served, len(body)):
            requested = _read(call, body, served.model)
            predicted = await services.predictions.predicted(served, requested.raw, place.begin)
            inferred = _written(served, requested, predicted)
        else:
            seconds = services.predictions.seconds(served, len(body))
            inferred = await place.run(partial(_respond, call, body, served), seconds=seconds)
    return _reply(call, served, inferred)


def _reply(call: Call, served: Served, inferred: Inferred) -> Reply:
    call.app.services.predictions.tally.add(served.pointer.model, inferred.rows)
    headers = ((b"x-model-version", b"%d" % served.pointer.version), *stale_header(served))
    if inferred.json_bytes is None:
        return Reply(inferred.body, b"application/json", headers)
    return Reply(inferred.body, b"application/octet-stream", (*headers, (HEADER, b"%d" % inferred.json_bytes)))


def _read(call: Call, body: Sent, model: Model) -> TensorRequest:
    settings, end = call.app.settings, _end_of_json(call, body)
    return read_request(body, end, model, max_rows=settings.max_predict_rows, max_depth=settings.max_json_depth)


def _end_of_json(call: Call, body: Sent) -> int:
    if HEADER not in call.headers:
        return len(body)
    sent = [value for name, value in call.sent if name == HEADER]
    if len(sent) > 1 or not re.fullmatch(b"[0-9]{1,18}", sent[0]) or int(sent[0]) > len(body):
        raise refused(f"/header/{JSON_BYTES}", "A number of bytes is needed, no more than the body has.")
    return int(sent[0])


router = Router(needs=PREDICT)
router.take(server)
router.take(described)
router.take(inferring)
