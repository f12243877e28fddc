"""Every failure as `application/problem+json`, in the one shape of `app.schemas.problems`."""

from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import TypeAlias

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from app.base import logs
from app.base.errors import (
    BodyTooLarge,
    InvalidRequest,
    UnsupportedMediaType,
    ValiantError,
)
from app.base.validation import validation_faults
from app.schemas.problems import Problem

MEDIA_TYPE = "application/problem+json"
CODE = "valiant.code"
"""Key of the scope that holds the code of a problem, for the log."""
log = structlog.get_logger(__name__)


class NotFound(ValiantError):
    code, status, title = "not_found", 404, "There is nothing at this address"


class MethodNotAllowed(ValiantError):
    code, status, title = "method_not_allowed", 405, "This address does not know this method"


class AddressTooLong(ValiantError):
    code, status, title = "uri_too_long", 414, "The address is too long"
    remedy = "Send long input in the body."


class HeadTooLarge(ValiantError):
    code, status, title = "header_too_large", 431, "The header fields are too large"


class MalformedRequest(ValiantError):
    code, status, title = "malformed_request", 400, "The request could not be read"


FRAMEWORK = {404: NotFound, 413: BodyTooLarge, 415: UnsupportedMediaType}


class InternalError(ValiantError):
    remedy = "Report the request_id; the cause is in the log under it."


def install(app: FastAPI) -> None:
    """Return a problem for every exception a route may raise: the handlers are those of the application."""

    async def handle(request: Request, error: Exception) -> Response:
        return response_to(request.scope, error)

    for kind in app.problem_handlers:  # type: ignore[attr-defined]  # it is an `Application`
        app.add_exception_handler(kind, handle)


def response_to(scope: Scope, error: Exception) -> Response:
    """An unexpected exception is a fault of ours, and the response reveals nothing of it."""
    request, handlers = Request(scope), scope["app"].problem_handlers
    for kind in type(error).__mro__:
        if kind in handlers:
            response: Response = handlers[kind](request, error)
            return response
    logs.unexpected(error)
    return respond(request, InternalError())


def respond(request: Request, error: ValiantError) -> Response:
    request.scope[CODE] = error.code
    problem = Problem.of(error, request_id=request.scope["request_id"])
    return Response(problem.model_dump_json(), error.status, error.headers, MEDIA_TYPE)


def named(request: Request, error: Exception) -> Response:
    assert isinstance(error, ValiantError)  # noqa: S101  registered for it
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("not_served", code=error.code, detail=error.detail)
    return respond(request, error)


def _gone(_: Request, __: Exception) -> Response:
    """Nobody reads this; it keeps a hang-up from looking like a fault of ours."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


def _validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for it
    return respond(request, InvalidRequest(faults=validation_faults(error.errors())))


def _http(request: Request, error: Exception) -> Response:
    """Errors of the framework itself: unknown addresses and methods, and forms it cannot read."""
    assert isinstance(error, HTTPException)  # noqa: S101  registered for it
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return respond(request, _not_allowed(_methods(request)))
    return respond(request, FRAMEWORK.get(error.status_code, MalformedRequest)())


Handlers: TypeAlias = Mapping[type[Exception], Callable[[Request, Exception], Response]]
HANDLERS: Handlers = {
    ValiantError: named,
    RequestValidationError: _validation,
    HTTPException: _http,
    ClientDisconnect: _gone,
}


def check_method(scope: Scope) -> None:
    """Raises MethodNotAllowed where an address without parameters does not have the method."""
    methods = scope["app"].literal_paths.get(scope["path"])
    if methods and scope["method"] not in methods:
        raise _not_allowed(methods)


def with_head(methods: Collection[str]) -> Collection[str]:
    """HEAD gets a response wherever GET does."""
    return {*methods, "HEAD"} if "GET" in methods else methods


def _methods(request: Request) -> Collection[str]:
    """All methods of an address. The router knows only those of the first route that fits."""
    path = request.scope["path"]
    fitting = (route for route in iter_route_contexts(request.app.routes) if route.path_regex.match(path))
    return with_head(set().union(*(route.methods or () for route in fitting)))


def _not_allowed(methods: Collection[str]) -> MethodNotAllowed:
    return MethodNotAllowed(headers={"Allow": ", ".join(sorted(methods))})
