"""References to datasets and jobs: an id, or a name that the caller gave.

A name means the newest thing of that name. What reads as a UUID is always an id, so no name may read as one.
"""

import re
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, PlainValidator, StringConstraints, WithJsonSchema

NAME_LENGTH = 200
"""Characters of a dataset's name."""
RESERVED = "upload"
"""No name of a dataset: `/v1/datasets/upload` is a route of its own."""
JOB_NAME = r"^[a-z0-9_-]{1,100}$"


def as_id(text: str) -> UUID | None:
    """The id that a text spells; None for a name."""
    try:
        return UUID(text)
    except ValueError:
        return None


def is_dataset_name(text: str) -> bool:
    """True if it is 1 to 200 printable characters, not all of them spaces, and no UUID."""
    return 1 <= len(text) <= NAME_LENGTH and text.isprintable() and not text.isspace() and as_id(text) is None


def _no_id(name: str) -> str:
    if as_id(name) is not None:
        raise ValueError("A name that reads as a UUID would be taken for an id: choose another.")
    return name


def _dataset(value: object) -> UUID | str:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and (name := as_id(value) or (is_dataset_name(value) and value)):
        return name
    raise ValueError("It should be the id or the name of a dataset.")


def _job(value: object) -> UUID | str:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and (name := as_id(value) or (re.fullmatch(JOB_NAME, value) and value)):
        return name
    raise ValueError("It should be the id or the name of a job.")


DatasetReference = Annotated[
    UUID | str,
    PlainValidator(_dataset),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": NAME_LENGTH}),
]
"""A UUID for an id, a str for a name."""
JobReference = Annotated[
    UUID | str, PlainValidator(_job), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 100})
]
"""A UUID for an id, a str for a name."""
JobName = Annotated[str, StringConstraints(pattern=JOB_NAME), AfterValidator(_no_id)]
