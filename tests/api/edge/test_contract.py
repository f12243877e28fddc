"""Requests drawn from the OpenAPI document, right ones and wrong ones: every response is as the document says."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from app.main import create_app
from tests.openapi_document import openapi_document

FEW = ("ridge", "decision_tree", "kmeans")
"""Algorithms that stand for all: what each of them takes is the contract suite's business, and drawing requests from
all of them, each within each other, takes minutes."""
RIGHT, WRONG = "positive", "negative"


def can_be_wrong(operation):
    """True if it has a parameter, or a body that is not just any bytes."""
    content = operation.get("requestBody", {}).get("content", {})
    return "parameters" in operation or bool(content.keys() - {"application/octet-stream"})


DRAWN = [
    pytest.param(method, path, mode, id=f"{mode}-{operation['operationId']}")
    for path, methods in openapi_document()["paths"].items()
    for method, operation in methods.items()
    for mode in (RIGHT, WRONG)
    if mode is RIGHT or can_be_wrong(operation)
]


@pytest.fixture(scope="module")
def checks():
    """Without a server error, then as the document says. Imported here: only this file needs schemathesis."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as documented

    return [
        not_a_server_error,
        documented.status_code_conformance,
        documented.content_type_conformance,
        documented.response_headers_conformance,
        documented.response_schema_conformance,
    ]


@pytest.fixture(scope="module")
def document(services):
    import schemathesis

    app = create_app(services.settings, services)
    app.openapi_schema = _of_few(app.openapi())
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def _of_few(part):
    """The document with only these members in every union of algorithms."""
    if isinstance(part, list):
        return [_of_few(item) for item in part]
    if not isinstance(part, dict):
        return part
    mapping = part.get("discriminator", {}).get("mapping", {})
    if mapping.keys() >= set(FEW):
        kept = {name: mapping[name] for name in FEW}
        part = part | {"discriminator": part["discriminator"] | {"mapping": kept}}
        part["oneOf"] = [{"$ref": ref} for ref in kept.values()]
    return {key: _of_few(value) for key, value in part.items()}


@pytest.mark.parametrize(("method", "path", "mode"), DRAWN)
def test_every_response_is_as_documented(document, checks, method, path, mode):
    from schemathesis import GenerationMode

    operation = document[path][method]

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=GenerationMode(mode)))
    def documented(case):
        response = case.call()
        hurried = response.status_code == 504 and "X-Request-Timeout" in case.headers  # its time was too short
        case.validate_response(response, checks=checks[1:] if hurried else checks)
        assert "x-request-id" in response.headers

    documented()
