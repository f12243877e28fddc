"""VC dimension of hyperplanes with a margin, and the bound of the risk that follows from it.

For rows in a ball, planes that keep a distance from all of them have a capacity that does not depend on the number of
columns: the reason why support vector machines may work in spaces of many dimensions.
"""

import math

from pydantic import Field

from app.base.wire import Body
from app.ml.contract.calculator import (
    DELTA,
    INDEPENDENT,
    POINTS,
    RISK,
    Delta,
    Risk,
    Rows,
    TheoryResult,
    curve,
    notes,
    value,
)
from app.ml.kinds.query import Query
from app.ml.numerics.support_vectors.vc_bounds import confidence_term, margin_dimension


class MarginBoundRequest(Body):
    """A ball of rows, a bound of the weights and a number of columns."""

    radius: float = Field(
        gt=0, le=1e150, description="Radius R of a ball that holds all rows, in the unit of the rows."
    )
    norm: float = Field(
        gt=0,
        le=1e150,
        description="Bound A of the length of the weights: the nearest row is at least 1/A away from the plane, so "
        "that A is 2 over the width of the margin.",
    )
    columns: int | None = Field(
        None, ge=1, le=10**12, description="Dimension of the space; null: infinite, as of an RBF kernel."
    )
    rows: Rows = Field(description="Number of training rows.")
    empirical_risk: Risk = Field(0.0, description=RISK)
    delta: Delta = Field(0.05, description=DELTA)


def calculate(request: MarginBoundRequest) -> TheoryResult:
    columns = math.inf if request.columns is None else request.columns
    dimension = margin_dimension(request.radius, request.norm, columns)
    bound = request.empirical_risk + confidence_term(request.rows, dimension, request.delta)
    norms = [request.norm * 10 ** (2 * place / (POINTS - 1) - 1) for place in range(POINTS)]
    dimensions = [margin_dimension(request.radius, norm, columns) for norm in norms]
    return TheoryResult(
        calculator="margin_bound",
        values=[
            value(
                "vc_dimension", dimension, "Bound of the VC dimension of the planes with this margin; null: infinite."
            ),
            value("risk_bound", bound, "Training error plus the confidence term of that dimension."),
            value("margin", 1 / request.norm, "Distance of the nearest row from the plane, in the unit of the rows."),
        ],
        formula="h <= min(ceil(R^2 A^2), columns) + 1; risk <= training error + VC confidence term of h",
        source="Vapnik (1998), Statistical Learning Theory, section 10.3; Battiti and Brunato, The LION Way, section "
        "10.1.",
        assumptions=[
            INDEPENDENT,
            "Radius and bound of the weights are fixed before the rows are seen: those that a fit has found are not.",
        ],
        notes=notes(bound),
        curves=[
            curve(
                "Capacity by length of the weights",
                ("bound of the length of the weights", "VC dimension"),
                norms,
                {"bound of the VC dimension": dimensions},
            )
        ],
    )


QUERY = Query(
    operation="calculate_margin_bound",
    request=MarginBoundRequest,
    response=TheoryResult,
    run=calculate,
    path="/v1/theory/margin_bound",
    tag="theory",
)
