"""CPU seconds of learned metrics beside scikit-learn and metric-learn, and the accuracy of neighbours in them.

Run `python tests/benchmarks/fit_metrics.py`, on one thread. Needs metric-learn 0.7 (`pip install --no-deps
metric-learn`), which no extra brings: it is of 2023 and names a parameter of scikit-learn that is gone, which
`_renamed` gives back. Rows of the digits, 7 in 10 to learn from; the ratio is ours over theirs. Goals: `nca` at most
0.6 of scikit-learn, `lmnn` at most 0.2 of metric-learn with its defaults, at no lower accuracy.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
import sklearn.utils
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from app.ml.algorithms.metric_learning import MetricLearning, fit, predict
from app.ml.contract.algorithm import Context, Data, TargetKind, Task

TURNS = 3
Map = Callable[[Any], Any]


def _renamed(check: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arrays: Any, **options: Any) -> Any:
        if "force_all_finite" in options:
            options["ensure_all_finite"] = options.pop("force_all_finite")
        return check(*arrays, **options)

    return run


for name in ("check_array", "check_X_y"):
    renamed = _renamed(getattr(sklearn.utils, name))
    setattr(sklearn.utils, name, renamed)
    setattr(sklearn.utils.validation, name, renamed)

from metric_learn import LMNN  # noqa: E402 - after the parameter is there again


def ours(method: str, x: Any, y: Any) -> Map:
    params = MetricLearning(method=method)
    state = fit(params, Data.of(Task.PROJECTION, x, y, target=TargetKind.CLASSES), Context.of(0)).state
    return lambda rows: predict(params, state, rows)


def nca(x: Any, y: Any) -> Map:
    return NeighborhoodComponentsAnalysis(init="identity").fit(x, y).transform


def lmnn(x: Any, y: Any) -> Map:
    return LMNN().fit(x, y).transform


def timed(make: Callable[[], Map], turns: int) -> tuple[float, Map]:
    """The least of several turns, and the map."""
    spent = []
    for _ in range(turns):
        begun = time.process_time()
        found = make()
        spent.append(time.process_time() - begun)
    return min(spent), found


def main() -> None:
    x, y = datasets.load_digits(return_X_y=True)
    train, test, known, expected = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    mean = train.mean(axis=0)
    unit = np.sqrt(train.var(axis=0)[train.std(axis=0) > 0].mean())
    train, test = (train - mean) / unit, (test - mean) / unit

    def accuracy(z: Map) -> float:
        return float(KNeighborsClassifier(3).fit(z(train), known).score(z(test), expected))

    sys.stdout.write(f"{'plain':18}{'':30}{accuracy(lambda rows: rows):10.4f}\n")
    for method, rival, turns in (("nca", nca, TURNS), ("lmnn", lmnn, 1)):
        mine, own = timed(lambda method=method: ours(method, train, known), TURNS)
        theirs, other = timed(lambda rival=rival: rival(train, known), turns)
        sys.stdout.write(f"{method:18}{mine:10.2f}{theirs:10.2f}{mine / theirs:10.2f}")
        sys.stdout.write(f"{accuracy(own):10.4f}{accuracy(other):10.4f}\n")


if __name__ == "__main__":
    main()
