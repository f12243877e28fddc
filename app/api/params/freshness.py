"""Headers for the revision or the version that a caller knows of, and for the age of the replica's copy of it."""

from functools import partial
from typing import Annotated

from fastapi import Header

from app.services.predictions.predictions import Served

_Smallest = partial(Header, ge=1, lt=2**31)
"""A header with a whole number from 1 on that a column of the database holds."""
MinRevision = Annotated[
    int | None,
    _Smallest(
        description="Smallest acceptable revision of the alias, as the move of an alias returns it; an older one is "
        "read anew from the database. Without `alias` it refers to `champion`.",
    ),
]
"""With a default of None: `x_min_revision: MinRevision = None`."""
MinVersion = Annotated[
    int | None,
    _Smallest(
        description="Version that the caller knows to exist, as a job that succeeded names it: where the newest "
        "version predicts, an older one is read anew from the database. Without meaning where `champion` is set; "
        "a version that was deleted since is no fault.",
    ),
]
"""With a default of None too."""
STALE = "X-Model-Stale-Seconds"
DESCRIPTION = (
    "Age in seconds of what is known about the version or alias, sent only if the database could not confirm it in "
    "time: a newer move or deletion may be missing from this response."
)
_NAME = STALE.lower().encode()


def stale_header(served: Served) -> tuple[tuple[bytes, bytes], ...]:
    """Empty for a fresh pointer."""
    return () if served.stale_seconds is None else ((_NAME, b"%d" % served.stale_seconds),)
