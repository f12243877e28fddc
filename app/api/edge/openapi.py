"""The OpenAPI document: what FastAPI finds, made into something a good client can be generated from."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from app.api.edge.examples import add_example
from app.api.edge.portable_schema import make_portable
from app.api.edge.problems import MEDIA_TYPE
from app.base.wire import Wire, without_null
from app.schemas.problems import Problem

METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
COMPONENT = "#/components/schemas/{model}"
TAGS = [
    {"name": "datasets", "description": "Immutable tables, uploaded once."},
    {"name": "files", "description": "Model files of other libraries, uploaded to be imported."},
    {"name": "algorithms", "description": "What can be trained, and with which parameters."},
    {"name": "jobs", "description": "Long-running work."},
    {"name": "monitoring", "description": "Drift of the rows that a model predicts, and alarms."},
    {"name": "reviews", "description": "Rows that a classifier rejected, for people to label."},
    {"name": "models", "description": "Models, their immutable versions, their aliases, and names of clusters."},
    {"name": "predictions", "description": "Predictions of models."},
    {"name": "sessions", "description": "Learners that predict each row before they learn its label."},
    {"name": "preferences", "description": "Weights of goals, learned from which of two candidates a person prefers."},
    {"name": "evaluation", "description": "How good predictions are."},
    {"name": "theory", "description": "Calculators of learning theory: what rows can promise, without a model."},
    {"name": "inference", "description": "The Open Inference Protocol v2."},
    {"name": "keys", "description": "Keys of the API and what they may do, and the projects that they reach."},
    {"name": "operations", "description": "For those who run the service."},
]
DESCRIPTION = (
    "Upload a table, train a model on it, wait for the job, and predict. Every failure is an RFC 9457 problem that "
    "lists each fault of the request with its place. A service that "
    "is reached from other machines requires a key with every request. Lists in examples are cut to their first three "
    "entries."
)
KEY = "key"
BEARER = {"type": "http", "scheme": "bearer", "description": "A key of the API, as `valiant keys create` prints it."}
SERVERS = [{"url": "/", "description": "The service that serves this document."}]
Declared = dict[int | str, dict[str, Any]]


def declare(status: int, headers: Mapping[str, str], optional: Collection[str] = ()) -> Declared:
    """Headers of a response, by name and description, for a route's `responses`."""
    made = {name: {**_header(description), "required": name not in optional} for name, description in headers.items()}
    return {status: {"headers": made}}


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "required": True, "schema": {"type": "string"}}


def document(app: FastAPI) -> dict[str, Any]:
    """Built once, on the first call; `app.openapi` is set to this."""
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def _document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        contact=app.contact,
        license_info=app.license_info,
        routes=app.routes,
        tags=TAGS,
        servers=SERVERS,
    )
    made["security"] = [{KEY: []}, {}]  # a service of one machine needs no key
    made["components"]["securitySchemes"] = {KEY: BEARER}
    from app.api.edge.server_sent_events import DATA  # noqa: PLC0415  it brings schemas of every job

    no_bodies: list[type[Wire]] = [Problem, *DATA.values()]
    _, beside = models_json_schema([(model, "serialization") for model in no_bodies], ref_template=COMPONENT)
    schemas = beside["$defs"] | made["components"]["schemas"]
    for unwanted in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unwanted, None)
    for name, schema in schemas.items():
        _without_field_titles(schema)
        if name.startswith("Body_"):  # a form, which cannot hold null
            schema["properties"] = {field: without_null(schema_) for field, schema_ in schema["properties"].items()}
        make_portable(schema)
    for operation in operations(made):
        _finish(operation)
        add_example(operation)
    made["components"]["schemas"] = {name: schemas[name] for name in sorted(_referenced(made["paths"], schemas))}
    return _with_named_forms(made)


def _referenced(paths: dict[str, Any], schemas: Mapping[str, Any]) -> set[str]:
    """Names of the schemas that operations refer to, directly or by others; types that became free refer to none."""
    names, new = set[str](), _references(paths)
    while new:
        names |= new
        new = {name for name_ in new for name in _references(schemas[name_])} - names
    return names


def _references(part: Any) -> set[str]:
    return set(re.findall(rf"{re.escape(COMPONENT.format(model=''))}(\w+)", json.dumps(part)))


def _with_named_forms(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI calls the body of a form Body_upload_dataset; here it is UploadDatasetForm, like other schemas."""
    text = re.sub(r"\bBody_(\w+)", lambda name: f"{name[1].title().replace('_', '')}Form", json.dumps(document))
    named: dict[str, Any] = json.loads(text)
    for name, schema in named["components"]["schemas"].items():
        if name.endswith("Form"):
            schema.setdefault("description", "Fields of the form.")
    return named


def operations(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        yield from (operation for method, operation in path.items() if method in METHODS)


def _finish(operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    responses.pop("422", None)  # FastAPI's own shape
    responses["default"] = {"description": "A problem."}
    for status, response in responses.items():
        response.setdefault("headers", {})["X-Request-Id"] = _header("Names this request in the service's log.")
        if status == "default" or int(status) >= 400:
            response["content"] = {MEDIA_TYPE: {"schema": {"$ref": COMPONENT.format(model="Problem")}}}
    for parameter in operation.get("parameters", []):
        parameter["schema"] = without_null(parameter["schema"])
        parameter["schema"].pop("title", None)
        parameter["schema"].pop("description", None)
        make_portable(parameter["schema"])
        if parameter["in"] == "header":
            parameter["name"] = parameter["name"].title()


def _without_field_titles(schema: dict[str, Any]) -> None:
    """Pydantic titles every field by its own name: noise, and a second name for generators to stumble over."""
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
