"""The document is a product: these are the rules that make good clients from it."""

import builtins
import json
import re

import pytest

from app.api.edge.openapi import operations
from app.api.edge.portable_schema import subschemas
from app.base.settings import Settings
from app.main import create_app
from tests.openapi_document import openapi_document

DOCUMENT = openapi_document()
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = {operation["operationId"]: operation for operation in operations(DOCUMENT)}
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
TEXT = {"text/plain", "text/event-stream"}

every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
every_schema = pytest.mark.parametrize("name", SCHEMAS)


@pytest.fixture(scope="module")
def served_document():
    """What the application makes: with its own order of keys."""
    return create_app(Settings()).openapi()


def test_the_stored_document_is_current(served_document):
    assert json.loads(json.dumps(served_document)) == DOCUMENT, "Write it anew: python -m app.main > app/openapi.json"


def test_operation_ids_are_unique_function_names():
    count = sum(1 for _ in operations(DOCUMENT))
    assert len(OPERATIONS) == count
    for name in OPERATIONS:
        assert re.fullmatch("[a-z]+(_[a-z]+)+", name), name


@every_operation
def test_one_tag_that_is_described(operation):
    [tag] = operation["tags"]
    assert tag in {known["name"] for known in DOCUMENT["tags"]}


@every_operation
def test_an_operation_says_what_it_does(operation):
    assert operation["description"].strip()
    for parameter in operation.get("parameters", []):
        assert parameter.get("description") or parameter["schema"].get("$ref"), parameter["name"]


@every_operation
def test_the_problem_is_the_default_response(operation):
    assert operation["responses"]["default"]["content"] == PROBLEM
    for status, response in operation["responses"].items():
        if status == "default" or int(status) >= 400:
            assert response["content"] == PROBLEM
        assert "X-Request-Id" in response["headers"]
    assert "422" not in operation["responses"]


def test_the_frameworks_error_schema_is_gone():
    assert not [name for name in SCHEMAS if "ValidationError" in name]
    assert "HTTPValidationError" not in json.dumps(DOCUMENT)


@every_operation
def test_all_bodies_are_named_components(operation):
    bodies = [("request", operation.get("requestBody", {}).get("content", {}))]
    bodies += [(status, response.get("content", {})) for status, response in operation["responses"].items()]
    for where, content in bodies:
        for kind, media in content.items():
            raw = media["schema"].get("format") == "binary" or kind in TEXT
            assert "$ref" in media["schema"] or raw, (where, kind, media)


def test_raw_uploads_are_binary_and_octet_stream_comes_first(served_document):
    raw = served_document["paths"]["/v1/datasets"]["post"]["requestBody"]["content"]
    assert next(iter(raw)) == "application/octet-stream"
    assert all(media["schema"] == {"type": "string", "format": "binary"} for media in raw.values())
    [(kind, form)] = OPERATIONS["upload_dataset"]["requestBody"]["content"].items()
    assert kind == "multipart/form-data"
    assert SCHEMAS[form["schema"]["$ref"].rpartition("/")[2]]["properties"]["file"]["format"] == "binary"


def test_no_pairs_and_no_generated_names():
    for name in SCHEMAS:
        assert not name.endswith(("-Input", "-Output")), name
        assert re.fullmatch("[A-Z][A-Za-z0-9]*", name), name


def test_titles_are_unique():
    titles = [schema["title"] for schema in SCHEMAS.values() if "title" in schema]
    assert len(titles) == len(set(titles))


@every_schema
def test_fields_are_not_named_like_builtins(name):
    allowed = {"Problem": {"type"}}  # RFC 9457 names it
    taken = set(dir(builtins)) - allowed.get(name, set())
    # `id` is what every list of resources calls it, and no generator stumbles over it
    assert not (set(SCHEMAS[name].get("properties", {})) & (taken | {"list", "object", "property"})) - {"id"}


@every_schema
def test_fields_are_flat_or_named(name):
    """No object is described inside a field: it is a component, or a free map."""
    for schema in _inner(SCHEMAS[name]):
        assert "properties" not in schema


def _inner(schema):
    for inner in subschemas(schema):
        yield inner
        yield from _inner(inner)


@every_schema
def test_unions_are_components(name):
    """A union inside a field gets a name from each generator, another one wherever it stands."""
    for schema in _inner(SCHEMAS[name]):
        assert len(_members(schema)) <= 1, schema


def _members(schema):
    """The members of a union besides null."""
    union = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [member for member in union if member != {"type": "null"}]


def test_one_component_stands_for_every_algorithm_and_one_for_every_learner():
    names = {name for name in SCHEMAS if name.endswith("Algorithm") and name != "Algorithm"}
    for union in ("Algorithm", "Learner"):
        assert {member["$ref"].rpartition("/")[2] for member in SCHEMAS[union]["oneOf"]} == names
    assert SCHEMAS["TrainRequest"]["properties"]["algorithm"]["$ref"].endswith("/Algorithm")
    assert SCHEMAS["BaggingAlgorithm"]["properties"]["estimator"]["$ref"].endswith("/Learner")


def _schemas_of_parameters():
    return [parameter["schema"] for operation in OPERATIONS.values() for parameter in operation.get("parameters", [])]


def _every_schema():
    for schema in [*SCHEMAS.values(), *_schemas_of_parameters()]:
        yield schema
        yield from _inner(schema)


def test_every_number_has_a_width():
    """Without one, generated clients take 32 bits."""
    numbers = [schema for schema in _every_schema() if schema.get("type") in {"integer", "number"}]
    assert numbers
    for schema in numbers:
        assert schema.get("format") == {"integer": "int64", "number": "double"}[schema["type"]], schema


def test_bounds_of_integers_are_inclusive_and_fit_in_64_bits():
    for schema in _every_schema():
        if schema.get("type") == "integer":
            assert not {"exclusiveMinimum", "exclusiveMaximum"} & set(schema), schema
            for bound in {"minimum", "maximum"} & set(schema):
                assert isinstance(schema[bound], int), schema
                assert -(2**63) <= schema[bound] < 2**63, schema
    assert SCHEMAS["TrainRequest"]["properties"]["seed"]["maximum"] == 2**63 - 1


def test_no_default_is_an_object_or_stands_beside_a_reference():
    """Go's clients copy such a default into the code, which then does not compile."""
    for schema in _every_schema():
        default = schema.get("default")
        assert not isinstance(default, dict), schema
        assert not (isinstance(default, list) and any(isinstance(item, dict) for item in default)), schema
        assert default is None or ("$ref" not in schema and len(_members(schema)) <= 1), schema


def test_no_list_stands_beside_another_type():
    """Java's clients have no type for it."""
    for schema in _every_schema():
        kinds = {member.get("type") for member in _members(schema)}
        assert "array" not in kinds or len(kinds) == 1, schema


def test_unions_of_components_are_exclusive():
    """TypeScript's clients merge the members of anyOf into one interface."""
    for schema in _every_schema():
        assert len(_members(schema)) < 2 or "oneOf" in schema or _refs(schema) == 0, schema


def test_the_document_declares_servers_security_licence_and_contact():
    assert DOCUMENT["servers"]
    assert DOCUMENT["security"] == [{"key": []}, {}]
    assert {"contact", "license", "description", "summary"} <= DOCUMENT["info"].keys()


def test_unions_are_separated_by_a_required_literal():
    unions = [schema for schema in _every_schema() if "oneOf" in schema or _refs(schema) > 1]
    unions.remove(SCHEMAS["PredictRequest"])  # its members have no field in common
    assert len(unions) > 1
    for union in unions:
        tag = union["discriminator"]["propertyName"]
        for reference in union["discriminator"]["mapping"].values():
            member = SCHEMAS[reference.rpartition("/")[2]]
            assert tag in member["required"]
            assert "const" in member["properties"][tag]
            assert "default" not in member["properties"][tag]
            assert member["additionalProperties"] is False


def _refs(schema):
    return sum("$ref" in member for member in schema.get("anyOf", []))


def test_only_closed_sets_are_enums():
    closed = {name for name, schema in SCHEMAS.items() if "enum" in schema}
    assert "JobState" in closed
    responses = _reachable(_response_schemas())
    assert {name for name in closed if name in responses} == {"AlarmState", "JobState", "ReviewState"}


def _response_schemas():
    """Schemas of all responses, without the examples beside them."""
    responses = [response for operation in OPERATIONS.values() for response in operation["responses"].values()]
    return [media["schema"] for response in responses for media in response.get("content", {}).values()]


def _reachable(roots):
    found, text = set(), json.dumps(list(roots))
    while True:
        new = {name for name in SCHEMAS if f'schemas/{name}"' in text} - found
        if not new:
            return found
        found |= new
        text = json.dumps([SCHEMAS[name] for name in new])


def test_absent_rather_than_null_in_responses():
    """Only a field that must be there may be null, and says so."""
    responses = _reachable(_response_schemas())
    for name in responses:
        required = SCHEMAS[name].get("required", [])
        for field, schema in SCHEMAS[name].get("properties", {}).items():
            if {"type": "null"} in schema.get("anyOf", []):
                assert field in required, (name, field)


@pytest.mark.parametrize(
    ("operation", "place", "header"),
    [
        ("train_model", "parameters", "Idempotency-Key"),
        ("train_model", "202", "Location"),
        ("train_model", "202", "Retry-After"),
        ("cancel_job", "202", "Location"),
        ("stream_job_events", "parameters", "Last-Event-Id"),
        ("check_readiness", "503", "Retry-After"),
        ("move_model_alias", "parameters", "If-Match"),
        ("move_model_alias", "200", "Etag"),
        ("download_model_artifact", "200", "Etag"),
        ("predict_rows", "200", "X-Model-Version"),
    ],
)
def test_headers_are_declared(operation, place, header):
    found = OPERATIONS[operation]
    if place == "parameters":
        names = [parameter["name"] for parameter in found["parameters"] if parameter["in"] == "header"]
    else:
        names = [name.title() for name in found["responses"][place]["headers"]]
    assert header in names


def test_the_event_stream_says_what_each_event_carries():
    from app.api.edge.server_sent_events import DATA

    media = OPERATIONS["stream_job_events"]["responses"]["200"]["content"]["text/event-stream"]
    events = media["schema"]["x-events"]
    assert set(events) == set(DATA)
    for name, data in events.items():
        assert f"`{name}`" in media["schema"]["description"] or f"`event: {name}`" in media["schema"]["description"]
        assert data["$ref"].removeprefix("#/components/schemas/") in SCHEMAS
    assert media["example"].startswith("event: state\ndata: {")


def test_every_address_is_documented():
    from fastapi.routing import iter_route_contexts

    from app.docs import explorer

    app = create_app(Settings())
    served = {route.path for route in iter_route_contexts(app.routes)}
    people = {"/docs", "/docs/plain", f"{explorer.FOLDER}/{{name}}", "/docs/guide", "/docs/guide/{name:path}"}
    people |= {"/docs/pictures/{name}", "/console", "/console/", "/console/session", "/console/{name:path}"}
    twin = {"/v2/"}  # of /v2: the protocol has both, and a client needs one method
    assert served - set(DOCUMENT["paths"]) == {"/", "/openapi.json"} | people | twin


def test_every_component_is_referred_to():
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT)))
    assert set(SCHEMAS) - referred == set()
