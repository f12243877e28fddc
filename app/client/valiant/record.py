"""Objects of the service: their fields as attributes, and the requests they make."""

import json
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from .operation import Driven, M
from .steps import Call, Reply, Steps, send
from .summary_table import SummaryTable

if TYPE_CHECKING:
    from .drivers import Async, Sync


class Record(Driven[M]):
    """An object of the service as it was when it was read. A field that is absent is None."""

    def __init__(self, driver: M, fields: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.driver = driver
        self.fields = fields
        """Everything that the service sent, also what this release of the client does not know."""

    def __getattr__(self, name: str) -> Any:
        fields: Mapping[str, Any] = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        if name in type(self).__annotations__:
            return None
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.fields})

    def overview(self) -> SummaryTable:
        """The object as a small table: all fields that are a text or a number, unless it has a better one."""
        rows = [[name, value] for name, value in self.fields.items() if isinstance(value, (str, int, float))]
        return SummaryTable(type(self).__name__, ("field", "value"), rows)

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        return self.overview().html()

    def _send(self, method: str, *parts: object, body: Any = None, **options: Any) -> Steps[Reply]:
        return request(self.driver, method, *parts, body=body, **options)

    def _json(self, method: str, *parts: object, body: Any = None, **options: Any) -> Steps[Any]:
        return (yield from self._send(method, *parts, body=body, **options)).json()


def request(
    driver: "Sync | Async", method: str, *parts: object, body: Any = None, headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Steps[Reply]:  # fmt: skip
    """The reply to one request. parts: of the address; body: JSON, unless `options` hold another `content`.

    Every POST has an Idempotency-Key, the same in each attempt.
    """
    path = "/v1/" + "/".join(quote(str(part), safe=":") for part in parts)
    sent = dict(headers or {})
    if method == "POST":
        sent["Idempotency-Key"] = os.urandom(16).hex()
    content = options.pop("content", None)
    if body is not None:
        sent["Content-Type"] = "application/json"
        content = json.dumps(body, default=plain, allow_nan=False).encode()
    return send(Call(method, path, headers=sent, body=content, **options), driver.timeout)


class Referred(Protocol):
    """An object that stands for itself in a request."""

    def as_reference(self) -> Any: ...


def plain(value: Any) -> Any:
    """JSON of what a request may hold beside JSON: objects of the service, and numbers of numpy."""
    for name in ("as_reference", "tolist", "isoformat"):
        convert: Callable[[], Any] | None = getattr(value, name, None)
        if convert is not None:
            return convert()
    raise TypeError(f"{type(value).__name__} does not belong in a request")


def items(driver: "Sync | Async", *parts: object, limit: int | None = None, **query: Any) -> Steps[list[Any]]:
    """The items of all pages of a list, at most `limit`."""
    items: list[Any] = []
    cursor = None
    while limit is None or len(items) < limit:
        size = 100 if limit is None else min(100, limit - len(items))
        reply = yield from request(driver, "GET", *parts, query={"limit": size, "cursor": cursor, **query})
        page = reply.json()
        items += page["items"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    return items
