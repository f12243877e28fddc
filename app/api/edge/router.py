"""Routers whose routes the application takes as they are: `include_router` makes, and keeps, each a second time."""

from operator import attrgetter
from typing import Any, NamedTuple

from fastapi import APIRouter

from app.api.edge.admission import GuardedRoute
from app.api.edge.strict_route import StrictRoute
from app.schemas.keys import Scope
from app.services.access.passes import ANY_SCOPE, PUBLIC


class Needs(NamedTuple):
    """Scopes for the routes of a router: of each set one is needed, and nothing where it is empty."""

    to_get: frozenset[Scope]
    to_change: frozenset[Scope]
    """With any other method."""


def _both(needs: frozenset[Scope]) -> Needs:
    return Needs(needs, needs)


OPEN = _both(PUBLIC)
KNOWN = _both(ANY_SCOPE)
PREDICT, READ, ADMIN, OPERATOR = (
    _both(frozenset({scope})) for scope in (Scope.PREDICT, Scope.READ, Scope.ADMIN, Scope.OPERATOR)
)
READ_WRITE = Needs(READ.to_get, frozenset({Scope.WRITE}))
_ADAPTERS: dict[Any, Any] = {}
"""Adapters of pydantic that write responses, by type. FastAPI makes one for each route: 5 MB for jobs alone."""


class Router(APIRouter):
    """Bodies are parsed strictly, an operation has the name of its function, and needs a scope of the caller's key."""

    def __init__(self, *, needs: Needs, **settings: Any) -> None:
        super().__init__(**{"route_class": StrictRoute, "generate_unique_id_function": attrgetter("name"), **settings})
        self._needs = needs

    def add_api_route(self, path: str, endpoint: Any, **settings: Any) -> None:
        super().add_api_route(path, endpoint, **settings)
        route = self.routes[-1]
        assert isinstance(route, GuardedRoute)  # noqa: S101  every route class of ours is one
        route.needs = self._needs.to_get if route.methods == {"GET"} else self._needs.to_change
        if (field := route.response_field) is not None:
            field._type_adapter = _ADAPTERS.setdefault(route.response_model, field._type_adapter)  # noqa: SLF001

    def take(self, other: APIRouter) -> None:
        """The routes of another router, after these."""
        self.routes.extend(other.routes)
