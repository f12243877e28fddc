"""CPU seconds of a step of SMACOF beside scikit-learn's, on one thread, and the stress that whole fits end with.

Run `python tests/benchmarks/fit_maps.py`; a ratio is ours over theirs. The goal is at most 0.5 for a step on 2,000
rows. A step is the difference of two runs, in which the start and whatever is done once cancel.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
import sklearn
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import smacof as peer

from app.ml.numerics.maps.map_starts import classical_start
from app.ml.numerics.maps.stress_majorisation import KnownPairs

ROWS, COLUMNS = 2_000, 10
SHORT, LONG = 5, 45
TIMES = 3


def per_step(run: Callable[[int], object]) -> float:
    """CPU seconds: the fastest of the long runs less the fastest of the short ones."""
    fastest = []
    for steps in (SHORT, LONG):
        spent = []
        for _ in range(TIMES):
            begun = time.process_time()
            run(steps)
            spent.append(time.process_time() - begun)
        fastest.append(min(spent))
    return (fastest[1] - fastest[0]) / (LONG - SHORT)


if __name__ == "__main__":
    warnings.simplefilter("ignore", (ConvergenceWarning, FutureWarning))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS))
    given = cdist(x, x)
    gaps = np.triu(rng.random(given.shape) < 1 / 3, 1)
    partial = np.where(gaps | gaps.T, np.nan, given)
    whole, some = (KnownPairs(one, np.ones(ROWS)) for one in (given, partial))
    start = classical_start(whole, 2, rng)
    theirs = per_step(lambda steps: peer(given, init=start, n_init=1, max_iter=steps, eps=0, normalized_stress=False))
    sys.stdout.write(f"numpy {np.__version__}, scikit-learn {sklearn.__version__}, {ROWS} rows\n")
    sys.stdout.write(f"theirs             {1e3 * theirs:7.2f} ms a step\n")
    for name, problem in (("ours", whole), ("ours, a third gone", some)):
        own = per_step(lambda steps, problem=problem: problem.majorised(start, 0.0, steps))
        sys.stdout.write(f"{name:18} {1e3 * own:7.2f} ms a step, ratio {own / theirs:.2f}\n")
    ends = whole.majorised(start, 1e-6, 500)
    _, stress = peer(given, init=start, n_init=1, max_iter=500, eps=1e-9, normalized_stress=False)
    sys.stdout.write(f"stress: ours {ends.stress[-1]:.6g} after {len(ends.stress) - 1} steps, theirs {stress:.6g}\n")
