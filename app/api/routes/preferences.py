"""Preferences: a person compares candidates two at a time, and the weights of goals are learned."""

from typing import Annotated
from uuid import UUID

from fastapi import Header, Path, Response, status

from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.preferences import (
    ComparisonsRequest,
    LearnedPreferences,
    PreferenceDetail,
    PreferencePage,
    PreferenceSpec,
)

router = Router(needs=READ_WRITE, prefix="/v1/preferences", tags=["preferences"])
PreferencePath = Annotated[UUID, Path(description="Id of the preferences.")]
OpeningKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="A request that is sent again with the same key and body returns the preferences of the first one.",
    ),
]
TakingKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="Comparisons that are sent again with the same key and body are not taken again. The keys of the "
        "last 256 requests are remembered, and return what they returned first.",
    ),
]


@router.post("", status_code=status.HTTP_201_CREATED, responses=declare(201, {"Location": "Where they are described."}))
def create_preference(
    body: PreferenceSpec, services: ServicesDep, response: Response, idempotency_key: OpeningKey = None
) -> PreferenceDetail:
    """Begin to learn the weights of goals: candidates, or the front of an optimisation, for a person to compare.

    The response has the pair to compare first. The weights serve as the `weight` of goals in optimise.
    """
    made = services.preferences.open(body, key=idempotency_key)
    response.headers["Location"] = f"/v1/preferences/{made.id}"
    return made


@router.get("")
def list_preferences(services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None) -> PreferencePage:
    """Preferences, newest first."""
    return services.preferences.page(limit, cursor)


@router.get("/{preference_id}")
def get_preference(preference_id: PreferencePath, services: ServicesDep) -> PreferenceDetail:
    """All comparisons, the weights with their errors, the candidates from the best on, and the pair to compare next."""
    return services.preferences.get(preference_id)


@router.delete("/{preference_id}", status_code=status.HTTP_204_NO_CONTENT)
def delete_preference(preference_id: PreferencePath, services: ServicesDep) -> None:
    """Delete preferences, with their comparisons."""
    services.preferences.delete(preference_id)


@router.post("/{preference_id}/answers")
def compare_candidates(
    preference_id: PreferencePath,
    body: ComparisonsRequest,
    services: ServicesDep,
    idempotency_key: TakingKey = None,
) -> LearnedPreferences:
    """Take comparisons of a person, and return the weights and the pair to compare next.

    Any pairs may be sent; `next_pair` is the most informative. Further candidates may come with them, such as a plan
    that was found by the weights. The request is taken exactly once: with `revision`, only on this revision; with an
    Idempotency-Key, on any. Bad comparisons refuse the whole request.
    """
    return services.preferences.compare(preference_id, body, key=idempotency_key)
