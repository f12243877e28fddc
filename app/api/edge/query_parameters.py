"""Parameters in the address: a route refuses those that it does not have, which would be ignored otherwise."""

from collections.abc import Collection
from itertools import islice

from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from starlette.datastructures import QueryParams

from app.base.errors import InvalidRequest
from app.base.faults import Fault, place
from app.base.suggestions import no_such

MAX_NAMED = 20


def names_of(dependant: Dependant) -> frozenset[str]:
    """Names of the parameters that a route, or what it depends on, takes from the address."""
    return frozenset(field.alias for field in get_flat_params(dependant) if isinstance(field.field_info, Query))


def demand_known(sent: QueryParams, names: Collection[str]) -> None:
    """Raises InvalidRequest with the parameters that were sent and are not among the names, `MAX_NAMED` at most."""
    unknown = islice((name for name in dict.fromkeys(sent) if name not in names), MAX_NAMED)
    faults = [Fault(place("query", name), _detail(name, names), "unknown_parameter") for name in unknown]
    if faults:
        raise InvalidRequest(faults=faults)


def _detail(name: str, names: Collection[str]) -> str:
    offered = f"It has {', '.join(sorted(names))}." if names else "It has none."
    return f"{no_such('The operation has no parameter', name, names)} {offered}"
