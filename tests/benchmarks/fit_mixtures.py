"""CPU milliseconds of Gaussian mixtures beside scikit-learn's, on one thread, from the same start.

Run `python tests/benchmarks/fit_mixtures.py`; the last numbers are ours over theirs, and the mean log densities of both
after 30 steps.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
from sklearn.mixture import GaussianMixture

from app.ml.numerics.density.gaussian_mixture import Components, Options, em, log_density, log_joint

STEPS = 30
FORMS = {"full": "full", "diagonal": "diag", "spherical": "spherical"}


def best(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    spent = []
    for _ in range(times):
        begun = time.process_time()
        found = run()
        spent.append(1e3 * (time.process_time() - begun))
    return min(spent), found


def compare(kind: str, n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(0)
    x = 3 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    deviations = np.broadcast_to(x.std(axis=0), (k, d)) if kind != "spherical" else np.full((k, d), x.std())
    whitening = np.stack([np.diag(1 / row) for row in deviations]) if kind == "full" else 1 / deviations[:, None]
    start = Components(np.full(k, 1 / k), x[:k].copy(), np.ascontiguousarray(whitening))
    given = {"full": np.square(whitening), "diagonal": deviations**-2.0, "spherical": deviations[:, 0] ** -2}[kind]
    own = {"weights_init": start.shares, "means_init": start.means, "precisions_init": given}
    rival = GaussianMixture(k, covariance_type=FORMS[kind], tol=0, reg_covar=1e-9, max_iter=STEPS, **own)
    options, weights = Options(kind, 1e-9, STEPS, 0.0), np.ones(n)
    em(x[:k], weights[:k], start, options)  # compiles
    ours, run = best(lambda: em(x, weights, start, options), 3)
    theirs, fitted = best(lambda: rival.fit(x), 2)
    line = f"{kind} {n}x{d} k={k}"
    sys.stdout.write(f"{line:30} {ours:9.0f} {theirs:9.0f} {ours / theirs:6.2f} {run.curve[-1]:14.8f}")
    sys.stdout.write(f" {fitted.score(x):14.8f}\n")
    ours, _ = best(lambda: log_density(log_joint(run.components, x)), 3)
    theirs, _ = best(lambda: fitted.score_samples(x), 3)
    sys.stdout.write(f"{'  log densities':30} {ours:9.0f} {theirs:9.0f} {ours / theirs:6.2f}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.stdout.write(f"{'':30} {'ours':>9} {'theirs':>9} {'ratio':>6} {'ours':>14} {'theirs':>14}\n")
    for form in FORMS:
        compare(form, 100_000, 10, 10)
    compare("full", 5_000, 4, 3)
