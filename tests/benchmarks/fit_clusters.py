"""CPU milliseconds of our clusterings beside those of scikit-learn and faiss, on one thread.

Needs faiss-cpu. Run `python tests/benchmarks/fit_clusters.py`; a ratio is ours over theirs. Goals of the descents from
the same rows: at most 0.35 of scikit-learn and 0.7 of faiss, which computes in single precision; of fits and of labels
of rows: at most 1 of scikit-learn.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import faiss
import numpy as np
from sklearn import cluster, datasets

from app.ml.algorithms import bisecting_kmeans, kmeans
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.clustering.lloyd import lloyd
from app.ml.numerics.neighbours.distances import nearest

ROWS, COLUMNS, CLUSTERS, MOVES = 500_000, 20, 50, 50


def best(run: Callable[[], Any], times: int) -> float:
    spent = []
    for _ in range(times):
        begun = time.process_time()
        run()
        spent.append(1e3 * (time.process_time() - begun))
    return min(spent)


def compare(name: str, ours: Callable[[], Any], rivals: Mapping[str, Callable[[], Any]], times: int = 3) -> None:
    mine = best(ours, times)
    for rival, run in rivals.items():
        theirs = best(run, times)
        sys.stdout.write(f"{name:36} {rival:14} {mine:10.2f} {theirs:10.2f} {mine / theirs:8.2f}\n")


def fits(name: str, x: Any, k: int, n_init: int, max_iter: int) -> None:
    params = kmeans.KMeans(n_clusters=k, n_init=n_init, max_iter=max_iter)
    rival = cluster.KMeans(k, n_init=n_init, random_state=0, tol=0, max_iter=max_iter).fit(x)
    data = Data.of(Task.CLUSTERING, x)
    fit = partial(kmeans.fit, params, data, Context.of(0))
    compare(f"k-means {name} k={k}", fit, {"scikit-learn": partial(rival.fit, x)})
    state = fit().state
    for rows in (1, len(x)):
        ours = partial(kmeans.predict, params, state, x[:rows])
        compare(f"  labels of {rows}", ours, {"scikit-learn": partial(rival.predict, x[:rows])}, times=10)
    split = partial(
        bisecting_kmeans.fit, bisecting_kmeans.BisectingKMeans(n_clusters=k, n_init=n_init), data, Context.of(0)
    )
    peer = cluster.BisectingKMeans(k, n_init=n_init, random_state=0, tol=0)
    compare("  bisecting", split, {"scikit-learn": partial(peer.fit, x)})
    inertias = split().curves["inertia"][-1], peer.fit(x).inertia_
    sys.stdout.write(f"  inertia: {', '.join(f'{end:.8g}' for end in inertias)}\n")


def descents(name: str, x: Any) -> None:
    """From the same rows, with as many moves; the inertia at the end of each is printed."""
    first = x[np.random.default_rng(0).choice(ROWS, CLUSTERS, replace=False)]
    ours = partial(lloyd, x, np.ones(ROWS), first, MOVES)
    peer = cluster.KMeans(CLUSTERS, init=first, n_init=1, tol=0, max_iter=MOVES, algorithm="lloyd")
    single, singles = x.astype(np.float32), first.astype(np.float32)

    def fast() -> Any:
        found = faiss.Kmeans(COLUMNS, CLUSTERS, niter=MOVES, max_points_per_centroid=ROWS, min_points_per_centroid=1)
        found.train(single, init_centroids=singles)
        return found

    compare(f"{MOVES} moves {name}", ours, {"scikit-learn": partial(peer.fit, x), "faiss": fast}, times=2)
    ends = ours().inertia[-1], peer.fit(x).inertia_, nearest(x, fast().centroids.astype(float))[1].sum()
    sys.stdout.write(f"  inertia: {', '.join(f'{end:.8g}' for end in ends)}\n")


if __name__ == "__main__":
    faiss.omp_set_num_threads(1)
    sys.stdout.write(f"{'':36} {'rival':14} {'ours':>10} {'theirs':>10} {'ratio':>8}\n")
    rng = np.random.default_rng(0)
    fits("iris", datasets.load_iris().data, 3, 10, 300)
    fits("digits", datasets.load_digits().data, 10, 10, 300)
    fits("50000x20", rng.normal(size=(50_000, 20)) + 4 * rng.integers(0, 2, (50_000, 20)), 20, 3, 20)
    blobs = datasets.make_blobs(ROWS, COLUMNS, centers=50, cluster_std=4.0, center_box=(-10, 10), random_state=12)
    descents("blobs that overlap", blobs[0])
    descents("one normal density", rng.normal(size=(ROWS, COLUMNS)))
