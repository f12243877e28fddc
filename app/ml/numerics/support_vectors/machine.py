"""A fitted support vector machine: its vectors, their coefficients, and the decision values of rows."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from app.base.errors import InvalidData
from app.ml.contract.algorithm import JSON, Affine, Data, Labels, LinearForm, Matrix, Size, Vector
from app.ml.contract.explanations import column_sums
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.kernel_functions.kernel_params import gamma_of
from app.ml.numerics.linear_algebra.definiteness import negative_spectrum
from app.ml.numerics.linear_algebra.solve import each_row
from app.ml.numerics.linear_models.coefficient_errors import forms
from app.ml.numerics.sampling.content_order import content_order
from app.ml.numerics.support_vectors.kernel_rows import (
    KernelRows,
    kernel_matrix,
    weighted_sums,
)
from app.ml.numerics.support_vectors.linear_machine import in_weights, weights_seconds
from app.ml.numerics.support_vectors.machine_params import MachineParams

CENTRED = 1e-12
"""Means of columns up to this share of the size of all numbers are rounding."""
PROJECTED = 4000
"""Rows of a kernel that is projected at most."""
SAMPLE = 1000
"""Rows whose kernel is looked at for negative eigenvalues."""
VECTORS = 30
"""Numbers for each row that the method in the weights holds at once, beside the rows."""
EXPLAINING = 10
"""Support vectors that an explanation lists."""
LISTED = 1000
"""Support vectors in a report."""


P = TypeVar("P", bound=MachineParams)


class HasMachine(Protocol):
    @property
    def machine(self) -> "Machine": ...


S = TypeVar("S", bound=HasMachine)


class Kept(NamedTuple):
    """The kernel of the training rows, ready for an optimisation."""

    rows: KernelRows
    gamma: float
    mean: Vector
    """(d,) subtracted from the rows of a linear kernel, if the machine is movable and they are dense; else zero."""
    least: float
    """Smallest eigenvalue of the kernel, of some rows, over the largest; 0 where none is negative."""
    projector: Matrix | None = None
    """(n, n) VVᵀ with the eigenvectors of positive eigenvalues; None: the kernel is used as it is."""

    @classmethod
    def of(cls, params: MachineParams, data: Data, *, movable: bool = True) -> Self:
        """Raises InvalidData for a kernel that is not positive semidefinite, or has infinite values.

        movable: the machine stays when all rows move together, as with a free intercept.
        """
        gamma, mean = gamma_of(params, data), np.zeros(data.x.shape[1])
        if data.square is not None:
            square = np.ascontiguousarray(data.square)
            return cls._definite(params, square, KernelRows.given(square), gamma, mean)
        if params.kernel == "linear" and movable and sparse(data.x) is None:
            mean = _mean(data.x)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = KernelRows(params.function(gamma), data.x - mean if mean.any() else data.x)
            finite = np.isfinite(rows.diagonal).all()
        if not finite:
            raise InvalidData("Values of the kernel are too large for numbers: scale the columns.")
        if params.definite:
            return cls(rows, gamma, mean, 0.0)
        places = np.unique(np.linspace(0, len(data.x) - 1, min(SAMPLE, len(data.x))).astype(np.intp))
        if params.indefinite == "project" and len(data.x) <= PROJECTED:
            places = np.arange(len(data.x))
        square = kernel_matrix(rows.kernel, rows.rows[places], np.ascontiguousarray(rows.columns[:, places]))
        return cls._definite(params, square, rows, gamma, mean)

    @classmethod
    def _definite(cls, params: MachineParams, square: Matrix, rows: KernelRows, gamma: float, mean: Vector) -> Self:
        symmetric = (square + square.T) / 2
        spectrum = negative_spectrum(symmetric)
        if spectrum is None:
            return cls(rows, gamma, mean, 0.0)
        if params.indefinite == "reject":
            raise InvalidData(
                f"The kernel is not positive semidefinite: its smallest eigenvalue is {spectrum[0]:.3g}, the largest "
                f"{spectrum[-1]:.3g}. Choose another kernel, or set `indefinite` to `project`."
            )
        if len(rows.diagonal) > PROJECTED:
            raise InvalidData(
                f"A kernel that is not positive semidefinite is projected for up to {PROJECTED:,} training rows; these "
                f"are {len(rows.diagonal):,}. Choose another kernel."
            )
        values, vectors = scipy.linalg.eigh(symmetric)
        least = float(values[0] / np.abs(values).max())
        used = vectors[:, values > 0]
        projected = (used * values[values > 0]) @ used.T
        return cls(KernelRows.given(projected), gamma, mean, least, used @ used.T)


def _mean(x: Matrix) -> Vector:
    """(d,) means of columns; zero where they are rounding, so that standardised rows are not copied."""
    mean: Vector = x.mean(axis=0)
    size = math.sqrt(np.vdot(x, x) / max(x.size, 1))
    return np.zeros(mean.size) if np.abs(mean).max(initial=0.0) <= CENTRED * size < math.inf else mean


class Machine(NamedTuple):
    """Decision functions Σᵢ βᵢ k(xᵢ, x) + b, p of them, over the same support vectors."""

    points: Matrix
    """(d, m) support vectors, by column; (d, 0) where the kernel is linear, (0, 0) where it was given."""
    coef: Matrix
    """(p, m) β, of the support vectors."""
    weights: Matrix
    """(p, d) Σ βᵢ xᵢ where the kernel is linear; else (0, d)."""
    intercept: Vector
    """(p,) b."""
    gamma: float
    places: Labels
    """(m,) support vectors, among the training rows."""
    numbers: Labels
    """(m,) their numbers in the dataset, from 0, else among the training rows."""
    items: NDArray[np.str_] | None
    """(m,) their names; None: they have none."""
    least: float
    """Smallest eigenvalue, as in `Kept`."""
    projected: bool
    """True if the kernel was projected."""

    @classmethod
    def of(cls, params: MachineParams, data: Data, support: Kept, coef: Matrix, intercept: Vector) -> Self:
        """coef: (p, n) of all training rows."""
        if support.projector is not None:
            coef = coef @ support.projector
        places = np.flatnonzero((coef != 0).any(axis=0))
        some, none = np.ascontiguousarray(coef[:, places]), np.zeros((0, data.x.shape[1]))
        numbers = np.arange(len(data.x)) if data.numbers is None else data.numbers
        points, weights = np.zeros((0, 0)), none
        if params.kernel == "linear" and data.square is None:
            weights, points = np.ascontiguousarray(coef @ support.rows.rows), np.zeros((data.x.shape[1], 0))
            intercept = intercept - weights @ support.mean
        elif data.square is None:
            points = np.ascontiguousarray(data.x[places].T)
        items = None if data.items is None else data.items[places]
        shown = numbers[places], items, support.least, support.projector is not None
        return cls(points, some, weights, intercept, support.gamma, places, *shown)

    def placed(self, data: Data, order: Labels) -> Self:
        """The same machine with its vectors in their order among the rows of `data`, whose order for the fit was this
        (n,).
        """
        vectors = np.argsort(order[self.places])
        places = order[self.places][vectors]
        return self._replace(
            points=np.ascontiguousarray(self.points[:, vectors]) if self.points.size else self.points,
            coef=np.ascontiguousarray(self.coef[:, vectors]),
            places=places,
            numbers=places if data.numbers is None else self.numbers[vectors],
            items=None if self.items is None else self.items[vectors],
        )


def ordered(data: Data) -> tuple[Data, Labels]:
    """The rows in an order that does not depend on that of the table, and their places (n,); as given with relations,
    which predictions name by place.
    """
    order = np.arange(len(data.x)) if data.relations is not None else content_order(data)
    return data if data.relations is not None else data.take(order), order


def decisions(params: MachineParams, machine: Machine, x: Matrix) -> Matrix:
    """(n, p) decision values; each row by itself."""
    if len(machine.weights):
        return each_row(x, machine.weights.T) + machine.intercept
    if not machine.places.size:
        return np.tile(machine.intercept, (len(x), 1))
    if not machine.points.size:
        values = np.ascontiguousarray(x[:, machine.places])
        return each_row(values, np.ascontiguousarray(machine.coef.T)) + machine.intercept
    kernel = params.function(machine.gamma)
    return weighted_sums(kernel, np.ascontiguousarray(x), machine.points, machine.coef) + machine.intercept


def vectors_summary(machine: Machine, units: Affine | None = None) -> dict[str, JSON]:
    """The support vectors by row number, and by name where rows have names, and the decision functions.

    `dual_coefficients` of each function are those of the first of these rows: decision values are their products with
    the kernel, plus the intercept. Of a linear kernel `coefficients` are those of the columns. units: of other columns.
    """
    count, functions = len(machine.places), len(machine.coef)
    planes = forms(machine.weights, machine.intercept, units) if len(machine.weights) else {}
    result: dict[str, JSON] = {
        "support_vectors": count,
        "support_vector_rows": machine.numbers[:LISTED].tolist(),
        "kernel_projected": machine.projected,
        "smallest_eigenvalue_share": machine.least,
        "dual_coefficients": machine.coef[:, : max(1, LISTED // max(1, functions))].tolist(),
        "intercepts": machine.intercept.tolist(),
        **planes,
    }
    if machine.items is not None:
        result["support_vector_items"] = machine.items[:LISTED].tolist()
    return result


def explained(params: MachineParams, machine: Machine, x: Matrix, function: int) -> dict[str, JSON]:
    """Parts that add up to one decision value of a row (1, d): the intercept, and those of columns where the kernel is
    linear, else those of the support vectors, the largest first and all others together.
    """
    if len(machine.weights):
        plane = LinearForm(machine.weights[function][:, None], machine.intercept[function, None])
        return next(column_sums(plane, x))
    coef = machine.coef[function]
    if machine.points.size:
        parts = coef * kernel_matrix(params.function(machine.gamma), x, machine.points)[0]
    else:
        parts = coef * x[0, machine.places]
    order = np.argsort(-np.abs(parts), kind="stable")
    listed, remaining = order[:EXPLAINING], parts[order[EXPLAINING:]]
    items = {} if machine.items is None else {int(i): {"item": str(machine.items[i])} for i in listed}
    return {
        "intercept": float(machine.intercept[function]),
        "support_vectors": [
            {"row": int(machine.numbers[i]), **items.get(int(i), {}), "contribution": float(parts[i])} for i in listed
        ],
        "others": float(remaining.sum()),
    }


def explained_by_class(
    params: MachineParams, machine: Machine, classes: Sequence[tuple[int, int]], x: Matrix
) -> list[JSON]:
    """For each row what adds up to the decision value of each function, as `explained`.

    classes: those with negative and positive values of each function; -1: all others.
    """
    named = [{"classes": [code for code in pair if code >= 0]} for pair in classes]
    rows = (x[i : i + 1] for i in range(len(x)))
    return [
        {"machines": [machine_fields | explained(params, machine, row, i) for i, machine_fields in enumerate(named)]}
        for row in rows
    ]


def of_planes(summary: Callable[[P, S, Affine], JSON]) -> Callable[[P, S, Affine], JSON]:
    """The summary in other units, of machines whose kernel is linear; of others None."""

    def unscaled(params: P, state: S, units: Affine) -> JSON:
        return summary(params, state, units) if len(state.machine.weights) else None

    return unscaled


def memory(params: MachineParams, size: Size, *, bounded: bool = True) -> float:
    """Bytes of the cache of rows, of at most all pairs, and of the rows by column.

    bounded: the programme is one for `minimum`, which keeps no cache for a linear kernel of many rows.
    """
    rows = 24 * size.cells
    if bounded and params.kernel == "linear" and in_weights(size.rows, size.columns):
        return rows + VECTORS * 8 * size.rows
    cache = min(params.cache_size * 2**20, 8 * size.rows**2) + 16 * size.rows
    projected = 24 * min(size.rows, PROJECTED) ** 2 if params.indefinite == "project" else 0.0
    return cache + projected + rows


def seconds(params: MachineParams, size: Size, *, bounded: bool = True) -> float:
    """Seconds of one fit: rows of the kernel, of which a half are support vectors, and steps over all rows.

    bounded: as for `memory`.
    """
    if bounded and params.kernel == "linear" and in_weights(size.rows, size.columns):
        return weights_seconds(size.rows, size.columns)
    return 2e-3 + 1e-5 * size.rows + size.rows**2 * (4.5e-9 + 1.5e-10 * size.columns)
