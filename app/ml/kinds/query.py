"""The contract of a query.

A file of `app/ml/queries/` defines a request, a response and a plain function from one to the other, and states them in
one `QUERY` record. The file's name is the query's name, its docstring the description of the operation. The route, the
choice of the version, limits, errors and the OpenAPI document follow from that record.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from app.base.errors import NotOffered, ValiantError
from app.base.wire import Body, Wire
from app.ml.catalogue.nested import offers
from app.ml.models.model import Model

R = TypeVar("R", bound=BaseModel)


class Subject(NamedTuple):
    """The model version that a query is about."""

    name: str
    """Name of the model."""
    version: int
    digest: str
    model: Model
    max_rows: int
    """Rows that one request may send, or one response may hold."""
    names: Mapping[int, str] = MappingProxyType({})
    """Names that a person has given to clusters, by their numbers."""

    @property
    def fields(self) -> dict[str, Any]:
        """Those of `ModelResponse`."""
        return {"model": self.name, "version": self.version, "digest": self.digest, "task": self.model.task.value}


class Options(Body):
    """Parameters of the address beside the body: none. A query's own options are one of these."""


def any_model(_: Model) -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Query(Generic[R]):
    """One query, as its file states it."""

    operation: str
    """Name of the operation in SDKs: verb_noun."""
    request: type[R]
    response: type[Wire]
    run: Callable[..., Wire]
    """Pure: (subject, request) of a model, else (request); options follow by name. Its exceptions of
    `app.base.errors` reach the client."""
    options: type[Options] = Options
    offered: Callable[[Model], bool] = any_model
    refusal: type[ValiantError] = NotOffered
    """Raised for a model that does not offer it."""
    path: str | None = None
    """Path of a query without a model: /v1/<group>/<name>; None: /v1/models/{model}/<name>."""
    tag: str = "predictions"


def declared(name: str) -> Callable[[Model], bool]:
    """Offered by the models whose algorithm has a function for it among its `queries`, as have all learners within."""
    return lambda model: offers(model.algorithm, model.params, model.task, name)
