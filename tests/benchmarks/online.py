"""Learners that take row after row beside scikit-learn's, and a training beyond memory beside one within.

    python tests/benchmarks/online.py [rows of the large table, in millions]

CPU time, the least of several turns, on one thread. `ratio`: how many times faster ours is. The large table is made of
numbers without end (60 MB of them, over and over), lies in a mapped file, and is learned within 400 MB of memory.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn import linear_model
from sklearn.datasets import make_classification

from app.ml.algorithms import linear_sgd, perceptron
from app.ml.contract.algorithm import Context, Data, Task
from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from workers.mapped_dataset import spooled

TURNS = 5
MEMORY = 400 << 20


def least(turn: Callable[[], Any]) -> float:
    """Seconds of CPU."""
    times = []
    for _ in range(TURNS):
        begun = time.process_time()
        turn()
        times.append(time.process_time() - begun)
    return min(times)


def one_row_after_the_other() -> None:
    x, y = make_classification(22_000, 20, n_informative=10, n_redundant=5, random_state=22)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    data, context = Data.of(Task.CLASSIFICATION, x, y), Context.of(0)
    learners = {
        "perceptron": (perceptron, perceptron.Perceptron(epochs=1), linear_model.Perceptron()),
        "logistic": (
            linear_sgd,
            linear_sgd.LinearSGD(solver="online", epochs=1),
            linear_model.SGDClassifier("log_loss"),
        ),
        "hinge": (
            linear_sgd,
            linear_sgd.LinearSGD(solver="online", epochs=1, class_loss="hinge"),
            linear_model.SGDClassifier("hinge"),
        ),
    }
    print(f"{'one batch of 22,000 rows of 20':34}{'ours rows/s':>14}{'theirs rows/s':>15}{'ratio':>8}")
    for name, (algorithm, params, peer) in learners.items():
        state = algorithm.fit(params, data, context).state
        peer.partial_fit(x, y, classes=[0, 1])
        ours = least(lambda a=algorithm, p=params, s=state: a.update(p, s, data, context))
        theirs = least(lambda p=peer: p.partial_fit(x, y))
        print(f"{name:34}{len(x) / ours:14,.0f}{len(x) / theirs:15,.0f}{theirs / ours:8.1f}")
    rows = [data.take(np.array([i])) for i in range(2000)]
    for name, (algorithm, params, peer) in learners.items():
        state = algorithm.fit(params, data, context).state
        ours = least(lambda a=algorithm, p=params, s=state: [a.update(p, s, row, context) for row in rows])
        theirs = least(lambda p=peer: [p.partial_fit(row.x, row.y) for row in rows])
        print(f"{name + ', a call per row':34}{2000 / ours:14,.0f}{2000 / theirs:15,.0f}{theirs / ours:8.1f}")


def beyond_memory(millions: float) -> None:
    rng = np.random.default_rng(0)
    rows, d = 350_000, 20
    x = rng.normal(size=(rows, d))
    score = x @ np.linspace(-1, 1, d) + 0.5 * rng.normal(size=rows)
    part = pa.table({f"x{j}": column for j, column in enumerate(x.T)} | {"score": score, "sign": score > 0})
    names = [f"x{j}" for j in range(d)]
    kinds = dict.fromkeys([*names, "score"], "numeric") | {"sign": "boolean"}
    sheet = [TableColumn(name, kind, 0, 2 if name == "sign" else None) for name, kind in kinds.items()]
    whole = spooled(part for _ in range(max(1, round(millions * 1e6 / rows))))
    del x, score, part
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    print(f"\n{whole.num_rows:,} rows of {d}, {whole.nbytes / 1e9:.1f} GB, within {MEMORY >> 20} MiB")
    for name, target in (("linear_sgd", "score"), ("perceptron", "sign")):
        spec = TrainSpec.model_validate({"algorithm": {"name": name, "epochs": 1}, "target": target, "features": names})
        begun = time.process_time()
        trained = train(plan(spec, sheet, whole.num_rows, MEMORY), whole, data_digest="")
        spent = time.process_time() - begun
        metric = trained.report.test[0 if target == "sign" else 2]
        each = 1e9 * spent / whole.num_rows / d
        print(f"{name:34}{spent:8.1f} s{each:8.1f} ns a number   {metric.name} {metric.display}")


def main() -> None:
    warnings.simplefilter("ignore")
    one_row_after_the_other()
    beyond_memory(float(sys.argv[1]) if len(sys.argv) > 1 else 10)


if __name__ == "__main__":
    main()
