"""Neighbours, trees, support vectors, networks, processes and class densities beside those of scikit-learn.

Four fifths of the rows are learned from; the quality is that of predictions of the others.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import ensemble, gaussian_process, naive_bayes, neighbors, neural_network, tree
from sklearn import svm as peer_svm

from app.ml.algorithms import decision_tree, generative_bayes, knn, mlp, random_forest, svm, svr
from app.ml.algorithms import gaussian_process as our_process
from app.ml.contract.algorithm import Data, Task
from tests.benchmarks.shapes.case import Case, Measure, Side
from tests.benchmarks.shapes.fits import fit, module_of
from tests.benchmarks.shapes.tables import Shape, Table, grid

SHARE_LEARNED = 0.8
SHARE_CORRECT = Measure(0.0, "higher", absolute=0.02)
SHARE_EXPLAINED = Measure(0.0, "higher", absolute=0.03)
EPOCHS = 20
ROWS_OF_PREDICTIONS = 10_000


class Contest(NamedTuple):
    algorithm: str
    params: Any
    peer: Callable[[], Any]
    cells: int
    """Numbers of the largest table."""
    rows: int = 10**9
    """Rows of the largest table."""
    classes: bool = True


def contests() -> Iterator[Contest]:
    yield Contest("knn", knn.KNN(), neighbors.KNeighborsClassifier, 3_000_000)
    yield Contest(
        "generative_bayes",
        generative_bayes.GenerativeBayes(density="naive_gaussian"),
        naive_bayes.GaussianNB,
        30_000_000,
    )
    yield Contest(
        "decision_tree", decision_tree.DecisionTree(),
        partial(tree.DecisionTreeClassifier, min_samples_leaf=3, random_state=0), 3_000_000,
    )  # fmt: skip
    yield Contest(
        "random_forest", random_forest.RandomForest(importance=False),
        partial(ensemble.RandomForestClassifier, random_state=0), 3_000_000,
    )  # fmt: skip
    yield Contest("svm", svm.SVM(cv=None), peer_svm.SVC, 3_000_000, 10_000)
    yield Contest("svr", svr.SVR(scale_target=False), peer_svm.SVR, 3_000_000, 10_000, classes=False)
    yield Contest(
        "mlp", mlp.MLP(epochs=EPOCHS, activation="relu", n_iter_no_change=EPOCHS),
        partial(neural_network.MLPClassifier, max_iter=EPOCHS, n_iter_no_change=EPOCHS, random_state=0), 3_000_000,
    )  # fmt: skip
    yield Contest(
        "gaussian_process", our_process.GaussianProcess(n_init=1, length_scales="shared"), their_process,
        100_000, 1_000, classes=False,
    )  # fmt: skip


def their_process() -> Any:
    kernels = gaussian_process.kernels
    kernel = kernels.ConstantKernel() * kernels.Matern(nu=2.5) + kernels.WhiteKernel()
    return gaussian_process.GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)


def cases() -> Iterator[Case]:
    for contest in contests():
        measure = {"quality": SHARE_CORRECT if contest.classes else SHARE_EXPLAINED}
        for shape in grid("dense", "correlated", cells=contest.cells):
            if shape.rows <= contest.rows:
                ours, theirs = partial(our_fit, contest), {"scikit-learn": partial(their_fit, contest)}
                yield Case(contest.algorithm, shape, ours, theirs, measure)
        shape = Shape("dense", ROWS_OF_PREDICTIONS, 30)
        ours, theirs = partial(our_predictions, contest), {"scikit-learn": partial(their_predictions, contest)}
        yield Case(contest.algorithm, shape, ours, theirs, measure, stage="predict")


class Halves(NamedTuple):
    """Rows that are learned from, at most as many as the contest allows, and the others."""

    x: Any
    y: Any
    other_x: Any
    other_y: Any

    @classmethod
    def of(cls, contest: Contest, table: Table) -> "Halves":
        learned = min(int(SHARE_LEARNED * len(table.y)), contest.rows)
        y = table.classes if contest.classes else table.y / table.y.std()
        spread = table.x.std(axis=0)
        x = np.ascontiguousarray((table.x - table.x.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        return cls(x[:learned].copy(), y[:learned].copy(), x[learned:], y[learned:])

    def quality(self, contest: Contest, predicted: Any) -> float:
        """Share of correct classes, or of the variance that is explained. predicted: of the other rows."""
        if contest.classes:
            return float((predicted == self.other_y).mean())
        return float(1 - np.square(self.other_y - predicted).mean() / self.other_y.var())


def data_of(contest: Contest, halves: Halves) -> Data:
    return Data.of(Task.CLASSIFICATION if contest.classes else Task.REGRESSION, halves.x, halves.y)


def our_values(contest: Contest, state: Any, x: Any) -> Any:
    predicted = module_of(contest.algorithm).predict(contest.params, state, x)
    return predicted.argmax(axis=1) if contest.classes else predicted


def our_fit(contest: Contest, table: Table) -> Side:
    halves = Halves.of(contest, table)
    data = data_of(contest, halves)
    return Side(
        lambda: fit(contest.algorithm, contest.params, data),
        lambda state: {"quality": halves.quality(contest, our_values(contest, state, halves.other_x))},
    )


def their_fit(contest: Contest, table: Table) -> Side:
    warnings.simplefilter("ignore")  # an end by the number of steps is what is wanted
    halves = Halves.of(contest, table)
    return Side(
        lambda: contest.peer().fit(halves.x, halves.y),
        lambda peer: {"quality": halves.quality(contest, peer.predict(halves.other_x))},
    )


def our_predictions(contest: Contest, table: Table) -> Side:
    halves = Halves.of(contest._replace(rows=min(contest.rows, ROWS_OF_PREDICTIONS // 4)), table)
    state = fit(contest.algorithm, contest.params, data_of(contest, halves))
    return Side(
        lambda: our_values(contest, state, halves.other_x),
        lambda predicted: {"quality": halves.quality(contest, predicted)},
    )


def their_predictions(contest: Contest, table: Table) -> Side:
    warnings.simplefilter("ignore")
    halves = Halves.of(contest._replace(rows=min(contest.rows, ROWS_OF_PREDICTIONS // 4)), table)
    peer = contest.peer().fit(halves.x, halves.y)
    return Side(lambda: peer.predict(halves.other_x), lambda predicted: {"quality": halves.quality(contest, predicted)})
