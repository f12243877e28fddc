"""Neighbours, local planes, class densities and lasso beside scikit-learn, on one thread, in milliseconds of CPU.

Run `python tests/benchmarks/fit_local.py [word …]`: only what has one of the words in its name. The least of several
turns, ours and theirs in turn; the ratio says how many times faster ours is. `theirs` is the fastest of their solvers
that comes to the same predictions; how far these are apart stands last.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy reads them

import numpy as np
from sklearn import datasets, discriminant_analysis, linear_model, naive_bayes, neighbors

from app.ml.algorithms import bayesian_locally_weighted, generative_bayes, knn, lasso, locally_weighted
from app.ml.contract.algorithm import Context, Data, Task

TURNS = 5


class Race(NamedTuple):
    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    apart: Callable[[Any, Any], float]
    """From the predictions of both."""


def fitted(module: Any, params: Any, data: Data) -> Any:
    return module.fit(params, data, Context.of(0)).state


def largest(ours: Any, theirs: Any) -> float:
    return float(np.abs(ours - theirs).max())


def both(name: str, density: str, data: Data, rival: Any, requested: Any) -> Iterator[Race]:
    """A race of fits and one of predictions."""
    module, params = generative_bayes, generative_bayes.GenerativeBayes(density=density)
    own, other = partial(module.predict, params, fitted(module, params, data), requested), rival.predict_proba
    rival.fit(data.x, data.y)
    nothing = partial(lambda *_: largest(own(), other(requested)))
    yield Race(f"{name}: fit", partial(fitted, module, params, data), partial(rival.fit, data.x, data.y), nothing)
    yield Race(f"{name}: predict {len(requested)}", own, partial(other, requested), largest)


def densities() -> Iterator[Race]:
    """Rank 40 of 50 columns; their quadratic analysis refuses, and is given the first 10."""
    x, y = datasets.make_classification(
        220_000, 50, n_informative=20, n_redundant=10, n_classes=2, flip_y=0.05, random_state=3
    )
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    data, requested = Data.of(Task.CLASSIFICATION, x[:200_000], y[:200_000]), x[200_000:]
    few, requested_few = Data.of(Task.CLASSIFICATION, data.x[:, :10].copy(), data.y), requested[:, :10].copy()
    linear = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr")
    yield from both("LDA 200,000 x 50", "shared_covariance", data, linear, requested)
    quadratic = discriminant_analysis.QuadraticDiscriminantAnalysis()
    yield from both("QDA 200,000 x 10", "full_covariance", few, quadratic, requested_few)
    yield from both("naive 200,000 x 50", "naive_gaussian", data, naive_bayes.GaussianNB(), requested)


def nearest() -> Iterator[Race]:
    recipes = {
        3: {"n_informative": 3, "n_redundant": 0, "n_classes": 2, "random_state": 20},
        20: {"n_informative": 10, "n_redundant": 5, "n_classes": 5, "random_state": 0},
    }
    for d, recipe in recipes.items():
        x, y = datasets.make_classification(55_000, d, flip_y=0.05, **recipe)
        data, requested, params = Data.of(Task.CLASSIFICATION, x[:50_000], y[:50_000]), x[50_000:], knn.KNN()

        def ours(data: Data = data, requested: Any = requested, params: Any = params) -> Any:
            return knn.predict(params, fitted(knn, params, data), requested)

        for way in ("brute", "kd_tree"):
            rival = neighbors.KNeighborsClassifier(algorithm=way)

            def theirs(rival: Any = rival, data: Data = data, requested: Any = requested) -> Any:
                return rival.fit(data.x, data.y).predict_proba(requested)

            yield Race(f"knn 50,000 x {d}, fit and 5,000 queries, {way}", ours, theirs, largest)


def sparse() -> Iterator[Race]:
    for name, x, y, alpha in _sparse_tables():
        data = Data.of(Task.REGRESSION, x, y)
        one = lasso.Lasso(l1=alpha)
        worth = partial(_excess, one, data)
        for precompute in (False, True):
            peer = linear_model.Lasso(alpha, tol=1e-8, max_iter=100_000, precompute=precompute)
            label = f"lasso {name}, path and fit, their fit, {'gram' if precompute else 'rows'}"
            yield Race(label, partial(fitted, lasso, one, data), partial(peer.fit, x, y), worth)
        how = {"eps": 1e-3, "tol": 1e-8, "max_iter": 100_000}
        path = partial(linear_model.lasso_path, x - x.mean(axis=0), y - y.mean(), alphas=40, **how)
        whole = lasso.Lasso(l1=float(1e-3 * np.abs((x - x.mean(axis=0)).T @ (y - y.mean())).max() / len(y)))
        yield Race(f"lasso {name}, path of 40", partial(fitted, lasso, whole, data), path, _path_apart)
        chosen = lasso.Lasso(selection="lowest_error")
        for tol in (1e-4, 1e-8):
            peer = linear_model.LassoCV(cv=5, alphas=40, **{**how, "tol": tol})
            label = f"lasso {name}, 5 folds x 40, their tolerance {tol}"
            yield Race(label, partial(fitted, lasso, chosen, data), partial(peer.fit, x, y), _error_apart)


def _sparse_tables() -> Iterator[tuple[str, Any, Any, float]]:
    x, y = datasets.make_regression(20_000, 200, n_informative=20, noise=10.0, random_state=2)
    yield "20,000 x 200", x, y, 1.0
    x, y = datasets.make_regression(
        20_000, 200, n_informative=20, noise=10.0, effective_rank=30, tail_strength=0.5, random_state=2
    )
    yield "20,000 x 200 correlated", x / x.std(axis=0), y / y.std(), 0.003
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 200)) @ (np.eye(200) + 0.3 * rng.normal(size=(200, 200)))
    yield "500 x 200", x, x[:, :10].sum(axis=1) + 5 * rng.normal(size=500), 0.1
    yield "diabetes", *datasets.load_diabetes(return_X_y=True), 0.1


def _excess(params: Any, data: Data, ours: Any, theirs: Any) -> float:
    """How much lower our objective is than theirs, as a share."""
    _same_columns(ours.coef, theirs.coef_)
    state = ours._replace(coef=theirs.coef_, intercept=np.asarray(theirs.intercept_))
    return lasso.objective(params, state, data) / lasso.objective(params, ours, data) - 1


def _same_columns(ours: Any, theirs: Any) -> None:
    """Raises ValueError where there is nothing to fit, or the numbers of coefficients differ by more than rounding."""
    counts = [int((coef != 0).sum()) for coef in (ours, theirs)]
    if not min(counts) or abs(counts[0] - counts[1]) > 1 + 0.02 * counts[1]:
        raise ValueError(f"The fits differ: {counts[0]} coefficients of ours and {counts[1]} of theirs are not 0.")


def _error_apart(ours: Any, theirs: Any) -> float:
    """How much the lowest errors of cross-validation differ, as a share; folds are drawn. Raises ValueError if much."""
    mine, other = ours.path.errors.min(), theirs.mse_path_.mean(axis=1).min()
    if abs(mine / other - 1) > 0.1:
        raise ValueError(f"The lowest errors of cross-validation differ: {mine:.4g} and {other:.4g}.")
    return float(mine / other - 1)


def _path_apart(ours: Any, theirs: Any) -> float:
    last = theirs[1][:, -1]
    _same_columns(ours.coef, last)
    return float(np.abs(ours.coef - last).max() / np.abs(last).max())


def planes() -> Iterator[Race]:
    """Nobody has these: beside them a loop of numpy's least squares over the queries."""
    for n, d, q in ((442, 10, 442), (1000, 5, 1), (10_000, 10, 100)):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(n, d))
        y, requested = np.sin(x).sum(axis=1), rng.normal(size=(q, d))
        data, width = Data.of(Task.REGRESSION, x, y), 2.0 * d

        def loop(x: Any = x, y: Any = y, requested: Any = requested, width: float = width) -> Any:
            predictions = []
            for query in requested:
                root = np.exp(-((x - query) ** 2).sum(axis=1) / width)
                design = np.column_stack([np.ones(len(x)), x - query]) * root[:, None]
                predictions.append(np.linalg.lstsq(design, y * root)[0][0])
            return np.array(predictions)

        for module, params in (
            (locally_weighted, locally_weighted.LocallyWeighted(width=width)),
            (bayesian_locally_weighted, bayesian_locally_weighted.BayesianLocallyWeighted(width=width)),
        ):
            own = partial(module.predict, params, fitted(module, params, data), requested)
            yield Race(f"{module.__name__.rpartition('.')[2]} {n} x {d}: predict {q}", own, loop, largest)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    predicted = run()
    return 1e3 * (time.process_time() - start), predicted


def main() -> None:
    sys.stdout.write(f"{'':66}{'ours':>9}{'theirs':>9}{'ratio':>7}{'apart':>10}\n")
    for races in (densities, nearest, sparse, planes):
        for race in races():
            if sys.argv[1:] and not any(word in race.name for word in sys.argv[1:]):
                continue
            race.ours()  # kernels are compiled
            turns = [(timed(race.ours), timed(race.theirs)) for _ in range(TURNS)]
            ours, theirs = (min(turn[who][0] for turn in turns) for who in (0, 1))
            apart = race.apart(*(predicted for _, predicted in turns[0]))
            sys.stdout.write(f"{race.name:66}{ours:9.2f}{theirs:9.2f}{theirs / ours:7.2f}{apart:10.1e}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
