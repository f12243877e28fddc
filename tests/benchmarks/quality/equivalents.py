"""Kernel machines, processes and networks beside those of scikit-learn with the same settings, on six public tables.

    python -m tests.benchmarks.quality.equivalents [algorithm …]

The tables and folds are those of the guide's page on choosing. Each line has the mean loss of ours and of the peer, and
the paired difference with its standard error. A one-class machine learns the most frequent class of the training rows;
its loss is 1 less the area under the curve by which it parts this class from the others on the test rows.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from sklearn import compose, metrics, neural_network, preprocessing, svm

from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.benchmarks.choosing import TABLES
from tests.benchmarks.paired import Array, Paired

from .__main__ import shown
from .contest import Line, fitted, framed_columns, joined, losses_of, sheet
from .peers import Peer, framed, process
from .tables import Split, Table

MACHINE = {"C": 1.0, "tol": 1e-3}
NETWORK = {"hidden_layers": [50], "activation": "relu", "l2": 1e-3, "batch_size": 50}
SKLEARN_NETWORK = {
    "hidden_layer_sizes": (50,),
    "activation": "relu",
    "alpha": 1e-3,
    "batch_size": 50,
    "random_state": 0,
}


def _of_standard_target() -> Any:
    network = neural_network.MLPRegressor(**SKLEARN_NETWORK)
    return compose.TransformedTargetRegressor(network, transformer=preprocessing.StandardScaler())


class Equivalent(NamedTuple):
    """An algorithm and a peer with the same settings."""

    algorithm: str
    params: dict[str, Any]
    peer: str
    make: Callable[[], Any]


CLASSES = [
    Equivalent("svm", MACHINE, "SVC", lambda: framed(svm.SVC(probability=True, random_state=0))),
    Equivalent(
        "svm",
        MACHINE | {"kernel": "linear"},
        "SVC, linear",
        lambda: framed(svm.SVC(kernel="linear", probability=True, random_state=0)),
    ),
    Equivalent("mlp", NETWORK, "MLPClassifier", lambda: framed(neural_network.MLPClassifier(**SKLEARN_NETWORK))),
]
NUMBERS = [
    Equivalent("svr", MACHINE | {"epsilon": 0.1, "scale_target": False}, "SVR", lambda: framed(svm.SVR(epsilon=0.1))),
    Equivalent("gaussian_process", {"kernel": "matern52"}, "GaussianProcess, Matern 5/2", process),
    Equivalent("mlp", NETWORK, "MLPRegressor", lambda: framed(_of_standard_target())),
]
"""Targets of the networks are standardised: ours does so itself."""
ONE_CLASS = "one_class_svm"
ALGORITHMS = sorted({one.algorithm for one in [*CLASSES, *NUMBERS]} | {ONE_CLASS})
SHARE = 0.1


def lines(name: str, algorithms: frozenset[str]) -> Iterator[Line]:
    """Those of one table. algorithms: those compared; none means all."""
    table = TABLES[name]
    splits = list(table.splits())
    for one in CLASSES if table.classes else NUMBERS:
        if algorithms and one.algorithm not in algorithms:
            continue
        ours = [fitted(one.algorithm, table, split, **one.params) for split in splits]
        theirs = joined(losses_of(Peer(one.peer, one.make), table, split) for split in splits)
        unfinished = sum(not each.converged for each in ours)
        for measure, losses in joined(each.losses for each in ours).items():
            pair = np.array(losses), np.array(theirs[measure])
            yield _line((one.algorithm, name, one.peer, measure), *pair, unfinished)
    if table.classes and (not algorithms or ONE_CLASS in algorithms):
        pair = np.array([_of_one_class(table, split) for split in splits]).T
        yield _line((ONE_CLASS, name, "OneClassSVM", "1 - AUC"), *pair, 0)


def _line(names: tuple[str, str, str, str], ours: Array, theirs: Array, unfinished: int) -> Line:
    """names: algorithm, table, peer and measure. ours, theirs: (J,) losses."""
    paired = Paired.of(ours, theirs, TABLES[names[1]].shared)
    return Line(*names, float(ours.mean()), float(theirs.mean()), paired, unfinished)


def _of_one_class(table: Table, split: Split) -> tuple[float, float]:
    """1 less the area under the curve, of ours and of the peer."""
    usual = Counter(split.train[table.target].to_pylist()).most_common(1)[0][0]
    rows = split.train.filter(pc.equal(split.train[table.target], usual)).drop_columns([table.target])
    new, others = split.test.drop_columns([table.target]), np.array(split.test[table.target].to_pylist()) != usual
    requested = {"algorithm": {"name": ONE_CLASS, "nu": SHARE}, "features": rows.column_names}
    spec = TrainSpec.model_validate(requested | {"task": "density", "validation": {"test_fraction": 0}})
    trained = train(plan(spec, sheet(rows), rows.num_rows), rows, data_digest="sha256:0")
    ours = decode(trained.blob).predict(new).values
    peer = framed(svm.OneClassSVM(nu=SHARE)).fit(framed_columns(rows))
    theirs = peer.decision_function(framed_columns(new))
    return tuple(1 - float(metrics.roc_auc_score(others, -np.asarray(values))) for values in (ours, theirs))


def main(chosen: frozenset[str] = frozenset()) -> list[Line]:
    found = []
    for name in TABLES:
        for line in lines(name, chosen):
            print(shown(line), flush=True)
            found.append(line)
    return found


if __name__ == "__main__":
    main(frozenset(sys.argv[1:]))
