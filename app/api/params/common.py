"""The services, the request's id, and parameters that several routes share.

The functions are `async` only so that FastAPI calls them on the event loop: a plain one would cost a thread.
"""

import re
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Header, Path, Query, Request
from pydantic import WithJsonSchema

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference, JobReference
from app.base.settings import Settings

if TYPE_CHECKING:
    from app.composition.wiring import Services

DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
LONGEST_TIMEOUT = 86_400


async def _services(request: Request) -> "Services":
    services: Services = request.app.services
    return services


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.settings
    return settings


async def _request_id(request: Request) -> str:
    """The id that `app.api.edge.middleware.Surroundings` gave to this request."""
    identifier: str = request.scope["request_id"]
    return identifier


def seconds(timeout: str | None) -> float | None:
    """The seconds of X-Request-Timeout. Raises InvalidRequest."""
    if timeout is None:
        return None
    number = float(timeout) if DECIMAL.fullmatch(timeout) else 0.0
    if not 0 < number <= LONGEST_TIMEOUT:
        fault = Fault("/header/X-Request-Timeout", f"It is seconds: more than 0, at most {LONGEST_TIMEOUT}.")
        raise InvalidRequest(faults=[fault])
    return number


ServicesDep = Annotated["Services", Depends(_services)]
SettingsDep = Annotated[Settings, Depends(_settings)]
RequestIdDep = Annotated[str, Depends(_request_id)]

Limit = Annotated[int, Query(ge=1, le=200, description="Largest number of items on a page.")]
"""With a default of `PAGE`: `limit: Limit = PAGE`."""
PAGE = 50
Cursor = Annotated[
    str | None,
    Query(pattern=r"^[A-Za-z0-9_.~=-]{1,200}$", description="`next_cursor` of the page before."),
]
Offset = Annotated[int, Query(ge=0, lt=2**53, description="Rows to leave out at the start.")]

JobPath = Annotated[JobReference, Path(description="The job's id, or its name: the newest job of that name.")]
DatasetPath = Annotated[
    DatasetReference,
    Path(
        description="The dataset's id, or its name: the newest dataset of that name. A name with a slash is found by "
        "`GET /v1/datasets?name=` instead."
    ),
]
ModelPath = Annotated[str, Path(pattern=r"^[a-z0-9_-]{1,100}$", description="The model's name.")]
AliasPath = Annotated[str, Path(pattern=r"^[a-z0-9_-]{1,100}$", description="The alias.")]
VersionPath = Annotated[int, Path(ge=1, lt=2**31, description="The version, counted from 1.")]
CONFIDENCE = Query(ge=0.5, lt=1, description="Confidence level of each interval, from 0.5 to below 1.")

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="A request that is sent again with the same key and body returns the job of the first one.",
    ),
]
RequestTimeout = Annotated[
    str | None,
    Header(description="Seconds within which the response must begin: more than 0, at most 86400."),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_TIMEOUT}),
]
"""Value of the header X-Request-Timeout, as `seconds` reads it."""
IfMatch = Annotated[
    str | None, Header(pattern=r"^[\x20-\x7e]{1,255}$", description="Do it only if the ETag is still this one.")
]
