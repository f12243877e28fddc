r"""Classical multidimensional scaling: a map of rows whose inner products are those that their distances imply.

Squared dissimilarities D² become inner products  B = −½ J D² Jᵀ  about the mean (Torgerson and Gower); the map has the
eigenvectors of B with the largest eigenvalues λ as its axes, each of length √λ. The dissimilarities are distances of
the columns by a metric, or given: by a square table, or by edges between all pairs. Of Euclidean distances the map is
that of `pca`, but for the signs of its axes. Dissimilarities that are no Euclidean distances have eigenvalues below 0,
which the summary reports; the map takes those above 0 only, and has fewer axes than requested where there are fewer.

A new row is placed by its dissimilarities to the training rows (formula of Gower), each by itself, and a training row
where it is. Where edges stand beside columns, it has the place of the training row nearest in the columns.
Every axis points to where the farthest row on it is positive. With more than 1500 rows only the largest eigenvalues and
the five lowest are found.

In short: Distances between rows are turned into inner products, and these into coordinates. Distances on the map are
never longer than Euclidean ones that it is made from.

Use when: dissimilarities are near Euclidean, or a map is needed that one computation without starts gives. The lowest
stress, gaps in the dissimilarities and other metrics are the part of `smacof`.

Four corners of a rectangle, 3 by 4, from their distances; the sides along the axes square to 4·(3/2)² and 4·(4/2)²:

>>> import numpy as np
>>> corners = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [3.0, 4.0]])
>>> state = fit(MDS(), Data.of(Task.PROJECTION, corners), Context.of(0)).state
>>> (state.eigenvalues[:2] * state.known.scale**2).round(9).tolist()
[16.0, 9.0]

References: Torgerson (1952), Psychometrika 17:401; Gower (1966), Biometrika 53:325; Gower (1968), Biometrika 55:582;
Mardia (1978), Commun. Stat. A 7:1233.
"""

from typing import NamedTuple

import numpy as np

from app.base.errors import InvalidData
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Labels,
    Matrix,
    Meaning,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.numerics.maps.classical_scaling import ClassicalScaling, classical_scaling
from app.ml.numerics.maps.known_items import (
    DissimilarityParams,
    KnownItems,
    coordinates,
    known_items,
    nearest_items,
    placed,
)
from app.ml.numerics.neighbours.neighbour_lists import Neighbours

MOST_SHOWN = 100
"""Eigenvalues in the summary."""


class MDS(DissimilarityParams):
    """Classical multidimensional scaling."""


class State(NamedTuple):
    known: KnownItems
    """Training rows; all that follows is in units of their scale."""
    places: Matrix
    """(n, p) their coordinates."""
    factor: Matrix
    """(n, p) map of squared dissimilarities to coordinates."""
    means: Vector
    """(n,) means of the squared dissimilarities."""
    eigenvalues: Vector
    """(m,) descending: all, or the largest and the lowest."""
    total: float
    """Sum of all eigenvalues."""
    squares: float
    """Sum of the squares of all eigenvalues."""


def fit(params: MDS, data: Data, context: Context) -> Fit[State]:
    items, distances = known_items(params, data)
    if unknown := int(np.isnan(distances).sum()) // 2:
        raise InvalidData(f"mds needs a dissimilarity for every pair of rows; {unknown} have none: take smacof.")
    context.progress(0.2)
    values, total, squares, means, factor = scaled = classical_scaling(distances, items.weights, params.n_components)
    p = factor.shape[1]
    state = State(items, scaled.places(distances), factor, means, values, total, squares)
    few = f"Only {p} eigenvalues are above 0, so that there are {p} axes, not {params.n_components}."
    return Fit(state, iterations=1, warnings=[few] if p < params.n_components else [])


def predict(params: MDS, state: State, x: Matrix) -> Matrix:
    scaled = ClassicalScaling(state.eigenvalues, state.total, state.squares, state.means, state.factor)
    return placed(params, state.known, x, state.places * state.known.scale, scaled.places)


def nearest(params: MDS, state: State, x: Matrix, count: int | None) -> Neighbours:
    return nearest_items(state.known, state.places, predict(params, state, x), count)


def nearest_to_items(params: MDS, state: State, places: Labels, count: int | None) -> Neighbours:
    """The same of training rows, by their places among the items."""
    return nearest_items(state.known, state.places, state.places[places] * state.known.scale, count)


def summary(params: MDS, state: State) -> JSON:
    """In squared units of the dissimilarities. Shares: of the sum of absolute eigenvalues, null where not all are
    known; of the sum of their squares (Mardia).
    """
    values, p = state.eigenvalues, state.places.shape[1]
    top, size = values[:p], float(np.abs(values).sum())
    complete = len(values) == len(state.places)
    with np.errstate(over="ignore"):
        shown = np.clip(values * state.known.scale**2, -np.finfo(float).max, np.finfo(float).max)
    return {
        "eigenvalues": shown[:MOST_SHOWN].tolist(),
        "lowest_eigenvalue": float(shown[-1]),
        "negative_eigenvalues": int((values < -len(values) * 1e-12 * np.abs(values).max()).sum()) if complete else None,
        "explained_ratio": (top / (size or 1.0)).tolist() if complete else None,
        "explained_squared_ratio": (np.square(top) / (state.squares or 1.0)).tolist(),
        "coordinates": coordinates(state.known, state.places),
    }


def _memory(_: MDS, size: Size) -> float:
    return 34 * size.rows**2


def _seconds(params: MDS, size: Size) -> float:
    solved = 2.5e-10 * size.rows**3 if size.rows <= 1500 else 8e-8 * size.rows**2
    return solved + size.rows**2 * (2e-8 + 1e-9 * size.columns)


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=MDS,
    state=State,
    fit=fit,
    predict=predict,
    memory=_memory,
    seconds=_seconds,
    rowwise=True,
    relations={form: {Meaning.DISSIMILARITY} for form in (Form.SQUARE, Form.EDGES)},
    edges_alone=True,
    summary=summary,
    queries={
        "neighbours": nearest,
        "neighbours_of_items": nearest_to_items,
        "items": lambda _, state: state.known.items,
    },
    breaks={Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first."},
)
