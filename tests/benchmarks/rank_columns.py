"""CPU seconds of measures of dependence beside scikit-learn.

Run `python tests/benchmarks/rank_columns.py`, on one thread. 20,000 rows and 50 columns, all columns by one measure:
best of three seconds, ours and theirs, their ratio, and the largest difference of the values in nats. Goals: nearest
rows at most 0.2 of scikit-learn, bins at most 0.5.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
from sklearn.datasets import make_classification
from sklearn.feature_selection import f_classif, mutual_info_classif, mutual_info_regression, r_regression
from sklearn.preprocessing import KBinsDiscretizer

from app.ml.numerics.dependence.class_contrast import correlation_ratio
from app.ml.numerics.dependence.contingency import mutual_information
from app.ml.numerics.dependence.correlation import pearson
from app.ml.numerics.dependence.nearest_information import of_classes, of_numbers
from app.ml.numerics.dependence.quantile_bins import quantile_bins

BINS, REPEATS = 16, 3


def best(run: Callable[[], Any]) -> tuple[float, Any]:
    """Least CPU seconds of some runs, after one that compiles, and the result."""
    found, seconds = run(), []
    for _ in range(REPEATS):
        begun = time.process_time()
        run()
        seconds.append(time.process_time() - begun)
    return min(seconds), np.asarray(found)


def binned(x: Any, y: Any) -> Any:
    how = KBinsDiscretizer(BINS, encode="ordinal", strategy="quantile", subsample=None, quantile_method="linear")
    codes = how.fit_transform(x)
    return mutual_info_classif(codes, y, discrete_features=True)


def ours_binned(x: Any, y: Any) -> Any:
    return [mutual_information(quantile_bins(column, BINS), y).value for column in x.T]


def main() -> None:
    x, y = make_classification(20_000, 50, n_informative=10, n_redundant=10, n_classes=3, random_state=21)
    numbers = x[:, 0] + x[:, 1] ** 2 + np.random.default_rng(0).normal(size=len(x))
    cases = {
        "nearest rows, classes": (
            lambda: [of_classes(column, y, 3).value for column in x.T],
            lambda: mutual_info_classif(x, y, random_state=0),
        ),
        "nearest rows, numbers": (
            lambda: [of_numbers(column, numbers, 3).value for column in x.T],
            lambda: mutual_info_regression(x, numbers, random_state=0),
        ),
        "bins, classes": (lambda: ours_binned(x, y), lambda: binned(x, y)),
        "correlation": (
            lambda: [pearson(column, numbers).value for column in x.T],
            lambda: r_regression(x, numbers),
        ),
        "correlation ratio": (
            lambda: [correlation_ratio(column, y).value ** 2 for column in x.T],
            lambda: _share(f_classif(x, y)[0], len(x), 3),
        ),
    }
    for name, (ours, theirs) in cases.items():
        (own, found), (other, expected) = best(ours), best(theirs)
        apart = np.abs(found - expected).max()
        sys.stdout.write(f"{name:24} {own:7.3f} s {other:7.3f} s  {own / other:6.3f}  {apart:.1e}\n")


def _share(f: Any, n: int, k: int) -> Any:
    """η² of a statistic F."""
    return f * (k - 1) / (f * (k - 1) + n - k)


if __name__ == "__main__":
    main()
