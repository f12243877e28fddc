"""CPU seconds and errors of networks beside scikit-learn's, both in 32 bits, on one thread.

Run `python tests/benchmarks/fit_mlp.py`; a ratio is ours over theirs. The goals are at most 0.6 for 20 epochs of 100
units on 50,000 x 50, and 20 µs for one row of a network of two layers of 100.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import warnings

import numpy as np
import sklearn
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from app.ml.algorithms import mlp
from app.ml.contract.algorithm import Context, Data, Task

ROWS, TEST, COLUMNS, EPOCHS, TIMES, CALLS = 50_000, 5000, 50, 20, 3, 2000


def best(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of the fastest run, and its result."""
    spent = []
    for _ in range(TIMES):
        begun = time.process_time()
        result = run()
        spent.append(time.process_time() - begun)
    return min(spent), result


def row_seconds(predict: Callable[[Any], Any], x: Any) -> float:
    """CPU seconds of the prediction of one row."""
    predict(x[:1])
    return best(lambda: [predict(x[:1]) for _ in range(CALLS)])[0] / CALLS


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    made = {"n_informative": 30, "n_redundant": 10, "n_classes": 10, "n_clusters_per_class": 1, "random_state": 11}
    x, y = make_classification(ROWS + TEST, COLUMNS, **made)
    x = StandardScaler().fit_transform(x)
    data = Data.of(Task.CLASSIFICATION, x[:ROWS], y[:ROWS].astype(float))
    sys.stdout.write(f"numpy {np.__version__}, scikit-learn {sklearn.__version__}, {ROWS} x {COLUMNS}\n")
    for activation in ("relu", "tanh"):
        own = mlp.MLP(activation=activation, epochs=EPOCHS, n_iter_no_change=1000)
        mlp.fit(own.model_copy(update={"epochs": 1}), data.take(np.arange(500)), Context.of(0))  # compiles the steps
        seconds, found = best(lambda own=own: mlp.fit(own, data, Context.of(0)))
        narrow = x.astype(np.float32)
        peer = MLPClassifier((100,), activation=activation, max_iter=EPOCHS, n_iter_no_change=1000, random_state=0)
        theirs, fitted = best(lambda peer=peer, narrow=narrow: peer.fit(narrow[:ROWS], y[:ROWS]))
        accuracy = (mlp.predict(own, found.state, x[ROWS:]).argmax(axis=1) == y[ROWS:]).mean()
        rival = fitted.score(narrow[ROWS:], y[ROWS:])
        line = f"ours {seconds:6.3f} s, accuracy {accuracy:.4f}; theirs {theirs:6.3f} s, accuracy {rival:.4f}"
        sys.stdout.write(f"fit {activation:5}: {line}; ratio {seconds / theirs:.3f}\n")
    few = slice(0, 2000)
    for activation in ("relu", "tanh"):
        own = mlp.MLP(hidden_layers=[100, 100], activation=activation, epochs=2)
        state = mlp.fit(own, data.take(np.arange(2000)), Context.of(0)).state
        peer = MLPClassifier((100, 100), activation=activation, max_iter=2, random_state=0).fit(x[few], y[few])
        ours = row_seconds(lambda row, own=own, state=state: mlp.predict(own, state, row), x)
        theirs = row_seconds(peer.predict_proba, x)
        line = f"ours {1e6 * ours:6.1f} µs; theirs {1e6 * theirs:6.1f} µs; ratio {ours / theirs:.3f}"
        sys.stdout.write(f"one row, {activation:5}: {line}\n")
