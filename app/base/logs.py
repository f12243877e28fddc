"""Logs: one JSON object a line on stderr, ours and our libraries' alike, with the ids bound at the edge.

Secrets are typed as such and never formatted; what a library may still quote of an address (a
password within a URL) is struck out of the finished line.
"""

import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from random import random
from typing import Any

import orjson
import structlog
from structlog.types import EventDict, Processor

PASSWORD = re.compile(r"(?<=://)([^\s:/@\"]*):[^\s/\"]*@")
IDS: ContextVar[tuple[str, str | None] | None] = ContextVar("ids", default=None)
"""The ids of a request of the API, and of the trace that it is part of, if there is one. Every line has them."""
LIBRARIES = ("uvicorn", "uvicorn.error", "uvicorn.access", "celery", "celery.task", "celery.redirected")


_edge = logging.getLogger("app.api")
_log = structlog.get_logger("app.api")
_own: list[logging.StreamHandler[Any] | None] = [None]
"""The handler that `configure` made."""


_share = [1.0]
"""Share of the requests with a status below 400 that have a line."""


def configure(level: str = "INFO", *, request_share: float = 1) -> None:
    """Once a process, by whoever starts it; again does no harm. request_share: as VALIANT_LOG_REQUESTS."""
    _share[0] = request_share
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_ids,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # what is cached before this call would be kept
    )
    handler = _own[0] = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(allow=[])],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _line],
        )
    )
    logging.root.handlers = [handler]
    logging.root.setLevel(level.upper())
    for name in LIBRARIES:
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True


def logs_request(status: int) -> bool:
    """True if a request with this status has a line: at random, unless it was refused or failed."""
    if _own[0] is None or not _edge.isEnabledFor(logging.INFO):
        return False
    return status >= HTTPStatus.BAD_REQUEST or _share[0] >= 1 or random() < _share[0]  # noqa: S311 - no secret


def request(**facts: object) -> None:
    """The line of one request: as structlog would write it, without the way there, as each request writes one."""
    handler = _own[0]
    if handler is None:
        return
    ours = {"event": "request", "logger": _edge.name, "level": "info", "timestamp": datetime.now(UTC)}
    event = _with_ids(None, "info", {**facts, **ours})
    handler.acquire()
    try:
        handler.stream.write(f"{_written(event)}\n")
        handler.stream.flush()
    except OSError:  # a log on a full disk costs lines, not requests
        pass
    finally:
        handler.release()


def _with_ids(_: Any, __: str, event: EventDict) -> EventDict:
    ids = IDS.get()
    if ids is not None:
        event["request_id"], trace_id = ids
        if trace_id:
            event["trace_id"] = trace_id
    return event


def unexpected(error: Exception) -> None:
    """The log line of an unexpected failure."""
    _log.error("unexpected", error=type(error).__name__, exc_info=error)


def cut(error: Exception) -> None:
    """The log line of a response whose rest is not sent, as intended."""
    _log.info("response_cut", reason=str(error))


def _line(_: Any, __: str, event: EventDict) -> str:
    return _written(event)


def _written(event: EventDict) -> str:
    written = orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z).decode()
    return PASSWORD.sub(r"\1:***@", written) if "://" in written else written
