r"""Weighted principal components: directions along which pairs of rows lie far apart, each pair with its own weight.

The orthogonal projection onto p directions that maximises

    Σ dᵢⱼ ‖zᵢ − zⱼ‖²  over pairs i < j,

with z the coordinates of the rows and d the weights of pairs. The directions are eigenvectors of the matrix
XᵀLX = Σ dᵢⱼ(xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ, where L is the Laplacian of the weights. With equal weights these are the principal
components. With weights of one over the distance, as by default, each pair counts with its distance instead of the
square of it, so that a few rows far away do not choose the directions. Or the weights are given, as edges between items
with a dissimilarity each: pairs with a large one are drawn far apart, pairs without an edge do not count.
Row weights multiply those of pairs. Each direction is turned so that its largest loading is positive.

In short: The table is turned so that its first few directions keep most of the distances between its rows, some pairs
counting more than others. Outliers do not choose the directions.

Use when: a picture of a table with outliers, or one in which known dissimilarities of pairs should show. For equal
weights `pca` is quicker. Scale the columns first unless they share a unit.

Eight rows along one direction, and one far away in another: principal components follow the one row.

>>> x = np.array([[float(i), 0.0] for i in range(8)] + [[3.5, 9.0]])
>>> rows = Data.of(Task.PROJECTION, x)
>>> for pair_weights in ("uniform", "inverse_distance"):
...     params = WeightedPCA(n_components=1, pair_weights=pair_weights)
...     print(fit(params, rows, Context.of(0)).state.loadings.round(6) + 0.0)
[[0. 1.]]
[[1. 0.]]

References: Koren & Carmel (2004), IEEE Trans. Vis. Comput. Graph. 10:459; Battiti & Brunato, The LION Way, ch. 15.
"""

from typing import Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field

from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    Context,
    Data,
    Fit,
    Form,
    Matrix,
    Meaning,
    Output,
    Params,
    Size,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.linear_algebra.pair_scatter import by_inverse_distance, of_all_pairs, of_edges
from app.ml.numerics.linear_algebra.principal_directions import signed
from app.ml.numerics.linear_algebra.solve import centred, near_one
from app.ml.numerics.neighbours.distances import norms


class WeightedPCA(Params):
    """Principal components with a weight for each pair of rows."""

    n_components: int = Field(2, ge=1, le=10_000, description="Number of directions to keep; at most one per column.")
    pair_weights: Literal["inverse_distance", "uniform"] = Field(
        "inverse_distance",
        description="Weight of a pair of rows where no edges are given: `inverse_distance` is 1 over their distance, "
        "`uniform` is 1 for all pairs.",
    )


class State(NamedTuple):
    mean: Vector
    """(d,)."""
    loadings: Matrix
    """(p, d) orthonormal rows."""
    share: Vector
    """(p,) share of the weighted squared distances along each direction, descending."""
    variance: Vector
    """(p,) of each coordinate; with n in the denominator."""


def fit(params: WeightedPCA, data: Data, context: Context) -> Fit[State]:
    rows = centred(data.x, data.weights)
    scatter = _scatter(params, data, rows.x)
    values, vectors = scipy.linalg.eigh(scatter)
    values = np.maximum(values[::-1], 0.0)
    p = min(params.n_components, len(values))
    loadings = signed(vectors.T[::-1][:p])
    variance = data.weights / data.weights.sum() @ np.square(rows.x @ loadings.T)
    warnings = [f"There are only {p} directions, not {params.n_components}."] if p < params.n_components else []
    if not values[0] > 0:
        warnings.append("No pair of rows with a weight differs: the directions are arbitrary.")
    share = values[:p] / (values.sum() or 1.0)
    return Fit(State(rows.mean, loadings, share, variance), iterations=1, warnings=warnings)


def _scatter(params: WeightedPCA, data: Data, x: Matrix) -> Matrix:
    """Σ dᵢⱼ(xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ up to a factor, for rows about their means."""
    unit = near_one(float(np.abs(x).max(initial=0.0)))
    x, weights = x * unit, data.weights / data.weights.max()
    if data.relations is not None and data.relations.edges is not None:
        edges = data.relations.edges
        largest = near_one(float(edges.values.max(initial=0.0)))
        return of_edges(x, edges, largest * edges.values * weights[edges.first] * weights[edges.second])
    return (of_all_pairs if params.pair_weights == "uniform" else by_inverse_distance)(x, weights)


def predict(params: WeightedPCA, state: State, x: Matrix) -> Matrix:
    return (x - state.mean) @ state.loadings.T


def inverse(params: WeightedPCA, state: State, z: Matrix) -> Matrix:
    return z @ state.loadings + state.mean


def lost(params: WeightedPCA, state: State, x: Matrix) -> Vector:
    return np.sqrt(norms(x - inverse(params, state, predict(params, state, x))))


def objective(params: WeightedPCA, state: State, data: Data) -> float:
    """Share of the weighted squared distances that is lost.

    Only the space that the loadings span counts, so that loadings which are not orthonormal gain nothing.
    """
    scatter = _scatter(params, data, centred(data.x, data.weights).x)
    basis, _ = np.linalg.qr(state.loadings.T)
    complement = np.eye(len(basis)) - basis @ basis.T
    return float(np.trace(complement @ scatter @ complement) / (np.trace(scatter) or 1.0))


def summary(params: WeightedPCA, state: State) -> JSON:
    return {
        "columns": every(state.loadings.shape[1]),
        "loadings": state.loadings.tolist(),
        "weighted_distance_ratio": state.share.tolist(),
        "explained_variance": state.variance.tolist(),
        "mean": state.mean.tolist(),
    }


def _seconds(params: WeightedPCA, size: Size) -> float:
    linear = 3e-4 + size.cells * (1e-8 + 1e-10 * size.columns)
    return linear + (params.pair_weights == "inverse_distance") * size.rows**2 * (6e-9 + 1.5e-10 * size.columns)


def to_tensor(params: WeightedPCA, state: State, x: Tensor) -> Tensor:
    return (x - state.mean) @ state.loadings.T


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=WeightedPCA,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    relations={Form.EDGES: {Meaning.DISSIMILARITY}},
    seconds=_seconds,
    outputs={
        "distance": Output(
            "Euclidean distance between the row and its reconstruction, in the prepared (scaled) columns.", lost
        )
    },
    inverse=inverse,
    objective=objective,
    summary=summary,
    breaks={Symmetry.SCALE: "distances count in the units of the columns"},
)
