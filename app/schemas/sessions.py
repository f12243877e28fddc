"""Online sessions on the wire."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, WithJsonSchema

from app.base.wire import Body, Wire
from app.ml.contract.labels import Label
from app.ml.sessions.session_model import Choice
from app.ml.sessions.session_rounds import MOST_OPEN, MOST_ROWS
from app.ml.sessions.session_spec import SessionSpec
from app.schemas.models import ModelVersion

_Object = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": True})]
_Name = Annotated[Any, WithJsonSchema({"type": "string"})]
_Values = Annotated[Any, WithJsonSchema({"type": "array", "items": {}})]
"""Types of what whoever reads rows validates: of many faults it lists the first."""
REVISION = "Number of requests with rounds that were learned."


class RoundCounts(Wire):
    """Counts of a session after its last round."""

    rounds: int = Field(description="Rounds that were predicted.")
    learned: int = Field(description="Rounds whose label has come; all other counts are of these.")
    waiting: int = Field(description="Rounds that wait for their label.")
    delayed: int = Field(
        description="Rounds that were predicted while an earlier one waited for its label. From the first on no bound "
        "holds."
    )
    mistakes: int | None = Field(
        None, description="Rounds whose prediction was the other label; null where labels are numbers."
    )
    loss: float = Field(
        description="Cumulative loss: mistakes, expected mistakes of a learner that draws its predictions, or the loss "
        "that the learner minimises."
    )
    regret: float | None = Field(
        None,
        description="Loss beyond that of the best fixed hypothesis in hindsight, or an upper bound on it; null where "
        "the learner does not know the best.",
    )
    bound: float | None = Field(
        None, description="Theorem's bound on the mistakes or the regret so far; null where none holds."
    )
    bounded: str = Field(description="Quantity that the bound is about: mistakes or regret.")


class RoundCurve(Wire):
    """Counts along the rounds, at no more than 256 of them."""

    learned: list[int] = Field(description="Number of rounds learned at each point.")
    mistakes: list[float] = Field(description="Mistakes up to each point.")
    loss: list[float] = Field(description="Cumulative loss up to each point.")
    regret: list[float | None] = Field(description="Regret up to each point; null where it is unknown.")
    bound: list[float | None] = Field(description="Bound at each point; null where none holds.")


class Session(Wire):
    """Online session: a learner that predicts each row before it learns its label."""

    id: UUID = Field(description="Id of the session.")
    name: str | None = Field(None, description="Name given at its creation; null: none was given.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    updated_at: datetime = Field(description="Time of the last round, in UTC.")
    revision: int = Field(description=REVISION)
    learner: str = Field(description="Name of the learner.")
    target: str = Field(description="Name of the column that holds labels.")
    labels: list[Label] | None = Field(None, description="The two labels; null where labels are numbers.")
    counts: RoundCounts = Field(description="Counts after the last round.")


class SessionDetail(Session):
    """Online session with its request, its curve and its present hypothesis."""

    spec: dict[str, Any] = Field(description="Request that opened the session, with all defaults.")
    theorem: str = Field(description="Theorem behind the bound, in one sentence.")
    curve: RoundCurve = Field(description="Counts along the rounds.")
    open_rounds: list[int] = Field(description="Numbers of the rounds that wait for their label.")
    summary: dict[str, Any] = Field(description="Summary of the present hypothesis by the learner.")


class SessionPage(Wire):
    """Page of sessions, newest first."""

    items: list[Session] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")


class RoundLabel(Body):
    """Label of a round that was predicted before."""

    number: int = Field(ge=1, lt=2**63, description="Number of the round, from 1.")
    label: Label = Field(description="Its label.")


class RoundsRequest(Body):
    """Rounds: labels of earlier rows, and further rows by row or by column, with or without labels."""

    revision: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="Revision that the session has now: the request is learned only on this one, and once. Null: on "
        "any, and once by its Idempotency-Key.",
    )
    labels: list[RoundLabel] = Field(
        [],
        max_length=MOST_OPEN,
        description="Labels of rounds that wait for them; they are learned before the rows are predicted.",
    )
    rows: list[_Object] | None = Field(
        None,
        description=f"Rows in their order, each an object of values by column name: at most {MOST_ROWS}. One without a "
        "label, or with null, is only predicted. Null: there are none, or they come as columns.",
    )
    columns: list[_Name] | None = Field(None, description="Names of the columns of `data`; null: there is no data.")
    data: list[_Values] | None = Field(
        None, description="Rows, each a list of values in the order of `columns`; null: there are none."
    )


class RoundsResult(Wire):
    """Predictions of the rows of a request, each made before its label was learned."""

    session: UUID = Field(description="Id of the session.")
    revision: int = Field(description=REVISION)
    first_round: int = Field(description="Number of the first row's round; the others follow.")
    predictions: list[Label] = Field(description="Predicted labels or numbers, one for each row.")
    counts: RoundCounts = Field(description="Counts after these rounds.")


class PublishRequest(Body):
    """A model that gets the hypothesis of a session as its next version."""

    model: str = Field(pattern=r"^[a-z0-9_-]{1,100}$", description="Name of the model.")
    hypothesis: Choice = Field(
        "last",
        description="`last`: the present hypothesis; `average`: the mean of those of all rounds; `random_round`: that "
        "of a round drawn with equal probability; `longest_survivor`: that which predicted most rounds in a row.",
    )
    revision: int | None = Field(None, ge=0, lt=2**63, description="Revision that the session must have; null: any.")


class HypothesisBound(Wire):
    """Bound on the error of a hypothesis for new rows, if all rows are drawn alike and independently."""

    value: float = Field(description="The bound.")
    statement: str = Field(description="Quantity that is bounded, in one sentence.")


class Publication(Wire):
    """Model version that was published from a session."""

    version: ModelVersion = Field(description="The version.")
    hypothesis: str = Field(description="Hypothesis of the session that it is.")
    bound: HypothesisBound | None = Field(None, description="Bound on its error; null: there is none.")


__all__ = ["SessionSpec"]
