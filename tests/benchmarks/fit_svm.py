"""CPU seconds of our support vector machines beside libsvm's and liblinear's, on one thread.

Run `python tests/benchmarks/fit_svm.py`; a ratio is ours over theirs in the same run. Goals: RBF with C = 1 at most
0.4, with C = 100 0.7, regression and one class 0.5, linear 0.1 of the squared hinge; predictions of 10,000 rows below
1, and one row in at most 60 µs. Both have a cache of 200 MiB and the tolerance 1e-3. `fit_svm.py many` takes minutes.
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
from sklearn import svm as peers
from sklearn.datasets import make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning

from app.ml.algorithms import one_class_svm, svm, svr
from app.ml.contract.algorithm import Context, Data, Task

ROWS, MANY, TIMES, CACHE = 10_000, 100_000, 2, 200.0


def seconds(run: Callable[[], Any], times: int = TIMES) -> float:
    found = []
    for _ in range(times):
        begun = time.process_time()
        run()
        found.append(time.process_time() - begun)
    return min(found)


def standardised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def line(name: str, ours: float, theirs: float, more: str = "") -> None:
    sys.stdout.write(f"{name:24} ours {ours:8.4f}  theirs {theirs:8.4f}  ratio {ours / theirs:.2f}  {more}\n")
    sys.stdout.flush()


def classes(cost: float) -> tuple[Any, Any, Any]:
    x, y = make_classification(ROWS + 2000, 20, n_informative=10, n_redundant=5, random_state=9)
    x, y = standardised(x)[:ROWS], y[:ROWS]
    data, params = Data.of(Task.CLASSIFICATION, x, y), svm.SVM(C=cost, cv=None)
    gamma = 1 / (x.shape[1] * x.var())
    state = svm.fit(params, data, Context.of(0)).state
    peer = peers.SVC(C=cost, gamma=gamma, cache_size=CACHE)
    ours = seconds(lambda: svm.fit(params, data, Context.of(0)))
    theirs = seconds(lambda: peer.fit(x, y))
    agree = np.mean((svm.decision(params, state, x)[:, 0] > 0) == peer.predict(x))
    vectors = f"vectors {len(state.machine.places)} and {len(peer.support_)}, same classes {agree:.4f}"
    line(f"rbf C={cost:g}", ours, theirs, vectors)
    return (params, state), peer, x


def prediction(model: Any, peer: Any, x: Any) -> None:
    ours = seconds(lambda: svm.decision(*model, x))
    line("predict 10,000 rows", ours, seconds(lambda: peer.decision_function(x)))
    one, count = np.ascontiguousarray(x[:1]), 1000
    ours = seconds(lambda: [svm.predict(*model, one) for _ in range(count)]) / count
    theirs = seconds(lambda: [peer.predict(one) for _ in range(count)]) / count
    line("predict 1 row, in ms", 1e3 * ours, 1e3 * theirs)


def numbers() -> None:
    x, y = make_friedman1(ROWS, 20, noise=1.0, random_state=10)
    x = standardised(x)
    data, params = Data.of(Task.REGRESSION, x, y), svr.SVR(scale_target=False)
    state = svr.fit(params, data, Context.of(0)).state
    peer = peers.SVR(cache_size=CACHE)
    ours, theirs = seconds(lambda: svr.fit(params, data, Context.of(0))), seconds(lambda: peer.fit(x, y))
    line("svr", ours, theirs, f"vectors {len(state.machine.places)} and {len(peer.support_)}")


def density() -> None:
    x = standardised(make_classification(ROWS, 20, n_informative=10, n_redundant=5, random_state=9)[0])
    data, params = Data.of(Task.DENSITY, x), one_class_svm.OneClassSVM()
    state = one_class_svm.fit(params, data, Context.of(0)).state
    peer = peers.OneClassSVM(nu=0.1, cache_size=CACHE)
    ours, theirs = seconds(lambda: one_class_svm.fit(params, data, Context.of(0))), seconds(lambda: peer.fit(x))
    line("one class, nu=0.1", ours, theirs, f"vectors {len(state.machine.places)} and {len(peer.support_)}")


def linear() -> None:
    """liblinear takes the squared hinge by default, of which the loss is another one, and the hinge on request, which
    is ours: then its value is beside ours. Its intercept is penalised too.
    """
    x, y = make_classification(200_000, 50, n_informative=20, n_redundant=10, random_state=3)
    x = standardised(x)
    data, params = Data.of(Task.CLASSIFICATION, x, y), svm.SVM(kernel="linear", cv=None)
    state = svm.fit(params, data, Context.of(0)).state
    summary: Any = svm.summary(params, state)
    ours, own = seconds(lambda: svm.fit(params, data, Context.of(0))), svm.decision(params, state, x)[:, 0]
    for loss, times in (("squared_hinge", TIMES), ("hinge", 1)):
        peer = peers.LinearSVC(loss=loss)
        theirs = seconds(lambda peer=peer: peer.fit(x, y), times)
        values = {"ours": (state.machine.weights[0], own), "theirs": (peer.coef_[0], peer.decision_function(x))}
        more = [f"duality gap {summary['duality_gap']:.1e}"]
        for name, (weights, decided) in values.items():
            objective = weights @ weights / 2 + np.maximum(0, 1 - np.where(y == 1, decided, -decided)).sum()
            more.append(f"{name}: hinge objective {objective:.2f}, accuracy {np.mean((decided > 0) == y):.4f}")
        line(f"linear, {loss}", ours, theirs, ", ".join(more))


def many() -> None:
    """Machines of 100,000 rows, without a peer: CPU seconds, and the resident memory beyond the rows at most."""
    x, y = make_classification(MANY, 20, n_informative=10, n_redundant=5, random_state=9)
    x = standardised(x)
    target = x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + 0.5 * np.random.default_rng(0).normal(size=MANY)
    classes, numbers = Data.of(Task.CLASSIFICATION, x, y), Data.of(Task.REGRESSION, x, target)
    machines: list[tuple[str, Any, Any, Data]] = [
        ("svm", svm, svm.SVM(cv=None), classes),
        ("one_class_svm", one_class_svm, one_class_svm.OneClassSVM(), Data.of(Task.DENSITY, x)),
        ("svr", svr, svr.SVR(scale_target=False), numbers),
    ]
    for _, module, params, data in machines:
        module.fit(params, data.take(np.arange(500)), Context.of(0))  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, module, params, data in machines:
        begun = time.process_time()
        found = module.fit(params, data, Context.of(0))
        spent, more = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        vectors = len(found.state.machine.places)
        sys.stdout.write(f"{name:14} {MANY} rows: {spent:.0f} s, {more / 1024:.0f} MiB, {vectors} vectors\n")
        sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the hinge
    sys.stdout.write(f"numpy {np.__version__}, scikit-learn {sklearn.__version__}\n")
    chosen = sys.argv[1:] or ["rbf", "svr", "density", "linear"]
    if "rbf" in chosen:
        prediction(*classes(1.0))
        classes(100.0)
    if "svr" in chosen:
        numbers()
    if "density" in chosen:
        density()
    if "linear" in chosen:
        linear()
    if "many" in chosen:
        many()
