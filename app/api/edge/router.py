"""Routers whose routes the application takes as they are: `include_router` makes, and keeps, each a second time."""

from operator import attrgetter
from typing import Any

from fastapi import APIRouter

from app.api.edge.strict_route import StrictRoute


class Router(APIRouter):
    """Bodies are parsed strictly, and an operation has the name of its function."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"route_class": StrictRoute, "generate_unique_id_function": attrgetter("name"), **settings})

    def take(self, other: APIRouter) -> None:
        """The routes of another router, after these."""
        self.routes.extend(other.routes)
