"""No free lunch: without assumptions on the target, no learner is better than another, shown by exhaustion.

All labellings of a small domain, and all samples of rows, are run through three learners that remember what they have
seen and differ in their guess of the rest. Their errors averaged over labellings are equal; for each there is a
labelling on which it fails.
"""

import math
from collections.abc import Iterator

from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.calculator import TheoryResult, TheoryValue, curve, value
from app.ml.kinds.query import Query
from app.ml.numerics.learning_theory.free_lunch import LEARNERS, average_error, errors_by_labelling

MOST_SAMPLES = 4096
MOST_CASES = 2**20
"""Labelings times samples that one request may run through."""
GUESSES = {
    "zero": "guesses 0 on points it has not seen",
    "majority": "guesses the most frequent label it has seen",
    "nearest": "guesses the label of the nearest point it has seen",
}


class NoFreeLunchRequest(Body):
    """Size of a domain and of a sample."""

    points: int = Field(ge=2, le=10**9, description="Number of points of the domain, all equally probable.")
    rows: int = Field(ge=0, le=10**9, description="Number of training rows, drawn with replacement.")
    demonstrate: bool = Field(
        True,
        description=f"True runs through points^rows samples, at most {MOST_SAMPLES:,}, and 2^points labellings, at "
        f"most {MOST_CASES:,} of both; false only calculates the average.",
    )


def calculate(request: NoFreeLunchRequest) -> TheoryResult:
    """Raises InvalidRequest for more cases than a request may run through."""
    points, rows = request.points, request.rows
    if request.demonstrate and (faults := list(_limits(points, rows))):
        raise InvalidRequest(faults=faults)
    x = sorted({round(place * max(3 * points, 1) / 60) for place in range(61)})
    assumptions = ["The points are equally probable, and rows are drawn independently.", "There is no noise."]
    return TheoryResult(
        calculator="no_free_lunch",
        values=[
            value(
                "average_error",
                average_error(points, rows),
                "Expected share of errors, averaged over all labellings, of every learner that keeps what it has seen.",
            ),
            *(_demonstration(points, rows) if request.demonstrate else ()),
        ],
        formula="average error = (1/2) (1 - 1/points)^rows; if rows <= points/2, some labelling has an error of at "
        "least 1/8 with probability at least 1/7",
        source="Wolpert (1996), Neural Comput. 8:1341; Shalev-Shwartz and Ben-David (2014), Understanding Machine "
        "Learning, Theorem 5.1.",
        assumptions=assumptions,
        notes=["No learner is best for every target: compare several on your own rows."],
        curves=[
            curve(
                "Average error of every learner by number of rows",
                ("training rows", "share of errors"),
                x,
                {"average over all labellings": [average_error(points, m) for m in x]},
            )
        ],
    )


def _limits(points: int, rows: int) -> Iterator[Fault]:
    samples = rows * math.log2(points)
    for name, size, most in (("rows", samples, MOST_SAMPLES), ("points", samples + points, MOST_CASES)):
        if size > math.log2(most):
            what = "points^rows samples" if name == "rows" else "2^points times points^rows cases"
            yield Fault(f"/{name}", f"At most {most:,} {what}: send fewer, or `demonstrate` false.", "limit")


def _demonstration(points: int, rows: int) -> Iterator[TheoryValue]:
    for learner in LEARNERS:
        expected, large = errors_by_labelling(points, rows, learner)
        what = f"of the learner that {GUESSES[learner]}"
        yield value(f"{learner}_average", float(expected.mean()), f"Error averaged over all labellings, {what}.")
        yield value(f"{learner}_best", float(expected.min()), f"Error on the labelling that suits it best, {what}.")
        yield value(f"{learner}_worst", float(expected.max()), f"Error on the labelling that suits it worst, {what}.")
        yield value(
            f"{learner}_failure",
            float(large.max()),
            f"Largest probability, over labellings, of an error of at least 1/8, {what}.",
        )


QUERY = Query(
    operation="demonstrate_no_free_lunch",
    request=NoFreeLunchRequest,
    response=TheoryResult,
    run=calculate,
    path="/v1/theory/no_free_lunch",
    tag="theory",
)
