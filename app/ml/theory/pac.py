"""Sample size of PAC learning: how many rows make the training error of a whole class of functions trustworthy.

Leave out one of `rows`, `epsilon` and `delta`: it is calculated from the two others and the capacity of the class,
which is a number of functions, its logarithm or a VC dimension. `realisable`: some function of the class makes no
error, and the learner finds one without training errors. `agnostic`: neither is assumed.
"""

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body
from app.ml.contract.calculator import (
    DELTA,
    INDEPENDENT,
    MOST_ROWS,
    WORST_CASE,
    Delta,
    Rows,
    TheoryResult,
    TheoryValue,
    around,
    curve,
    notes,
    value,
)
from app.ml.kinds.query import Query
from app.ml.numerics.learning_theory.pac_bounds import Capacity, accuracy, failure, log_size_allowed, rows_needed

FORMULAS = {
    (False, False): "epsilon = (ln |H| + ln(1/delta)) / rows",
    (False, True): "epsilon = sqrt((ln |H| + ln(2/delta)) / (2 rows))",
    (True, False): "epsilon = (2 / rows) (log2 growth(2 rows) + log2(2/delta)), where growth(m) is at most (e m/d)^d",
    (True, True): "epsilon = sqrt((ln growth(2 rows) + ln(4/delta)) / rows), where growth(m) is at most (e m/d)^d",
}
"""By (VC dimension given, agnostic)."""
SOLVED = ("rows", "epsilon", "delta")
"""Quantities of which two determine the third."""


class PacRequest(Body):
    """Capacity of a class of functions, and two of rows, epsilon and delta."""

    setting: Literal["realisable", "agnostic"] = Field(
        "realisable", description="`realisable`: no training error; `agnostic`: any training error."
    )
    class_size: float | None = Field(
        None, ge=1, le=1e300, description="Number of functions of a finite class; null: another capacity is given."
    )
    log_class_size: float | None = Field(
        None, ge=0, le=1e9, description="Natural logarithm of that number; null: another capacity is given."
    )
    vc_dimension: int | None = Field(
        None, ge=0, le=10**9, description="VC dimension of the class; null: another capacity is given."
    )
    rows: Rows | None = Field(None, description="Number of training rows; null: calculated.")
    epsilon: float | None = Field(
        None, ge=1e-6, lt=1, description="Accuracy: the largest error, or distance of errors; null: calculated."
    )
    delta: Delta | None = Field(None, description=f"{DELTA} Null: calculated.")


def calculate(request: PacRequest) -> TheoryResult:
    """Raises InvalidRequest unless one capacity and two of the others are given."""
    if faults := list(_faults(request)):
        raise InvalidRequest(faults=faults)
    capacity, agnostic = _capacity(request), request.setting == "agnostic"
    rows, epsilon, delta = _solved(request, capacity, agnostic=agnostic)
    missing = next(name for name in SOLVED if getattr(request, name) is None)
    values = {
        "rows": value("rows", rows, "Number of training rows that are enough."),
        "epsilon": value("epsilon", epsilon, _meaning(agnostic)),
        "delta": value("delta", delta, DELTA),
    }
    ordered = [values.pop(missing), *values.values()]
    x = around(min(rows, MOST_ROWS))
    bounds = [accuracy(capacity, m, max(delta, 1e-300), agnostic=agnostic) for m in x]
    best = "With epsilon for all functions, the one of least training error is within 2 epsilon of the best one."
    return TheoryResult(
        calculator="pac",
        values=[*ordered, *_sizes(request, rows, epsilon, delta)],
        formula=FORMULAS[request.vc_dimension is not None, agnostic],
        source="Valiant (1984), Commun. ACM 27:1134; Blumer, Ehrenfeucht, Haussler and Warmuth (1989), J. ACM 36:929; "
        "Vapnik (1998), Statistical Learning Theory, chapter 4.",
        assumptions=[
            INDEPENDENT,
            "The class of functions is fixed before the rows are seen.",
            *([] if agnostic else ["Some function of the class makes no error, and the learner has none in training."]),
        ],
        notes=notes(max(epsilon, delta), WORST_CASE, *([best] if agnostic else [])),
        curves=[curve("Accuracy by number of rows", ("training rows", "epsilon"), x, {"epsilon": bounds})],
    )


def _capacity(request: PacRequest) -> Capacity:
    if request.vc_dimension is not None:
        return Capacity(dimension=request.vc_dimension)
    size = request.log_class_size
    return Capacity(log_size=math.log(request.class_size or 1.0) if size is None else size)


def _solved(request: PacRequest, capacity: Capacity, *, agnostic: bool) -> tuple[int, float, float]:
    """Rows, epsilon and delta, one of which is calculated."""
    match request.rows, request.epsilon, request.delta:
        case None, float(epsilon), float(delta):
            return rows_needed(capacity, epsilon, delta, agnostic=agnostic), epsilon, delta
        case int(rows), None, float(delta):
            return rows, accuracy(capacity, rows, delta, agnostic=agnostic), delta
        case int(rows), float(epsilon), None:
            return rows, epsilon, failure(capacity, rows, epsilon, agnostic=agnostic)
    raise InvalidRequest(faults=list(_faults(request)))


def _meaning(agnostic: bool) -> str:
    if agnostic:
        return "Largest distance between risk and training error, for all functions of the class at once."
    return "Largest risk of a function of the class without training errors."


def _sizes(request: PacRequest, rows: int, epsilon: float, delta: float) -> Iterator[TheoryValue]:
    if request.vc_dimension is None:
        most = log_size_allowed(rows, min(epsilon, 1.0), max(delta, 1e-300), agnostic=request.setting == "agnostic")
        yield value("log_class_size", most, "Natural logarithm of the largest class for which these rows are enough.")


def _faults(request: PacRequest) -> Iterator[Fault]:
    capacities = [
        name for name in ("class_size", "log_class_size", "vc_dimension") if getattr(request, name) is not None
    ]
    if not capacities:
        yield Fault("/class_size", "Give one of class_size, log_class_size and vc_dimension.", "missing")
    for name in capacities[1:]:
        yield Fault(f"/{name}", f"Give one capacity; {capacities[0]} is given already.")
    chosen = _given(request, *SOLVED)
    if len(chosen) < len(SOLVED) - 1:
        missing = next(name for name in ("epsilon", "delta", "rows") if name not in chosen)
        yield Fault(f"/{missing}", "Give two of rows, epsilon and delta; the third is calculated.", "missing")
    if len(chosen) == len(SOLVED):
        yield Fault("/rows", "Leave out one of rows, epsilon and delta: it is calculated.")


def _given(request: PacRequest, *names: str) -> list[str]:
    return [name for name in names if getattr(request, name) is not None]


QUERY = Query(
    operation="calculate_sample_size",
    request=PacRequest,
    response=TheoryResult,
    run=calculate,
    path="/v1/theory/pac",
    tag="theory",
)
