"""CPU milliseconds of our clusterings beside scikit-learn's, on one thread.

Run `python tests/benchmarks/fit_clusters.py`; the last number is ours over theirs.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
from sklearn import cluster

from app.ml.algorithms import kmeans
from app.ml.contract.algorithm import Context, Data, Task


def best(run: Callable[[], Any], times: int) -> float:
    spent = []
    for _ in range(times):
        begun = time.process_time()
        run()
        spent.append(1e3 * (time.process_time() - begun))
    return min(spent)


def compare(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], times: int = 3) -> None:
    mine, rival = best(ours, times), best(theirs, times)
    sys.stdout.write(f"{name:44} {mine:10.2f} {rival:10.2f} {mine / rival:8.2f}\n")


def clusters(rng: np.random.Generator, n: int, d: int, k: int) -> None:
    x = rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, size=(n, d))
    params = kmeans.KMeans(n_clusters=k, n_init=3, max_iter=20)
    rival = cluster.KMeans(k, n_init=3, random_state=0, tol=0, max_iter=20).fit(x)
    fit = partial(kmeans.fit, params, Data.of(Task.CLUSTERING, x), Context.of(0))
    compare(f"k-means {n}x{d} k={k}", fit, partial(rival.fit, x))
    state = fit().state
    for rows in (1, n):
        ours = partial(kmeans.predict, params, state, x[:rows])
        compare(f"  assign {rows}", ours, partial(rival.predict, x[:rows]), times=10)


if __name__ == "__main__":
    sys.stdout.write(f"{'':44} {'ours':>10} {'theirs':>10} {'ratio':>8}\n")
    for shape in ((150, 4, 3), (1_797, 64, 10), (50_000, 20, 20)):
        clusters(np.random.default_rng(0), *shape)
