"""CPU seconds of our linkages beside scipy's, fastcluster's and scikit-learn's, on one thread, in one run.

Needs fastcluster. Run `python tests/benchmarks/fit_linkage.py`; the last number is ours over the fastest of theirs.
"""

import os
import sys
import time

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import fastcluster
import numpy as np
import scipy.cluster.hierarchy
from sklearn.cluster import AgglomerativeClustering

from app.ml.numerics.clustering.linkage import linkage

ROWS, COLUMNS = 10_000, 10


def best(run, times=3):
    spent = []
    for _ in range(times):
        begun = time.process_time()
        run()
        spent.append(time.process_time() - begun)
    return min(spent)


if __name__ == "__main__":
    x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    weights = np.ones(ROWS)
    sys.stdout.write(f"{'':10} {'ours':>8} {'scipy':>12} {'fastcluster':>12} {'scikit-learn':>12} {'ratio':>8}\n")
    for kind in ("single", "average", "complete", "ward"):
        linkage(x[:50], weights[:50], kind, 2.0)
        ours = best(lambda kind=kind: linkage(x, weights, kind, 2.0))
        theirs = [
            best(lambda kind=kind: scipy.cluster.hierarchy.linkage(x, kind)),
            best(lambda kind=kind: fastcluster.linkage(x, kind)),
            best(lambda kind=kind: AgglomerativeClustering(linkage=kind).fit(x)),
        ]
        sys.stdout.write(f"{kind:10} {ours:8.3f} {''.join(f'{t:12.3f} ' for t in theirs)} {ours / min(theirs):8.2f}\n")
