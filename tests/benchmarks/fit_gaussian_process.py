"""Gaussian processes beside scikit-learn, parameters learned, on one thread, in seconds of CPU.

Run `python tests/benchmarks/fit_gaussian_process.py [rows …]`: by default 500 and 2,000 rows of 4 columns. Both learn
amplitude, length scales, noise of a Matérn kernel of order 5/2; ours from several starts compared
on 300 rows, theirs from one. The ratio is our time in parts of theirs; the errors are those of 500 further rows.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from app.ml.algorithms import gaussian_process
from app.ml.contract.algorithm import Context, Data, Task

TEST = 500


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def race(rows: int) -> str:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows + TEST, 4))
    noise = 0.2 * rng.normal(size=len(x))
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 / 3 + 0.3 * np.cos(x[:, 2] * x[:, 3]) + noise
    data, params = Data.of(Task.REGRESSION, x[:rows], y[:rows]), gaussian_process.GaussianProcess()
    gaussian_process.fit(params, data.take(np.arange(20)), Context.of(0))  # compiles
    ours, own = timed(lambda: gaussian_process.fit(params, data, Context.of(0)).state)
    kernel = kernels.ConstantKernel() * kernels.Matern(np.ones(4), nu=2.5) + kernels.WhiteKernel(0.1)
    peer = GaussianProcessRegressor(kernel, normalize_y=True)
    theirs, other = timed(lambda: peer.fit(x[:rows], y[:rows]))
    predictions = gaussian_process.predict(params, ours, x[rows:]), theirs.predict(x[rows:])
    errors = [float(np.sqrt(np.mean((each - y[rows:]) ** 2))) for each in predictions]
    return (
        f"{rows} rows: ours {own:.2f} s, theirs {other:.2f} s, ratio {own / other:.2f}; "
        f"RMSE {errors[0]:.4f}, {errors[1]:.4f}"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # length scales at their bounds
    for wanted in sys.argv[1:] or ["500", "2000"]:
        sys.stdout.write(f"{race(int(wanted))}\n")
