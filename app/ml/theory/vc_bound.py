"""VC bound: the largest risk that a training error still allows, for a class of a known VC dimension.

The confidence term is added to the training error. It grows with the dimension and falls with the rows; structural risk
minimisation chooses the class with the least sum. With `dimensions` and `empirical_risks` of nested classes, the sum of
each is compared.
"""

from collections.abc import Iterator
from itertools import pairwise

from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.calculator import (
    DELTA,
    INDEPENDENT,
    RISK,
    WORST_CASE,
    Delta,
    Risk,
    Rows,
    TheoryCurve,
    TheoryResult,
    TheoryValue,
    around,
    curve,
    notes,
    value,
)
from app.ml.kinds.query import Query
from app.ml.numerics.learning_theory.pac_bounds import least
from app.ml.numerics.support_vectors.vc_bounds import confidence_term, simple_term, structural_minimum

MOST_CLASSES = 200


class NestedClass(Body):
    """One of several classes of functions, each of which holds the one before."""

    vc_dimension: int = Field(ge=0, le=10**12, description="VC dimension of the class.")
    empirical_risk: Risk = Field(description=RISK)


class VcBoundRequest(Body):
    """Rows, VC dimension and training error; or those of nested classes."""

    rows: Rows = Field(description="Number of training rows.")
    vc_dimension: int = Field(ge=0, le=10**12, description="VC dimension of the class of functions.")
    empirical_risk: Risk = Field(0.0, description=RISK)
    delta: Delta = Field(0.05, description=DELTA)
    nested: list[NestedClass] = Field(
        [], max_length=MOST_CLASSES, description="Nested classes to choose from, in ascending order; empty: none."
    )


def calculate(request: VcBoundRequest) -> TheoryResult:
    """Raises InvalidRequest for nested classes out of order."""
    if faults := list(_faults(request)):
        raise InvalidRequest(faults=faults)
    rows, dimension, delta, risk = request.rows, request.vc_dimension, request.delta, request.empirical_risk
    term = confidence_term(rows, dimension, delta)
    needed = least(lambda m: confidence_term(m, dimension, delta) <= 0.1)
    x = around(rows)
    terms = [confidence_term(m, dimension, delta) for m in x]
    return TheoryResult(
        calculator="vc_bound",
        values=[
            value("risk_bound", risk + term, "Training error plus confidence term: the risk is at most this."),
            value("confidence_term", term, "Term that is added to the training error."),
            value("simple_term", simple_term(rows, dimension), "Term without logarithms, sqrt(dimension / rows)."),
            value("rows_for_a_tenth", needed, "Number of rows with which the confidence term is at most 0.1."),
            *_choice(request),
        ],
        formula="risk <= training error + sqrt((h (ln(2 rows / h) + 1) - ln(delta / 4)) / rows), h the VC dimension",
        source="Vapnik (1998), Statistical Learning Theory, Theorem 4.1; Battiti and Brunato, The LION Way, sections "
        "10.1 and 10.3 (structural risk minimisation).",
        assumptions=[INDEPENDENT, "The class is fixed before the rows are seen; any of its functions may be chosen."],
        notes=notes(risk + term, WORST_CASE),
        curves=[
            curve(
                "Bound by number of rows",
                ("training rows", "share of errors"),
                x,
                {"confidence term": terms, "risk bound": [risk + term for term in terms]},
            ),
            *_nested_curve(request),
        ],
    )


def _choice(request: VcBoundRequest) -> Iterator[TheoryValue]:
    if not request.nested:
        return
    risks, full, simple = _sums(request)
    for name, terms in (("structural_minimum", full), ("structural_minimum_simple", simple)):
        place = structural_minimum(risks, terms)
        how = "confidence term" if terms is full else "simple term"
        yield value(name, place, f"Place in `nested`, from 0, of the class with the least training error plus {how}.")


def _nested_curve(request: VcBoundRequest) -> Iterator[TheoryCurve]:
    if request.nested:
        risks, full, simple = _sums(request)
        yield curve(
            "Structural risk by class",
            ("VC dimension", "share of errors"),
            [nested_class.vc_dimension for nested_class in request.nested],
            {
                "training error": risks,
                "risk bound": [risk + term for risk, term in zip(risks, full, strict=True)],
                "with the simple term": [risk + term for risk, term in zip(risks, simple, strict=True)],
            },
        )


def _sums(request: VcBoundRequest) -> tuple[list[float], list[float], list[float]]:
    dimensions = [nested_class.vc_dimension for nested_class in request.nested]
    return (
        [nested_class.empirical_risk for nested_class in request.nested],
        [confidence_term(request.rows, h, request.delta) for h in dimensions],
        [simple_term(request.rows, h) for h in dimensions],
    )


def _faults(request: VcBoundRequest) -> Iterator[Fault]:
    dimensions = [nested_class.vc_dimension for nested_class in request.nested]
    for place, (before, after) in enumerate(pairwise(dimensions), 1):
        if after < before:
            yield Fault(f"/nested/{place}/vc_dimension", "Nested classes have ascending dimensions.")


QUERY = Query(
    operation="calculate_vc_bound",
    request=VcBoundRequest,
    response=TheoryResult,
    run=calculate,
    path="/v1/theory/vc_bound",
    tag="theory",
)
