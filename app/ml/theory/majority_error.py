"""Error of a majority vote of members that are each wrong with the same probability, independent or correlated.

Independent errors below 1/2 vanish as members are added. Errors of real members correlate, and those of a correlated
vote do not: `limit` is what remains.
"""

from pydantic import Field

from app.base.wire import Body
from app.ml.contract.calculator import TheoryResult, counts, curve, value
from app.ml.kinds.query import Query
from app.ml.numerics.learning_theory.majority_votes import limit, wrong_and_tied

MOST_MEMBERS = 10_000


class MajorityErrorRequest(Body):
    """Members of a vote, and their errors."""

    members: int = Field(ge=1, le=MOST_MEMBERS, description="Number of members that vote.")
    error: float = Field(ge=0, le=1, description="Probability, from 0 to 1, that one member is wrong.")
    correlation: float = Field(
        0.0, ge=0, le=1, description="Correlation of the errors of two members: 0 independent, 1 always the same."
    )


def calculate(request: MajorityErrorRequest) -> TheoryResult:
    members, error, correlation = request.members, request.error, request.correlation
    wrong, tied = wrong_and_tied(members, error, correlation)
    x = sorted({m - 1 + m % 2 for m in counts(1, max(10 * members, 101)) if m <= MOST_MEMBERS})
    lines = {"independent": [wrong_and_tied(m, error)[0] for m in x]}
    if correlation:
        lines["correlated"] = [wrong_and_tied(m, error, correlation)[0] for m in x]
    return TheoryResult(
        calculator="majority_error",
        values=[
            value("error", wrong, "Probability that more than half of the members are wrong."),
            value("tie", tied, "Probability that exactly half of the members are wrong; 0 for an odd number."),
            value("independent_error", wrong_and_tied(members, error)[0], "The same error without correlation."),
            value("limit", limit(error, correlation), "Error of ever more members."),
        ],
        formula="P(wrong) = sum over k > M/2 of C(M, k) e^k (1 - e)^(M - k); correlated: k is beta-binomial with mean "
        "M e and a + b = 1/correlation - 1",
        source="Battiti and Brunato, The LION Way, section 11.1; Skellam (1948), J. R. Stat. Soc. B 10:257.",
        assumptions=[
            "There are two classes, and every member is wrong with the same probability.",
            "Errors of members are independent."
            if correlation == 0
            else "Errors are exchangeable: each row has its own probability of an error, of a beta distribution.",
        ],
        notes=["Members of real ensembles learn from the same rows: their errors correlate, and the gain is smaller."],
        curves=[curve("Error by number of members (odd)", ("members", "probability of an error"), x, lines)],
    )


QUERY = Query(
    operation="calculate_majority_error",
    request=MajorityErrorRequest,
    response=TheoryResult,
    run=calculate,
    path="/v1/theory/majority_error",
    tag="theory",
)
