r"""Metric multidimensional scaling by SMACOF: a map whose distances differ least from given dissimilarities.

Minimises the stress  Σ wᵢⱼ(δᵢⱼ − ‖yᵢ − yⱼ‖)²  over pairs of rows whose dissimilarity δᵢⱼ is known, by majorisation: no
step raises the stress. wᵢⱼ is the product of the weights of both rows and, where edges have one, of the pair; a pair of
weight 0 is as one that is unknown. The dissimilarities are distances of the columns by any metric, or given: by a
square table, which may have gaps, or by edges. The first start is the map of classical scaling, gaps filled by the
shortest ways over known pairs, others are random, and the one that ends with the lowest stress is kept. That need not
be the lowest there is. The known pairs have to connect all rows. Equal rows have one place. The fit needs 65 bytes of
memory times the squared number of rows, even where few pairs are known; one that does not fit is refused before it
starts.

The map is centred and turned so that its axes are its principal ones; it could as well be mirrored. A new row is
placed, by itself, where the squared differences between its dissimilarities to the training rows and its distances from
them are least, and a training row where it is. Where edges stand beside columns, it has the place of the training
row nearest in the columns.

In short: Rows are moved about in a plane, in steps that never make it worse, until their distances are as near to the
given dissimilarities as the start allows.

Use when: only dissimilarities are known, perhaps not all of them, or a picture should keep distances of many columns.
For Euclidean distances and no starts, `mds` or `pca` are faster.

Four points at distance 1 from each other do not fit into a plane: the best are a square, of stress 3 − 2√2.

>>> import numpy as np
>>> state = fit(Smacof(n_init=8), Data.of(Task.PROJECTION, np.eye(4) / np.sqrt(2)), Context.of(0)).state
>>> round(state.stress, 9), round(3 - 2 * 2**0.5, 9)
(0.171572875, 0.171572875)

References: de Leeuw (1977), Recent Developments in Statistics: 133; de Leeuw & Heiser (1980), Multivariate Analysis V:
501; Borg & Groenen (2005), Modern Multidimensional Scaling, ch. 8; Kruskal (1964), Psychometrika 29:1.
"""

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Accepts,
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
from app.ml.numerics.maps.item_placement import place_items
from app.ml.numerics.maps.known_items import (
    DissimilarityParams,
    KnownItems,
    coordinates,
    distinct_items,
    known_items,
    nearest_items,
    pair_weights,
    placed,
)
from app.ml.numerics.maps.map_starts import classical_start, random_start, upright
from app.ml.numerics.maps.stress_majorisation import EXACT, KnownPairs, Majorised
from app.ml.numerics.neighbours.neighbour_lists import Neighbours


class Smacof(DissimilarityParams):
    """Metric multidimensional scaling by SMACOF."""

    init: Literal["classical", "random"] = Field(
        "classical",
        description="Starting places of the first start: the map of classical scaling, or random ones. All further "
        "starts are random.",
    )
    n_init: int = Field(4, ge=1, le=1000, description="Number of starts, of which the best is kept.")
    max_iter: int = Field(500, ge=1, le=100_000, description="Maximum number of steps of each start.")
    tol: float = Field(
        1e-6, ge=0, lt=1, description="Stop when a step lowers the stress by no more than this share of it."
    )


class State(NamedTuple):
    known: KnownItems
    """Training rows."""
    places: Matrix
    """(n, p) their coordinates, in units of their scale."""
    stress: float
    """Σ wᵢⱼ(δᵢⱼ − dᵢⱼ)² over the known pairs, in squared units of the dissimilarities."""
    normalised_stress: float
    """The same as a share of Σ wᵢⱼδᵢⱼ²."""
    stress_1: float
    """Kruskal's stress-1: the root of the share of Σ wᵢⱼdᵢⱼ²."""
    known_pairs: int
    """Pairs of different rows whose dissimilarity is known."""
    starts: Vector
    """(n_init,) normalised stress at which each start ended."""


def fit(params: Smacof, data: Data, context: Context) -> Fit[State]:
    items, distances = known_items(params, data)
    pairs = (int((~np.isnan(distances)).sum()) - len(distances)) // 2
    distinct = distinct_items(items)
    if len(distinct.first) < len(distances) or items.form == "columns":
        distances = distances[np.ix_(distinct.first, distinct.first)]
    problem = KnownPairs(distances, distinct.weights, pair_weights(data))
    runs = [*_runs(params, problem, context)]
    best = min(runs, key=lambda run: run.stress[-1])
    squares = problem.squares or 1.0
    places = upright(best.places, distinct.weights)
    left, size = best.stress[-1], problem.squared_distances(places)
    with np.errstate(over="ignore"):
        stress = min(float(left * (problem.unit * items.scale**2)), float(np.finfo(float).max))
    state = State(
        items,
        places[distinct.group],
        stress,
        left / squares,
        float(np.sqrt(left / (size or 1.0))),
        pairs,
        np.array([run.stress[-1] / squares for run in runs]),
    )
    curve = [value / squares for value in best.stress]
    return Fit(state, best.converged, len(curve) - 1, curves={"normalised_stress": curve})


def _runs(params: Smacof, problem: KnownPairs, context: Context) -> Iterator[Majorised]:
    lowest = np.inf
    for start in range(params.n_init):
        make = classical_start if start == 0 and params.init == "classical" else random_start
        run = problem.majorised(make(problem, params.n_components, context.rng), params.tol, params.max_iter)
        lowest = min(lowest, run.stress[-1])
        context.progress((start + 1) / params.n_init, stress=lowest)
        yield run
        if lowest <= EXACT * problem.squares:
            break


def predict(params: Smacof, state: State, x: Matrix) -> Matrix:
    place = partial(place_items, known_places=state.places, weights=state.known.weights)
    return placed(params, state.known, x, state.places * state.known.scale, place)


def nearest(params: Smacof, state: State, x: Matrix, count: int | None) -> Neighbours:
    return nearest_items(state.known, state.places, predict(params, state, x), count)


def nearest_to_items(params: Smacof, state: State, places: Labels, count: int | None) -> Neighbours:
    """The same of training rows, by their places among the items."""
    return nearest_items(state.known, state.places, state.places[places] * state.known.scale, count)


def summary(params: Smacof, state: State) -> JSON:
    return {
        "stress": state.stress,
        "normalised_stress": state.normalised_stress,
        "stress_1": state.stress_1,
        "known_pairs": state.known_pairs,
        "starts": state.starts.tolist(),
        "coordinates": coordinates(state.known, state.places),
    }


def _memory(_: Smacof, size: Size) -> float:
    return 65 * size.rows**2


def _seconds(params: Smacof, size: Size) -> float:
    pair = 1.5e-6 + 1e-9 * size.columns + 3.6e-9 * params.n_init * min(params.max_iter, 200)
    return size.rows * (size.rows * pair + 1e-4)


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=Smacof,
    state=State,
    fit=fit,
    predict=predict,
    accepts={Accepts.UNKNOWN_PAIRS},
    memory=_memory,
    seconds=_seconds,
    rowwise=True,
    relations={form: {Meaning.DISSIMILARITY} for form in (Form.SQUARE, Form.EDGES)},
    edges_alone=True,
    pair_weights=True,
    summary=summary,
    queries={
        "neighbours": nearest,
        "neighbours_of_items": nearest_to_items,
        "items": lambda _, state: state.known.items,
    },
    breaks={Symmetry.SCALE: "A distance gives a column the weight of its unit; scale the columns alike first."},
)
