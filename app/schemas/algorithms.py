"""The catalogue on the wire."""

from typing import Any

from pydantic import Field

from app.wire import Wire


class AlgorithmCard(Wire):
    """What an algorithm is for, and what it may be told."""

    name: str
    title: str
    tasks: list[str]
    gist: str = Field(description="How it works, in three sentences at most.")
    method: str | None = Field(
        None, description="How it works in full, with equations and conventions; only in `GET /v1/algorithms/{name}`."
    )
    use_when: str = Field(description="When to choose it.")
    references: list[str]
    family: str | None = Field(
        None,
        description="Of classifiers. generative: learns how each class makes its rows; discriminative: only how to "
        "tell classes apart.",
    )
    scores: str | None = Field(
        None,
        description="Meaning of `probabilities` with default parameters. `probability`: estimates of P(class | row); "
        "`membership`: degrees between 0 and 1 that only say how clear a case is, for which reports give no log loss "
        "and no Brier score. Null: not a classifier.",
    )
    parameters: dict[str, Any] = Field(
        description="JSON Schema of the parameters beside `name`. One that is itself an algorithm refers to "
        "`Learner` in `/openapi.json`."
    )


class AlgorithmPage(Wire):
    items: list[AlgorithmCard]
    next_cursor: str | None = None
