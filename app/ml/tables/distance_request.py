"""A dissimilarity between rows, as a request states it, and the matrix that it gives."""

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field

from app.base.errors import BodyTooLarge, InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body, Wire
from app.ml.contract.algorithm import Matrix
from app.ml.numerics.neighbours.dissimilarity_matrix import (
    Dissimilarity,
    Measured,
    by_metric,
    by_quadratic_form,
    definite_factor,
    inverse_cosine,
    learned_metric,
)

MOST_DISTANCES = 1_000_000
"""Distances of one response."""
MOST_WORK = 200_000_000
"""Distances times columns."""
NAMED = 10
"""Cells or pairs that a refusal names."""
SYMMETRIC = 1e-9
"""Difference of two cells of a symmetric matrix, relative to the larger, that counts as rounding."""


Cell: TypeAlias = Annotated[float, Field(ge=-1e150, le=1e150)]


class DistanceOptions(Body):
    """A dissimilarity between rows, and its options."""

    metric: Dissimilarity = Field(
        "euclidean",
        description="Measure of the distance of rows. `euclidean`, `manhattan`, `chebyshev` and `minkowski`: by the "
        "differences of the columns; `range_euclidean` and `range_manhattan`: with each divided by the range of its "
        "column in the reference rows; `seuclidean`: by its standard deviation; `mahalanobis`: by their covariance, "
        "by its pseudo-inverse if it is singular; `quadratic`: the root of the quadratic form of `matrix`; `cosine`: "
        "1 - cos of the angle at the origin; `inverse_cosine`: |x||y| / (eps + x·y).",
    )
    p: float = Field(3.0, ge=1, le=100, description="Power of the differences, for the metric minkowski only.")
    matrix: list[list[Cell]] | None = Field(
        None,
        max_length=1000,
        description="Symmetric positive definite matrix, a row for each column of the rows, for the metric quadratic; "
        "null: not given.",
    )
    eps: float = Field(
        1e-9, ge=0, le=1, description="Number added to the product x·y, for the metric inverse_cosine only."
    )
    obtuse: Literal["refuse", "null"] = Field(
        "refuse",
        description="Treatment of pairs with x·y of 0 or less, which have no inverse_cosine: `refuse` refuses the "
        "request and names them, `null` makes their distance null.",
    )
    ddof: int = Field(
        0,
        ge=0,
        le=1,
        description="Divisor of variances and covariances: n - ddof for n reference rows. With 0 the mean squared "
        "Mahalanobis distance of the reference rows from their mean is the number of columns.",
    )
    to_mean: bool = Field(
        False, description="True: the distance of each row to the mean of the reference rows, in place of other rows."
    )


class DistanceMatrix(Wire):
    """Distances between rows."""

    metric: str = Field(description="Metric of the distances.")
    distances: list[list[float | None]] = Field(
        description="Distances of each row, in the order of the request, to each of the others; null where a pair has "
        "none."
    )
    rank: int | None = Field(
        None, description="Rank of the covariance, for the metric mahalanobis; null: another metric."
    )
    singular: bool | None = Field(
        None,
        description="True: the covariance is singular, and its pseudo-inverse was taken: directions in which the "
        "reference rows do not vary play no part. Null: another metric.",
    )
    constant_columns: list[int] = Field(
        [], description="Columns, from 0, that play no part, as the reference rows do not vary in them."
    )


def distance_faults(options: DistanceOptions, columns: int, reference: int) -> Iterator[Fault]:
    """columns: of the rows. reference: number of reference rows."""
    if options.metric != "quadratic":
        if options.matrix is not None:
            yield Fault("/matrix", f"The metric {options.metric} takes no matrix: send quadratic, or leave it out.")
    elif options.matrix is None:
        yield Fault("/matrix", "The metric quadratic needs a matrix.", "missing")
    else:
        yield from _matrix_faults(options.matrix, columns)
    if options.metric in {"mahalanobis", "seuclidean"} and reference <= options.ddof:
        yield Fault("/ddof", f"A divisor n - {options.ddof} needs more than {options.ddof} reference rows.")


def _matrix_faults(matrix: list[list[float]], columns: int) -> Iterator[Fault]:
    wrong = [place for place, row in enumerate(matrix) if len(row) != columns]
    if len(matrix) != columns:
        yield Fault("/matrix", f"It has {len(matrix)} rows; the rows have {columns} columns.", "wrong_length")
    for place in wrong[:NAMED]:
        yield Fault(f"/matrix/{place}", f"The rows have {columns} columns.", "wrong_length")
    if wrong or len(matrix) != columns:
        return
    cells = np.array(matrix)
    size = np.maximum(np.abs(cells), np.abs(cells.T))
    odd = np.argwhere(np.abs(cells / 2 - cells.T / 2) > SYMMETRIC * size)
    for i, j in odd[:NAMED].tolist():
        yield Fault(f"/matrix/{i}/{j}", "The matrix is not symmetric here.")
    if not len(odd) and definite_factor(cells) is None:
        yield Fault("/matrix", "The matrix is not positive definite.")


def check_size(rows: int, others: int, columns: int) -> None:
    """Raises BodyTooLarge for more distances than one response holds, or more work than one request may cause."""
    if rows * others > MOST_DISTANCES:
        raise BodyTooLarge(f"These are {rows * others} distances; one response holds {MOST_DISTANCES}.")
    if rows * others * columns > MOST_WORK:
        raise BodyTooLarge(f"Distances times columns are at most {MOST_WORK} in one request: send fewer rows.")


def distance_matrix(options: DistanceOptions, rows: Matrix, others: Matrix | None, reference: Matrix) -> Measured:
    """Distances of rows (n, d) to others (m, d), None for the rows themselves, or to the mean of the reference.

    Raises InvalidRequest for pairs without a distance, unless they may be null.
    """
    beside = _mean(reference)[None] if options.to_mean else rows if others is None else others
    match options.metric:
        case "quadratic":
            factor = definite_factor(np.array(options.matrix))
            assert factor is not None  # noqa: S101 - the request was checked
            return Measured(by_quadratic_form(factor, rows, beside))
        case "inverse_cosine":
            cosines = inverse_cosine(rows, beside, options.eps)
            if options.obtuse == "refuse" and (faults := [*_obtuse(cosines)]):
                raise InvalidRequest(faults=faults)
            return Measured(cosines)
        case named:
            metric, relative = learned_metric(named, options.p, reference, options.ddof)
            return by_metric(metric, rows, beside, relative)


def _mean(reference: Matrix) -> Matrix:
    return np.asarray((reference / len(reference)).sum(axis=0))


def _obtuse(distances: Matrix) -> Iterator[Fault]:
    pairs = np.argwhere(np.isnan(distances))
    for i, j in pairs[:NAMED].tolist():
        detail = (
            f"The product with the other row {j} is 0 or less: such a pair has no inverse_cosine. Set obtuse to null."
        )
        yield Fault(f"/rows/{i}", detail)
    if len(pairs) > NAMED:
        yield Fault("/rows", f"And {len(pairs) - NAMED} more pairs like these.")


def fields_of(options: DistanceOptions, measured: Measured, columns: int) -> dict[str, object]:
    """Fields of a `DistanceMatrix`. columns: of the rows."""
    shown = measured.distances.tolist()
    if not np.isfinite(measured.distances).all():
        shown = [[value if np.isfinite(value) else None for value in row] for row in shown]
    singular = None if measured.rank is None else measured.rank < columns
    more = {"rank": measured.rank, "singular": singular, "constant_columns": list(measured.constant)}
    return {"metric": options.metric, "distances": shown} | more
