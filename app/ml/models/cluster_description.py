"""Description of the clusters of a model, kept beside it: sizes, contrasts, nearest rows, and normal densities.

The densities give outputs to every clustering of columns that has none of these names itself.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Algorithm, Labels, Matrix, Output, Params, Task, Vector
from app.ml.models import state_format
from app.ml.numerics.clustering.cluster_normals import ClusterNormals


class ClusterCards(NamedTuple):
    """Properties of k clusters, as arrays."""

    sizes: Labels
    """(k,) training rows."""
    spreads: Vector
    """(k,) root mean square distance of the rows to the prototype; NaN where there is none."""
    nearest: NDArray[np.int64]
    """(k, r) numbers in the dataset of the rows nearest to the prototype, nearest first; -1 where there are fewer."""
    items: NDArray[np.str_] | None
    """(k r,) their names; None: rows have none."""
    columns: NDArray[np.str_]
    """(p,) names of the columns that are compared."""
    places: NDArray[np.int64]
    """(k, t) the most distinctive ones, the largest effect first; -1 where there are fewer."""
    codes: NDArray[np.int64]
    """(k, t) category of each that is over-represented; -1 of a number."""
    effects: Matrix
    """(k, t) effect sizes."""
    p_values: Matrix
    """(k, t) of each test by itself."""
    inside: Matrix
    """(k, t) mean, or share of the category, in the cluster."""
    outside: Matrix
    """(k, t) the same of all other rows."""
    tests: int
    """Tests made, of all columns in all clusters."""
    compared: int
    """Rows that were compared."""


class ClusterDescription(NamedTuple):
    cards: ClusterCards
    normals: ClusterNormals | None = None
    """None of items and given dissimilarities, which have no columns."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters, those without training rows among them."""
        return int(self.cards.sizes.size)


def packed(description: ClusterDescription | None, arrays: dict[str, NDArray[Any]]) -> dict[str, JSON]:
    """The fields of a document; arrays go into `arrays`."""
    return {} if description is None else {"clusters": state_format.pack(description, "clusters", arrays)}


def unpacked(document: JSON, arrays: dict[str, NDArray[Any]], columns: int) -> ClusterDescription | None:
    """columns: of the prepared rows. Raises KeyError, TypeError or ValueError for what was not packed so."""
    if "clusters" not in document:
        return None
    description = state_format.unpack(ClusterDescription, document["clusters"], arrays)
    if not (
        _is_sound(description.cards)
        and (description.normals is None or _fits(description.normals, description.n_clusters, columns))
    ):
        raise ValueError("clusters")
    return description


def _is_sound(cards: ClusterCards) -> bool:
    k, shape = cards.sizes.size, cards.places.shape
    tables = (cards.codes, cards.effects, cards.p_values, cards.inside, cards.outside)
    return (
        cards.sizes.shape == cards.spreads.shape == (k,)
        and cards.sizes.dtype.kind == "i"
        and cards.nearest.ndim == len(shape) == 2
        and len(cards.nearest) == shape[0] == k
        and all(table.shape == shape for table in tables)
        and bool((cards.places < cards.columns.size).all())
        and (cards.items is None or cards.items.size == cards.nearest.size)
    )


def _fits(normals: ClusterNormals, k: int, d: int) -> bool:
    shapes = normals.shares.shape, normals.means.shape, normals.shrunk.shape
    return shapes == ((k,), (k, d), (k,)) and normals.whitening.shape in {(k, d, d), (k, 1, d)}


def described(
    algorithm: Algorithm[Any, Any], task: Task, params: Params, description: ClusterDescription | None
) -> Algorithm[Any, Any]:
    """The algorithm with the outputs of fits with these parameters, and the outputs and ellipsoids of these densities
    where it has none of its own.
    """
    if not all(output.applies(params) for output in algorithm.outputs.values()):
        outputs = {name: output for name, output in algorithm.outputs.items() if output.applies(params)}
        algorithm = replace(algorithm, outputs=outputs)
    if description is None or description.normals is None or not task.labels or _of_counts(algorithm):
        return algorithm
    densities = cluster_outputs(algorithm, description.normals)
    normals = description.normals.normals
    queries = {"ellipsoids": lambda _, __: normals, **algorithm.queries}
    return replace(algorithm, outputs={**densities, **algorithm.outputs}, queries=queries)


def offered_outputs(algorithm: Algorithm[Any, Any], task: Task | None = None) -> Mapping[str, Output]:
    """Outputs of the models of an algorithm; task: of one of its tasks.

    Those of densities have no function before there is a model.
    """
    clusters = task.labels if task is not None else any(possible.labels for possible in algorithm.tasks)
    if not clusters or _of_counts(algorithm):
        return algorithm.outputs
    return {**cluster_outputs(algorithm, None), **algorithm.outputs}


def _of_counts(algorithm: Algorithm[Any, Any]) -> bool:
    return algorithm.counts(algorithm.params.model_construct())


def cluster_outputs(algorithm: Algorithm[Any, Any], normals: ClusterNormals | None) -> Mapping[str, Output]:
    """Outputs by the normal densities of the clusters; normals: None to describe them only."""

    def method_output(method: str) -> Any:
        def compute(params: Any, state: Any, x: Matrix) -> NDArray[Any]:
            return np.asarray(getattr(normals, method)(x, algorithm.predict(params, state, x)))

        return compute

    return {
        "memberships": Output(
            "Probability of each cluster, in their order from 0, by normal densities with the mean and covariance of "
            "its training rows: they add up to 1.",
            lambda _, __, x: normals.memberships(x) if normals else x,
            lambda _, __: len(normals.shares) if normals else 0,
        ),
        "tail_probability": Output(
            "Probability that a row of the cluster is farther from its mean, by the chi-square distribution of the "
            "squared Mahalanobis distance: small for outliers.",
            method_output("tails"),
        ),
        "anomaly": Output(
            "True where the Mahalanobis distance to the mean of the row's cluster is larger than that of every "
            "training row to its own.",
            method_output("beyond"),
        ),
    }
