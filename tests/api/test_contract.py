"""Requests drawn from the OpenAPI document, right ones and wrong ones: every answer is as the document says."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.main import create_app
from app.settings import Settings

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
RIGHT, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
DRAWN = [
    pytest.param(method, path, mode, id=f"{mode}-{operation['operationId']}")
    for path, methods in create_app(Settings()).openapi()["paths"].items()
    for method, operation in methods.items()
    for mode in (RIGHT, WRONG)
    if mode is RIGHT or "parameters" in operation or "requestBody" in operation  # else nothing can be wrong
]


@pytest.fixture(scope="module")
def document(services):
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(services.settings, services))


@pytest.mark.parametrize(("method", "path", "mode"), DRAWN)
def test_every_answer_is_as_documented(document, method, path, mode):
    operation = document[path][method]

    @settings(
        max_examples=12,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def answered(case):
        response = case.call()
        hurried = response.status_code == 504 and "X-Request-Timeout" in case.headers  # its time was too short
        case.validate_response(response, checks=CHECKS[1:] if hurried else CHECKS)
        assert "x-request-id" in response.headers

    answered()
