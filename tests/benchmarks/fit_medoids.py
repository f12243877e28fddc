"""CPU seconds and losses of k-median and k-medoids beside the package kmedoids, distances included, on one thread.

Needs the package kmedoids. Run `python tests/benchmarks/fit_medoids.py`; a ratio is ours over theirs. The goal is at
most 1 for 5,000 rows and 20 clusters, each with one start; the second line of ours has the default number of starts.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import kmedoids as rival
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

from app.ml.algorithms import kmedian, kmedoids
from app.ml.contract.algorithm import Context, Data, Task

ROWS, COLUMNS, CLUSTERS = 5_000, 10, 20
TIMES = 5
POWERS = {kmedian: 1, kmedoids: 2}


def best(run: Callable[[], float]) -> tuple[float, float]:
    """CPU seconds of the fastest run, and its loss."""
    spent = []
    for _ in range(TIMES):
        begun = time.process_time()
        loss = run()
        spent.append(time.process_time() - begun)
    return min(spent), loss


def ours(algorithm: Any, data: Data, starts: int) -> float:
    params = algorithm.ALGORITHM.params(n_clusters=CLUSTERS, n_init=starts)
    return float(algorithm.fit(params, data, Context.of(0)).state.losses.sum())


def theirs(x: Any, power: int) -> float:
    far = pairwise_distances(x)
    return float(rival.fasterpam(far if power == 1 else far**2, CLUSTERS, random_state=0, n_cpu=1).loss)


if __name__ == "__main__":
    x, _ = make_blobs(ROWS, COLUMNS, centers=CLUSTERS, cluster_std=3.0, random_state=14)
    data, few = Data.of(Task.CLUSTERING, x), Data.of(Task.CLUSTERING, x[:100])
    sys.stdout.write(f"numpy {np.__version__}, kmedoids {version('kmedoids')}, {ROWS} x {COLUMNS}, k = {CLUSTERS}\n")
    for algorithm, power in POWERS.items():
        ours(algorithm, few, 1)  # what is compiled at the first call is not counted
        seconds, loss = best(partial(theirs, x, power))
        name = algorithm.__name__.rpartition(".")[2]
        sys.stdout.write(f"{name:9} theirs {seconds:8.3f} s, loss {loss:.6g}\n")
        for starts in (1, algorithm.ALGORITHM.params().n_init):
            mine, own = best(partial(ours, algorithm, data, starts))
            ratio = f"ratio {mine / seconds:.2f}"
            sys.stdout.write(f"{'':9} ours   {mine:8.3f} s, loss {own:.6g}, starts {starts}, {ratio}\n")
