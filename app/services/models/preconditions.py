"""Conditions of a write: the entity tags in If-Match, of which the resource still has one."""

from app.base.errors import PreconditionFailed


def demand(if_match: str | None, etag: str | None, thing: str) -> None:
    """RFC 9110, 13.1.1: the strong comparison, so a weak tag matches nothing.

    etag: of the resource as it is now; None: it is not set. thing: how the error names it.

    Raises PreconditionFailed.
    """
    if if_match is None:
        return
    if etag is None:
        raise PreconditionFailed(f"{thing} is not set.")
    tags = [tag.strip() for tag in if_match.split(",")]
    if tags != ["*"] and etag not in tags:
        raise PreconditionFailed(f"{thing} is at {etag} now.", headers={"ETag": etag})
