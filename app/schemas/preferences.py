"""Preferences on the wire: candidates that a person compares, and the weights of goals that follow."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from app.base.references import JobName, JobReference
from app.base.wire import Body, Wire
from app.ml.decisions.preference_study import Candidate, PairComparison, PreferenceGoal

MOST_CANDIDATES, MOST_COMPARISONS = 200, 5000
REVISION = "Number of requests with comparisons that were taken."


class PreferenceSpec(Body):
    """Goals and candidates, given or taken from the front of a job."""

    name: JobName | None = Field(None, description="A name for people; null: none.")
    goals: list[PreferenceGoal] | None = Field(
        None, min_length=2, max_length=20, description="Goals whose weights are learned; null: those of the job."
    )
    candidates: list[Candidate] | None = Field(
        None,
        min_length=2,
        max_length=MOST_CANDIDATES,
        description="Candidates to compare, numbered from 0 in this order; null: the solutions of the job.",
    )
    job: JobReference | None = Field(
        None,
        description="A job of the kind optimise with a front, by its id or name: its goals and its solutions are "
        "compared. Null: goals and candidates are given.",
    )
    l2: float = Field(
        0.1,
        ge=1e-6,
        le=1e6,
        description="Penalty beside the sum of losses, Σ log(1 + exp(-difference)) + ½·l2·‖weights‖², weights per "
        "standard deviation of each goal over the candidates: the inverse variance of the prior.",
    )


class ComparisonsRequest(Body):
    """Comparisons of a person, and further candidates."""

    revision: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="Revision that the preferences have now: the comparisons are taken only on this one, and once. "
        "Null: on any, and once by the Idempotency-Key.",
    )
    candidates: list[Candidate] = Field(
        [], max_length=MOST_CANDIDATES, description="Further candidates, numbered on from those before."
    )
    comparisons: list[PairComparison] = Field(
        [], max_length=MOST_COMPARISONS, description="Pairs of candidates, each with the one that is better."
    )


class GoalWeight(Wire):
    """Weight of a goal, as far as comparisons have shown it."""

    name: str = Field(description="Name of the goal.")
    aim: str = Field(description="maximise, minimise or target.")
    value: float | None = Field(None, description="Value of a target; null for maximise and minimise.")
    weight: float = Field(
        description="Change of the logarithm of the odds of being preferred, per unit of the goal towards its aim: "
        "a `weight` of a goal in optimise with weighted_sum."
    )
    standard_error: float = Field(description="Standard deviation of the weight, by the comparisons and the prior.")
    lower: float = Field(description="Lower end of the 95 % interval of the weight.")
    upper: float = Field(description="Upper end of the 95 % interval of the weight.")
    probability_positive: float = Field(
        description="Probability that the weight is above 0: that the person agrees with the aim."
    )
    share: float = Field(
        description="Part of the goal in the differences of candidates: weight times standard deviation over the "
        "candidates, as a share of all goals."
    )


class CandidateUtility(Wire):
    """A candidate, and how good it is by the weights."""

    number: int = Field(description="Number of the candidate, from 0.")
    values: dict[str, float] = Field(description="Value of each goal, by its name.")
    row: dict[str, Any] | None = Field(None, description="Other properties that a person sees; null: its values alone.")
    utility: float = Field(description="Sum of weights times goals, less that of the mean candidate.")
    probability_best: float = Field(description="Probability that it is the best candidate.")


class NextPair(Wire):
    """Most informative pair of candidates on the weights."""

    first: int = Field(description="Number of the first candidate, from 0.")
    second: int = Field(description="Number of the second candidate, from 0.")
    probability: float = Field(description="Probability, by the weights, that the first is preferred.")
    information: float = Field(description="Expected information of the comparison on the weights, in bits; at most 1.")


class LearnedPreferences(Wire):
    """Weights of goals after the comparisons of one revision."""

    preference: UUID = Field(description="Id of the preferences.")
    revision: int = Field(description=REVISION)
    comparisons: int = Field(description="Number of comparisons.")
    contradicted: int = Field(description="Number of comparisons that the weights contradict.")
    weights: list[GoalWeight] = Field(description="Weights of the goals, in their order.")
    candidates: list[CandidateUtility] = Field(description="Candidates, the best first.")
    next_pair: NextPair | None = Field(
        None, description="Pair to compare next, of those not yet compared; null: no further pair is informative."
    )
    optimise: dict[str, Any] | None = Field(
        None,
        description="Request of `POST /v1/jobs/optimise` that finds the inputs of the largest sum by these weights: "
        "that of the job, with the weights. Null where goals and candidates were given.",
    )


class Preference(Wire):
    """Preferences of a person between candidates."""

    id: UUID = Field(description="Id of the preferences.")
    name: str | None = Field(None, description="Name given at their creation; null: none was given.")
    created_at: datetime = Field(description="Time of creation, in UTC.")
    updated_at: datetime = Field(description="Time of the last comparisons, in UTC.")
    revision: int = Field(description=REVISION)
    goals: list[str] = Field(description="Names of the goals.")
    candidates: int = Field(description="Number of candidates.")
    comparisons: int = Field(description="Number of comparisons.")


class PreferenceDetail(Preference):
    """Preferences with all comparisons, and the weights that follow."""

    l2: float = Field(description="Penalty beside the sum of losses.")
    given: list[PairComparison] = Field(description="Comparisons, oldest first.")
    learned: LearnedPreferences = Field(description="Weights, candidates and the pair to compare next.")


class PreferencePage(Wire):
    """Page of preferences, newest first."""

    items: list[Preference] = Field(description="Items of this page.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")
