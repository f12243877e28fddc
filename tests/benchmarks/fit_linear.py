"""Least squares, ridge, lasso, logistic regression and principal components beside scikit-learn, on one thread.

    python tests/benchmarks/fit_linear.py [the name of an algorithm ...]

CPU time, the least of several turns; ours and theirs take turns, so that a busy machine troubles both alike. The ratio
says how many times faster ours is. `excess` is how much higher than the lower of the two the other's objective is.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn import datasets, decomposition, linear_model

from app.ml.algorithms import lasso, linear, logistic, pca, ridge
from app.ml.contract.algorithm import Context, Data, Task

TURNS = 5


class Race(NamedTuple):
    name: str
    data: Data
    ours: Callable[[], Any]
    """Fits and gives a state."""
    theirs: Callable[[], Any]
    """Fits, and gives their coefficients as a state of ours."""
    objective: Callable[[Any], float]


def ridge_race(name: str, x: Any, y: Any) -> Race:
    data, params = Data.of(Task.REGRESSION, x, y), ridge.Ridge()

    def theirs() -> ridge.State:
        peer = linear_model.Ridge().fit(x, y)
        return ridge.State(peer.coef_, np.asarray(peer.intercept_), 0, 0.0)

    return Race(
        f"ridge {name}",
        data,
        lambda: ridge.fit(params, data, Context.of(0)).state,
        theirs,
        lambda state: ridge.objective(params, state, data),
    )


def linear_race(name: str, x: Any, y: Any) -> Race:
    data, params = Data.of(Task.REGRESSION, x, y), linear.Linear()
    own = linear.fit(params, data, Context.of(0)).state

    def theirs() -> linear.State:
        peer = linear_model.LinearRegression().fit(x, y)
        return own._replace(coef=peer.coef_, intercept=np.asarray(peer.intercept_))

    return Race(
        f"linear {name}",
        data,
        lambda: linear.fit(params, data, Context.of(0)).state,
        theirs,
        lambda state: linear.objective(params, state, data),
    )


def logistic_race(name: str, x: Any, y: Any, own_tol: float = 1e-8, **how: Any) -> Race:
    """own_tol: a rough fit of the peer has to be compared with a rough one of ours."""
    data, params = Data.of(Task.CLASSIFICATION, x, y), logistic.Logistic(tol=own_tol)

    def theirs() -> logistic.State:
        peer = linear_model.LogisticRegression(max_iter=1000, **how).fit(x, y)
        return logistic.State(peer.coef_.T, peer.intercept_, np.ones(len(peer.classes_), bool))

    return Race(
        f"logistic {name}, tol {own_tol:g} {how or ''}",
        data,
        lambda: logistic.fit(params, data, Context.of(0)).state,
        theirs,
        lambda state: logistic.objective(params, state, data),
    )


def lasso_race(name: str, x: Any, y: Any) -> Race:
    """A whole path with five folds, and the objective at the penalty that ours chooses."""
    data, params = Data.of(Task.REGRESSION, x, y), lasso.Lasso(selection="lowest_error")
    own = lasso.fit(params, data, Context.of(0)).state
    l1 = own.path.penalties[own.path.chosen]
    fixed = lasso.Lasso(l1=l1)

    def theirs() -> lasso.State:
        peer = linear_model.LassoCV(cv=5, alphas=own.path.penalties).fit(x, y)
        return own._replace(coef=peer.coef_, intercept=np.asarray(peer.intercept_))

    def objective(state: lasso.State) -> float:
        path = own.path._replace(penalties=np.array([l1]), chosen=0)
        return lasso.objective(fixed, state._replace(path=path), data)

    return Race(
        f"lasso, 5 folds, {name}",
        data,
        lambda: lasso.fit(params, data, Context.of(0)).state,
        theirs,
        objective,
    )


def pca_race(name: str, x: Any, components: int) -> Race:
    data, params = Data.of(Task.PROJECTION, x), pca.PCA(n_components=components)

    def theirs() -> pca.State:
        peer = decomposition.PCA(components).fit(x)
        return pca.State(peer.mean_, peer.components_, peer.explained_variance_, 0.0, peer.explained_variance_)

    return Race(
        f"pca {components} of {name}",
        data,
        lambda: pca.fit(params, data, Context.of(0)).state,
        theirs,
        lambda state: pca.objective(params, state, data),
    )


def races() -> list[Race]:
    cancer, digits = (load(return_X_y=True) for load in (datasets.load_breast_cancer, datasets.load_digits))
    scaled = [((x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1), y) for x, y in (cancer, digits)]
    rng = np.random.default_rng(1)
    tall = rng.normal(size=(200_000, 50))
    target = tall @ rng.normal(size=50) + rng.normal(size=len(tall))
    shape = {"effective_rank": 20, "tail_strength": 0.3, "random_state": 18}
    low_rank, wider = (100 * datasets.make_low_rank_matrix(n, n // 1000, **shape) for n in (100_000, 200_000))
    sparse = datasets.make_regression(500, 200, n_informative=20, noise=10, random_state=2)
    every = [
        ridge_race("diabetes", *datasets.load_diabetes(return_X_y=True)),
        linear_race("200,000 x 50", tall, target),
        ridge_race("200,000 x 50", tall, target),
        lasso_race("diabetes", *datasets.load_diabetes(return_X_y=True)),
        lasso_race("500 x 200", *sparse),
        logistic_race("breast_cancer", *scaled[0]),
        logistic_race("digits", *scaled[1]),
        logistic_race("digits", *scaled[1], own_tol=1e-3),
        logistic_race("digits", *scaled[1], tol=1e-8),
        logistic_race("200,000 x 50", tall, (target > 0).astype(float)),
        logistic_race("200,000 x 50", tall, (target > 0).astype(float), own_tol=1e-3),
        logistic_race("200,000 x 50", tall, (target > 0).astype(float), own_tol=1e-4),
        logistic_race("200,000 x 50", tall, (target > 0).astype(float), tol=1e-8),
        logistic_race("200,000 x 50", tall, (target > 0).astype(float), solver="newton-cholesky"),
        pca_race("digits", digits[0], 10),
        pca_race("100,000 x 100", low_rank, 20),
        pca_race("200,000 x 200", wider, 20),
    ]
    return [race for race in every if race.name.startswith(tuple(sys.argv[1:]) or "")]


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    state = fit()
    return time.process_time() - start, state


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}")
    print(f"{'':52}{'ours ms':>9}{'theirs ms':>11}{'ratio':>7}{'our excess':>12}{'their excess':>14}")
    for race in races():
        turns = [(timed(race.ours), timed(race.theirs)) for _ in range(TURNS)]
        ours, theirs = (min(turn[who][0] for turn in turns) for who in (0, 1))
        values = [race.objective(state) for _, state in turns[0]]
        excess = [value / min(values) - 1 for value in values]
        times = f"{1e3 * ours:9.1f}{1e3 * theirs:11.1f}{theirs / ours:7.2f}"
        print(f"{race.name:52}{times}{excess[0]:12.1e}{excess[1]:14.1e}")


if __name__ == "__main__":
    main()
