"""CPU seconds and memory of our spectral embeddings beside scikit-learn's, on one thread.

Run `python tests/benchmarks/fit_spectral.py`; a ratio is ours over the faster of scikit-learn's solvers, both with the
graph of 10 nearest neighbours of 5,000 rows; the goal is at most 1. `python tests/benchmarks/fit_spectral.py large`
clusters 200,000 rows and prints the highest resident size, of which the goal is at most 4 GiB.
"""

import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
import sklearn
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

from app.ml.algorithms.spectral import Spectral, fit
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.numerics.graphs.laplacian import smallest
from app.ml.numerics.graphs.similarity_graph import GraphParams, made

ROWS, LARGE, CLUSTERS, EIGENVALUES, TIMES = 5000, 200_000, 8, 12, 3


def rows(n: int, columns: int) -> Any:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, columns)) + 3 * rng.normal(size=(CLUSTERS, columns))[np.arange(n) % CLUSTERS]


def seconds(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(TIMES):
        begun = time.process_time()
        run()
        times.append(time.process_time() - begun)
    return min(times)


def ours(x: Any) -> Any:
    return smallest(made(GraphParams(), Data.of(Task.CLUSTERING, x)), EIGENVALUES, normalised=True)


def theirs(x: Any, solver: str) -> Any:
    nearest = kneighbors_graph(x, 10, include_self=False)
    graph = nearest.maximum(nearest.T)
    return spectral_embedding(graph, n_components=CLUSTERS, eigen_solver=solver, random_state=0, drop_first=False)


def compare() -> None:
    for columns in (2, 5, 20):
        x = rows(ROWS, columns)
        own = seconds(lambda x=x: ours(x))
        others = {solver: seconds(lambda x=x, s=solver: theirs(x, s)) for solver in ("arpack", "lobpcg")}
        listed = "  ".join(f"{solver} {time:.3f}" for solver, time in others.items())
        sys.stdout.write(f"{columns:3} columns  ours {own:.3f}  {listed}  ratio {own / min(others.values()):.2f}\n")


def large() -> None:
    for columns in (2, 8):
        data, begun = Data.of(Task.CLUSTERING, rows(LARGE, columns)), time.process_time()
        fit(Spectral(n_clusters=CLUSTERS), data, Context.of(0))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        sys.stdout.write(f"{columns:3} columns  {time.process_time() - begun:.1f} s  {peak:.2f} GiB at most so far\n")


if __name__ == "__main__":
    sys.stdout.write(f"numpy {np.__version__}, scikit-learn {sklearn.__version__}\n")
    warnings.simplefilter("ignore")
    large() if "large" in sys.argv else compare()
