"""Routes of models in a folder beside those of predictions: version 1 of KServe's protocol, and Triton's repository."""

import json
from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from app.api.edge.router import PREDICT, Router
from app.api.params.common import ModelPath
from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.composition.folder_wiring import FolderServices
from app.ml.tables.rows import read_rows
from app.services.predictions.predictions import Served

kserve = Router(needs=PREDICT, prefix="/v1/models", include_in_schema=False)
repository = Router(needs=PREDICT, prefix="/v2/repository", include_in_schema=False)


class Instances(Body):
    """A request of KServe's first protocol: rows as lists in the order of the inputs, or as objects."""

    instances: list[Any]


@kserve.get("")
async def list_served_models(request: Request) -> dict[str, Any]:
    services: FolderServices = request.app.services
    return {"models": sorted({state.model for state in services.models.states() if state.ready})}


@kserve.get("/{model}")
async def get_served_model(model: ModelPath, request: Request) -> dict[str, Any]:
    await request.app.services.predictions.serve(model)
    return {"name": model, "ready": True}


@kserve.post("/{model}:predict")
async def predict_instances(model: ModelPath, body: Instances, request: Request) -> dict[str, Any]:
    """Predictions, as scikit-learn's `predict` has them."""
    services: FolderServices = request.app.services
    async with services.admission.enter(None) as place:
        served = await services.predictions.serve(model)
        return await place.run(lambda: _predicted(services, served, body.instances))


def _predicted(services: FolderServices, served: Served, instances: list[Any]) -> dict[str, Any]:
    rows: dict[str, Any]
    if instances and all(isinstance(instance, dict) for instance in instances):
        rows = {"rows": instances}
    elif all(isinstance(instance, list) for instance in instances):
        rows = {"columns": [column.name for column in served.model.inputs], "data": instances}
    else:
        raise InvalidRequest(faults=[Fault("/instances", "Rows are all lists, or all objects.")])
    incoming = read_rows(rows, served.model.inputs, max_rows=services.settings.max_predict_rows)
    written: dict[str, Any] = json.loads(services.predictions.respond(served, incoming).body)
    return {"predictions": written["predictions"]}


@repository.post("/index")
async def list_repository(request: Request) -> list[dict[str, Any]]:
    services: FolderServices = request.app.services
    return [
        {
            "name": state.model,
            "version": state.version,
            "state": "READY" if state.ready else "UNAVAILABLE",
            "reason": state.reason,
        }
        for state in services.models.states()
    ]


@repository.post("/models/{model}/load")
async def load_model(model: ModelPath, request: Request) -> dict[str, Any]:
    await run_in_threadpool(request.app.services.models.set_loaded, model, loaded=True)
    return {}


@repository.post("/models/{model}/unload")
async def unload_model(model: ModelPath, request: Request) -> dict[str, Any]:
    await run_in_threadpool(request.app.services.models.set_loaded, model, loaded=False)
    return {}
