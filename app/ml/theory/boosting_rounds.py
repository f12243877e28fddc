"""Training error and rounds of boosting: how fast weak learners with a known edge add up to a strong one.

Bounds of AdaBoost, of a majority with a fixed factor (`boost_majority`) and of boost-by-majority, for an edge that
every weak learner has, or for the weighted errors of the rounds of a fit.
"""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.calculator import Risk, TheoryResult, TheoryValue, counts, curve, value
from app.ml.kinds.query import Query
from app.ml.numerics.learning_theory.boosting_edges import (
    adaboost_bounds,
    boost_by_majority_bound,
    fixed_factor_bound,
    sufficient_rounds,
)
from app.ml.numerics.learning_theory.pac_bounds import least

MOST_ROUNDS = 100_000


class BoostingRoundsRequest(Body):
    """Rows, the edge of weak learners or their weighted errors, and rounds."""

    rows: int = Field(ge=1, le=10**12, description="Number of training rows.")
    edge: float | None = Field(
        None,
        ge=1e-3,
        le=0.5,
        description="Edge of every weak learner: it is right on at least 1/2 + edge of the weight. Null: `errors` are "
        "given.",
    )
    rounds: int | None = Field(
        None, ge=1, le=MOST_ROUNDS, description="Rounds of boosting; null: as many as leave no training error."
    )
    errors: list[Risk] | None = Field(
        None,
        min_length=1,
        max_length=MOST_ROUNDS,
        description="Weighted error of each round, from 0 to 1, as the curve `weighted_error` of a report; null: "
        "`edge` is given.",
    )


def calculate(request: BoostingRoundsRequest) -> TheoryResult:
    """Raises InvalidRequest unless either an edge or errors are given."""
    if faults := list(_faults(request)):
        raise InvalidRequest(faults=faults)
    values, x, lines = _of_errors(request.errors) if request.errors else _of_edge(request)
    return TheoryResult(
        calculator="boosting_rounds",
        values=values,
        formula="AdaBoost: error <= product of 2 sqrt(e (1 - e)) <= exp(-2 sum of edge^2); fixed factor "
        "(1/2 + edge)/(1/2 - edge): error <= (1 - 4 edge^2)^(rounds/2), none after ln(rows)/(2 edge^2) rounds; "
        "boost-by-majority: error <= P(Binomial(rounds, 1/2 + edge) <= rounds/2)",
        source="Freund and Schapire (1997), J. Comput. Syst. Sci. 55:119, Theorem 6; Freund (1995), Inf. Comput. "
        "121:256.",
        assumptions=[
            "There are two classes.",
            "Every weak learner has the edge, whatever the weights of the rows.",
        ],
        notes=["The bounds are of the training error: they promise nothing of new rows."],
        curves=[curve("Bound of the training error by round", ("rounds", "share of errors"), x, lines)],
    )


def _of_errors(errors: list[float]) -> tuple[list[TheoryValue], list[int], dict[str, list[float]]]:
    weighted_errors = np.array(errors)
    bounds = adaboost_bounds(weighted_errors)
    x = counts(1, len(errors))
    picked = np.array(x) - 1
    loose = np.exp(-2 * np.cumsum((1 / 2 - weighted_errors) ** 2))
    values = [
        value("adaboost_bound", float(bounds[-1]), "Bound of the training error of AdaBoost after these rounds."),
        value("exponential_bound", float(loose[-1]), "Its simpler bound, exp(-2 sum of squared edges)."),
        value(
            "smallest_edge",
            float(1 / 2 - weighted_errors.max()),
            "Edge of the weakest round: 1/2 less its weighted error.",
        ),
    ]
    return values, x, {"AdaBoost": bounds[picked].tolist(), "exponential": loose[picked].tolist()}


def _of_edge(request: BoostingRoundsRequest) -> tuple[list[TheoryValue], list[int], dict[str, list[float]]]:
    edge, rows = request.edge or 0.0, request.rows
    enough = sufficient_rounds(rows, edge)
    rounds = request.rounds or enough
    fewest = 2 * least(lambda half: boost_by_majority_bound(edge, 2 * half - 1) < 1 / rows) - 1
    x = counts(1, max(rounds, enough))
    fixed = [fixed_factor_bound(edge, t) for t in x]
    majority = [boost_by_majority_bound(edge, t) for t in x]
    values = [
        value("sufficient_rounds", enough, "Rounds that leave no training error: more than ln(rows) / (2 edge^2)."),
        value("rounds", rounds, "Rounds of the bounds below."),
        value("bound", fixed_factor_bound(edge, rounds), "Bound of the training error of AdaBoost and fixed factor."),
        value(
            "boost_by_majority_bound",
            boost_by_majority_bound(edge, rounds),
            "Bound of the training error of boost-by-majority, whose weights depend on the rounds that are left.",
        ),
        value("boost_by_majority_rounds", fewest, "Fewest odd rounds with which boost-by-majority has no error."),
        value(
            "factor",
            float("inf") if edge == 1 / 2 else (1 / 2 + edge) / (1 / 2 - edge),
            "Factor of the weight of a row that a weak learner gets wrong; null: infinite.",
        ),
    ]
    return values, x, {"AdaBoost and fixed factor": fixed, "boost-by-majority": majority}


def _faults(request: BoostingRoundsRequest) -> Iterator[Fault]:
    if request.edge is None and request.errors is None:
        yield Fault("/edge", "Give the edge of weak learners, or their errors.", "missing")
    for name in ("edge", "rounds"):
        if request.errors is not None and getattr(request, name) is not None:
            yield Fault(f"/{name}", "The errors of all rounds are given: leave it out.")


QUERY = Query(
    operation="calculate_boosting_rounds",
    request=BoostingRoundsRequest,
    response=TheoryResult,
    run=calculate,
    path="/v1/theory/boosting_rounds",
    tag="theory",
)
