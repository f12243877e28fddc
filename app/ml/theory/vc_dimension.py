"""VC dimension of a class of functions, with points that it shatters and a labelling of one point more that it lacks.

The class has a name, or is a table of the labels that its hypotheses give to some instances. `points` of your own are
labelled in every way that the class allows, and counted.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body, Wire
from app.ml.contract.calculator import DELTA, Delta, TheoryResult, counts, curve, value
from app.ml.kinds.query import Query
from app.ml.numerics.learning_theory.shattering import (
    CLASSES,
    MOST_IN_THE_PLANE,
    FunctionClass,
    labellings,
    refused,
    shattered_instances,
)
from app.ml.numerics.support_vectors.vc_bounds import growth_term, log_growth, sauer

MOST_POINTS = 8
"""Points of which every labelling is tried."""
SIZE = "A sample size needs many more rows than the dimension: see the calculator `pac`."
NOTES = {
    "rectangles": "In two columns the labellings were counted for every order of up to "
    f"{MOST_IN_THE_PLANE} rows: they are those of two chains of rows, each of them cut by an interval. More rows and "
    "columns have the bound alone.",
    "sines": "A single parameter and no limit: the i-th point is 1/2^i, and pi (1 + the sum of 2^i over the points "
    "that are to be negative) is the factor whose sines have these signs.",
}
MOST_SETS = 50_000
"""Sets of instances that a search may look at."""
Number = Annotated[float, Field(ge=-1e150, le=1e150)]


class VcDimensionRequest(Body):
    """A class of functions by its name, or a finite one as a table."""

    function_class: Literal[
        "thresholds", "intervals", "rectangles", "halfspaces", "convex_polygons", "sines", "table"
    ] = Field(
        "halfspaces",
        description="Class of functions, positive from a number on, in unions of intervals, in rectangles parallel to "
        "the axes, on one side of a hyperplane, in convex polygons of the plane, where the sine of a multiple of a "
        "number is positive; or the `table`.",
    )
    dimensions: int = Field(2, ge=1, le=10**6, description="Number of columns, of rectangles and halfspaces.")
    intervals: int = Field(1, ge=1, le=1000, description="Largest number of intervals of a union.")
    rows: int = Field(100, ge=1, le=1000, description="Number of rows whose labellings are counted.")
    delta: Delta = Field(0.05, description=DELTA)
    points: list[list[Number]] = Field(
        [], max_length=MOST_POINTS, description="Points whose labellings are tried one by one; empty: none."
    )
    table: list[list[bool]] = Field(
        [],
        max_length=1000,
        description="Labels of a finite class: one list for each hypothesis, with a label for each instance.",
    )


class Refusal(Wire):
    """Points, and labels that no function of the class gives them."""

    points: list[list[float]] = Field(description="Points, one more than the VC dimension.")
    labels: list[bool] = Field(description="Label of each point.")


class VcDimensionResult(TheoryResult):
    """VC dimension, and what proves it."""

    shattered: list[list[float]] = Field(
        description="Points that the class labels in every way, at most 8 of them and of their columns, all others 0; "
        "of a table the numbers of its instances, from 0."
    )
    refusal: Refusal | None = Field(
        None, description="Labels that the class lacks; null: the dimension is infinite, above 7, or that of a table."
    )


def calculate(request: VcDimensionRequest) -> VcDimensionResult:
    """Raises InvalidRequest for points or a table of another shape, and for a table that takes too long."""
    if faults := list(_faults(request)):
        raise InvalidRequest(faults=faults)
    return _of_table(request) if request.function_class == "table" else _of_class(request)


def _of_class(request: VcDimensionRequest) -> VcDimensionResult:
    function_class, d, k = CLASSES[request.function_class], request.dimensions, request.intervals
    dimension, n = function_class.dimension(d, k), request.rows
    shown = int(min(dimension, MOST_POINTS))
    example = function_class.shattered(
        shown, min(d, MOST_POINTS) if function_class.columns is None else function_class.columns, k
    )
    lacking = None
    if dimension < MOST_POINTS:
        more = function_class.one_more(example)
        labels = refused(function_class, more, k)
        lacking = None if labels is None else Refusal(points=more.tolist(), labels=labels.tolist())
    values = [
        value(
            "vc_dimension", dimension, "Largest number of points that the class labels in every way; null: no limit."
        ),
        value(
            "labellings", function_class.growth(n, d, k), f"Largest number of labellings of {n} rows; null: no formula."
        ),
        value("labellings_bound", _sauer(dimension, n), "Sum of C(n, i) for i from 0 to h, which bounds them."),
        value("log_labellings_bound", log_growth(dimension, n), f"Natural logarithm of its bound (e {n} / h)^h."),
        value(
            "growth_bound",
            growth_term(_log_labellings(function_class, 2 * n, d, k), n, request.delta),
            f"Term that bounds the risk above the training error on {n} rows, sqrt((ln labellings of {2 * n} rows + "
            "ln(4/delta)) / rows); null: no formula.",
        ),
    ]
    if request.points:
        number = sum(1 for _ in labellings(function_class, np.array(request.points), k))
        values.append(
            value("labellings_of_points", number, f"Labellings of the points, of {2 ** len(request.points)}.")
        )
    x = counts(1, n)
    return VcDimensionResult(
        calculator="vc_dimension",
        values=values,
        formula="VC dimension: thresholds 1; k intervals 2k; rectangles in d columns 2d; halfspaces d + 1; convex "
        "polygons and sines without limit. Labellings of n rows: at most the sum of C(n, i) for i from 0 to the "
        "dimension h",
        source="Vapnik and Chervonenkis (1971), Theory Probab. Appl. 16:264; Sauer (1972), J. Comb. Theory A 13:145; "
        "Cover (1965), IEEE Trans. Electron. Comput. 14:326 (halfspaces); MIT 6.036, recitation of 6 April 2017 (bound "
        "by the growth function); Shalev-Shwartz and Ben-David (2014), Understanding Machine "
        "Learning, section 6.3.5 (sines).",
        assumptions=["Points are real numbers without error; a halfspace separates them strictly."],
        notes=[note for note in (SIZE, NOTES.get(request.function_class)) if note],
        curves=[
            curve(
                "Labellings by number of rows",
                ("rows", "natural logarithm of the number of labellings"),
                x,
                {
                    "all": [m * math.log(2) for m in x],
                    "of the class": [_log(function_class.growth(m, d, k)) for m in x],
                },
            )
        ],
        shattered=example.tolist(),
        refusal=lacking,
    )


def _of_table(request: VcDimensionRequest) -> VcDimensionResult:
    table = np.array(request.table, bool)
    instances = shattered_instances(table, MOST_SETS)
    if instances is None:
        detail = f"The dimension was not found within {MOST_SETS:,} sets of instances: send fewer instances."
        raise InvalidRequest(faults=[Fault("/table", detail, "limit")])
    size = len(np.unique(table, axis=0))
    return VcDimensionResult(
        calculator="vc_dimension",
        values=[
            value(
                "vc_dimension", len(instances), "Largest number of instances that the hypotheses label in every way."
            ),
            value("labellings", size, "Number of different labellings of all instances."),
            value("log2_size", math.log2(size), "Binary logarithm of that number, which bounds the dimension."),
        ],
        formula="largest d such that d instances have 2^d labellings, found by trying every set",
        source="Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, definition 6.5.",
        assumptions=["The table holds every hypothesis of the class and every instance."],
        notes=[],
        curves=[],
        shattered=[[float(place)] for place in instances],
    )


def _sauer(dimension: float, n: int) -> float:
    return float(sauer(int(min(dimension, n)), n))


def _log_labellings(function_class: FunctionClass, n: int, d: int, k: int) -> float:
    """Ln of the labellings of n rows; of more than a number can be, its bound."""
    try:
        return _log(function_class.growth(n, d, k))
    except OverflowError:
        return log_growth(function_class.dimension(d, k), n)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else math.nan


def _faults(request: VcDimensionRequest) -> Iterator[Fault]:
    if request.function_class == "table":
        widths = {len(row) for row in request.table}
        if not request.table or widths == {0}:
            yield Fault("/table", "A table needs at least one hypothesis and one instance.")
        elif len(widths) > 1:
            yield Fault("/table", "Every hypothesis needs a label for each instance: rows differ in length.")
        if request.points:
            yield Fault("/points", "A table has instances instead of points: leave this out.")
        return
    if request.table:
        yield Fault("/table", "This class has a formula: leave this out, or take the function_class table.")
    if request.points and CLASSES[request.function_class].labels is None:
        yield Fault("/points", "Labellings of points by this class are not counted: leave this out.")
    columns = CLASSES[request.function_class].columns or request.dimensions
    for place, point in enumerate(request.points):
        if len(point) != columns:
            yield Fault(f"/points/{place}", f"A point of this class has {columns} numbers; this one has {len(point)}.")


QUERY = Query(
    operation="calculate_vc_dimension",
    request=VcDimensionRequest,
    response=VcDimensionResult,
    run=calculate,
    path="/v1/theory/vc_dimension",
    tag="theory",
)
