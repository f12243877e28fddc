"""Clusterings, projections and densities beside those of scikit-learn."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import cluster, decomposition, discriminant_analysis, mixture

from app.ml.algorithms import bisecting_kmeans, gmm, kmeans, lda, pca
from app.ml.contract.algorithm import Data, TargetKind, Task
from app.ml.numerics.neighbours.distances import nearest
from tests.benchmarks.shapes.case import Case, Measure, Side
from tests.benchmarks.shapes.fits import context, fit, module_of
from tests.benchmarks.shapes.tables import Shape, Table, grid

CELLS = 30_000_000
"""Larger tables are read in blocks by a job."""
CELLS_OF_MIXTURES = 3_000_000
SHAPES_OF_NOTE = (Shape("dense", 3_000, 3_000), Shape("dense", 20_000, 300), Shape("dense", 1_000_000, 3))
ROWS_OF_PREDICTIONS = 10_000
APPROXIMATE = (
    "scikit-learn's randomized solver ends before the digits are right: its objective is equal to the tolerance alone"
)


class Contest(NamedTuple):
    """An algorithm, its rival, and how good the result of either is."""

    params: Any
    data: Callable[[Table], Data]
    rivals: Mapping[str, Callable[[Table], Any]]
    """By name: an estimator of scikit-learn, not yet fitted."""
    ours: Callable[[Table, Any], float]
    """Quality of our state."""
    theirs: Callable[[Table, Any], float]
    measure: Measure
    exception: str = ""


def rows_alone(table: Table, task: Task = Task.CLUSTERING) -> Data:
    return Data.of(task, table.x)


def inertia(table: Table, centres: Any) -> float:
    return float(nearest(table.x, np.ascontiguousarray(centres))[1].sum())


def lost(table: Table, loadings: Any) -> float:
    """Share of the variance outside the span of directions."""
    basis, _ = np.linalg.qr(np.asarray(loadings).T)
    left = table.x - table.x.mean(axis=0)
    whole = np.vdot(left, left)
    inside = left @ basis
    return float(1 - np.vdot(inside, inside) / whole)


def separation(table: Table, coordinates: Any) -> float:
    """Scatter between the clusters over that within them, summed over directions of unit scatter within."""
    groups = [coordinates[table.labels == label] for label in np.unique(table.labels)]
    within = sum((group - group.mean(axis=0)).T @ (group - group.mean(axis=0)) for group in groups)
    between = sum(len(group) * np.outer(*[group.mean(axis=0) - coordinates.mean(axis=0)] * 2) for group in groups)
    return float(np.trace(np.linalg.solve(within, between)))


def labelled(table: Table) -> Data:
    return Data.of(Task.PROJECTION, table.x, table.labels, target=TargetKind.CLASSES)


def mean_density(params: Any, table: Table, state: Any) -> float:
    return float(gmm.predict(params, state, table.x).mean())


def inertia_of_labels(table: Table, labels: Any) -> float:
    """About the means of the clusters."""
    groups = [table.x[labels == label] for label in np.unique(labels)]
    return float(sum(np.square(group - group.mean(axis=0)).sum() for group in groups))


def predicted_quality(algorithm: str, table: Table, predicted: Any) -> float:
    """Of labels the inertia, of coordinates how far they lie apart."""
    if algorithm == "kmeans":
        return -inertia_of_labels(table, predicted)
    return separation(table, predicted) if algorithm == "lda" else float(np.vdot(predicted, predicted))


def contests() -> Iterator[tuple[str, str, int, Contest]]:
    """Algorithm, stage, cells of the largest table, and the contest."""
    for k in (8, 50):
        for starts in (1, 10) if k == 8 else (1,):
            peers = {f"KMeans tol {tol}": partial(their_kmeans, k, starts, tol) for tol in (1e-4, 0.0)}
            yield (
                "kmeans", f"fit k={k}, starts={starts}", CELLS if starts == 1 else CELLS // 10,
                Contest(kmeans.KMeans(n_clusters=k, n_init=starts), rows_alone, peers,
                        lambda table, state: inertia(table, state.centres),
                        lambda table, peer: inertia(table, peer.cluster_centers_), Measure(0.02)),
            )  # fmt: skip
    yield (
        "bisecting_kmeans", "fit k=8", CELLS // 10,
        Contest(bisecting_kmeans.BisectingKMeans(n_clusters=8, n_init=1), rows_alone,
                {"BisectingKMeans": lambda _: cluster.BisectingKMeans(8, n_init=1, random_state=0)},
                lambda table, state: inertia(table, state.centres),
                lambda table, peer: inertia_of_labels(table, peer.labels_), Measure(0.05)),
    )  # fmt: skip
    for p in (2, 20):
        solvers = ("auto", "arpack")
        yield (
            "pca", f"fit p={p}", CELLS,
            Contest(pca.PCA(n_components=p), partial(rows_alone, task=Task.PROJECTION),
                    {f"PCA {solver}": partial(their_pca, p, solver) for solver in solvers},
                    lambda table, state: lost(table, state.loadings), lambda table, peer: lost(table, peer.components_),
                    Measure(1e-9, absolute=1e-12), APPROXIMATE),
        )  # fmt: skip
    yield (
        "lda", "fit", CELLS,
        Contest(lda.LDA(), labelled, {f"LDA {solver}": partial(their_lda, solver) for solver in ("svd", "eigen")},
                lambda table, state: separation(table, lda.predict(lda.LDA(), state, table.x)),
                lambda table, peer: separation(table, peer.transform(table.x)), Measure(1e-6, "higher")),
    )  # fmt: skip
    for covariance, name in (("full", "full"), ("diagonal", "diag")):
        params = gmm.GMM(n_components=5, n_init=1, covariance=covariance)
        yield (
            "gmm", f"fit {covariance}", CELLS_OF_MIXTURES,
            Contest(params, partial(rows_alone, task=Task.DENSITY), {"GaussianMixture": partial(their_gmm, name)},
                    partial(mean_density, params), lambda table, peer: peer.score(table.x),
                    Measure(0.01, "higher", absolute=0.05)),
        )  # fmt: skip


def their_kmeans(k: int, starts: int, tol: float, _: Table) -> Any:
    return cluster.KMeans(k, n_init=starts, tol=tol, random_state=0)


def their_pca(p: int, solver: str, _: Table) -> Any:
    return decomposition.PCA(p, svd_solver=solver, random_state=0)


def their_lda(solver: str, _: Table) -> Any:
    return discriminant_analysis.LinearDiscriminantAnalysis(solver=solver)


def their_gmm(covariance: str, _: Table) -> Any:
    return mixture.GaussianMixture(5, covariance_type=covariance, tol=1e-4, max_iter=200, random_state=0)


def cases() -> Iterator[Case]:
    for algorithm, stage, cells, contest in contests():
        shapes = [*grid("dense", "correlated", cells=cells)]
        shapes += [shape for shape in SHAPES_OF_NOTE if shape not in shapes and shape.numbers <= cells]
        for shape in shapes:
            if not fits(algorithm, contest, shape):
                continue
            ours, rivals = partial(our_fit, algorithm, contest), contest.rivals
            theirs = {name: partial(their_fit, contest, make) for name, make in rivals.items()}
            yield Case(
                algorithm, shape, ours, theirs, {"quality": contest.measure}, stage=stage, exception=contest.exception
            )
        for shape in (Shape("dense", ROWS_OF_PREDICTIONS, 3), Shape("dense", ROWS_OF_PREDICTIONS, 300)):
            if algorithm in {"kmeans", "pca", "lda"} and fits(algorithm, contest, shape):
                yield Case(
                    algorithm,
                    shape,
                    partial(our_predictions, algorithm, contest),
                    {
                        name: partial(their_predictions, algorithm, contest, make)
                        for name, make in contest.rivals.items()
                    },
                    {"quality": Measure(0.05 if algorithm == "kmeans" else 1e-6, "higher")},
                    stage=f"predict {stage}",
                    exception=contest.exception,
                )


def fits(algorithm: str, contest: Contest, shape: Shape) -> bool:
    """True if the shape has enough rows and columns, and the time of both sides is bounded."""
    n, d = shape.rows, shape.columns
    if algorithm == "pca":
        return min(n, d) > int(contest.params.n_components)
    if algorithm == "lda":
        return n > d and n * d * d <= 10**12
    return algorithm != "gmm" or (n >= 10 * d and d <= 300)


def our_fit(algorithm: str, contest: Contest, table: Table) -> Side:
    data = contest.data(table)
    return Side(lambda: fit(algorithm, contest.params, data), lambda state: {"quality": contest.ours(table, state)})


def their_fit(contest: Contest, make: Callable[[Table], Any], table: Table) -> Side:
    targets = (table.labels,) if contest.data is labelled else ()
    return Side(lambda: make(table).fit(table.x, *targets), lambda peer: {"quality": contest.theirs(table, peer)})


def our_predictions(algorithm: str, contest: Contest, table: Table) -> Side:
    module = module_of(algorithm)
    state = module.fit(contest.params, contest.data(table), context()).state
    return Side(
        lambda: module.predict(contest.params, state, table.x),
        lambda predicted: {"quality": predicted_quality(algorithm, table, predicted)},
    )


def their_predictions(algorithm: str, contest: Contest, make: Callable[[Table], Any], table: Table) -> Side:
    peer = make(table).fit(table.x, *((table.labels,) if contest.data is labelled else ()))
    run = peer.predict if algorithm == "kmeans" else peer.transform
    return Side(lambda: run(table.x), lambda predicted: {"quality": predicted_quality(algorithm, table, predicted)})
