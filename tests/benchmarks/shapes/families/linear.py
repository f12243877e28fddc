"""Least squares, ridge, lasso and predictions of linear forms beside the solvers of scikit-learn."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn import linear_model

from app.ml.algorithms import lasso, linear, ridge
from app.ml.contract.algorithm import Data, Task
from tests.benchmarks.shapes.case import Case, Measure, Side
from tests.benchmarks.shapes.fits import fit
from tests.benchmarks.shapes.tables import Shape, Table, grid

CELLS = 30_000_000
"""Larger tables are read in blocks by a job: they have cases of their own."""
LASSO_CELLS = 10_000_000
SHAPES_OF_NOTE = (Shape("dense", 1_000, 4_000), Shape("dense", 6_000, 2_000))
LASSO_SHAPES_OF_NOTE = (Shape("dense", 200, 5_000),)
OBJECTIVE = Measure(1e-9)
RIDGE_SOLVERS = {"cholesky": {"solver": "cholesky"}, "auto": {}}


def cases() -> Iterator[Case]:
    for shape in (*grid("dense", "correlated", cells=CELLS), *SHAPES_OF_NOTE):
        yield Case(
            "ridge", shape, our_ridge, {f"Ridge {name}": partial(their_ridge, how) for name, how in
            RIDGE_SOLVERS.items()}, {"objective": OBJECTIVE},
        )  # fmt: skip
        if shape.kind == "dense":
            yield Case(
                "linear",
                shape,
                our_linear,
                {"LinearRegression": their_linear},
                {"objective": Measure(1e-9, absolute=1e-9), "length": Measure(1e-6)},
            )
            yield Case(
                "linear",
                shape,
                our_predictions,
                {"LinearRegression": their_predictions},
                {"sum": Measure(1e-9, "equal")},
                stage="predict",
            )
    for shape in (*grid("dense", "correlated", cells=LASSO_CELLS), *LASSO_SHAPES_OF_NOTE):
        for share in (0.1, 0.01):
            rivals = {f"Lasso gram={gram}": partial(their_lasso, share, gram) for gram in (False, True)}
            yield Case(
                "lasso", shape, partial(our_lasso, share), rivals,
                {"objective": Measure(1e-6), "nonzeros": Measure(0.02, "equal", absolute=1)},
                stage=f"fit l1 {share}",
            )  # fmt: skip


def regression(table: Table) -> Data:
    return Data.of(Task.REGRESSION, table.x, table.y)


def ridge_work(data: Data, state: Any) -> Mapping[str, float]:
    return {"objective": ridge.objective(ridge.Ridge(), state, data)}


def our_ridge(table: Table) -> Side:
    data = regression(table)
    return Side(lambda: fit("ridge", ridge.Ridge(), data), partial(ridge_work, data))


def their_ridge(how: Mapping[str, Any], table: Table) -> Side:
    data = regression(table)

    def run() -> ridge.State:
        peer = linear_model.Ridge(**how).fit(table.x, table.y)
        return ridge.State(peer.coef_, np.asarray(peer.intercept_), 0, 0.0)

    return Side(run, partial(ridge_work, data))


def linear_work(data: Data, form: tuple[Any, float]) -> Mapping[str, float]:
    """Sum of squares as a share of that about the mean, and the length of the coefficients: of many fits the shortest
    is wanted.
    """
    coef, intercept = form
    wrong = data.y - data.x @ coef - intercept
    return {"objective": wrong @ wrong / data.y.var() / data.y.size, "length": np.linalg.norm(coef)}


def our_linear(table: Table) -> Side:
    data = regression(table)

    def work(state: linear.State) -> Mapping[str, float]:
        return linear_work(data, (state.coef, float(state.intercept)))

    return Side(lambda: fit("linear", linear.Linear(), data), work)


def their_linear(table: Table) -> Side:
    def run() -> Any:
        return linear_model.LinearRegression().fit(table.x, table.y)

    return Side(run, lambda peer: linear_work(regression(table), (peer.coef_, peer.intercept_)))


def line(table: Table) -> tuple[Any, float]:
    """Coefficients and intercept that both sides predict by."""
    return np.random.default_rng(1).normal(size=table.x.shape[1]), 1.0


def our_predictions(table: Table) -> Side:
    coef, intercept = line(table)
    few = Data.of(Task.REGRESSION, table.x[:50], table.y[:50])
    state = fit("linear", linear.Linear(), few)._replace(coef=coef, intercept=np.asarray(intercept))
    return Side(lambda: linear.predict(linear.Linear(), state, table.x), lambda found: {"sum": np.abs(found).sum()})


def their_predictions(table: Table) -> Side:
    peer = linear_model.LinearRegression().fit(table.x[:50], table.y[:50])
    peer.coef_, peer.intercept_ = line(table)
    return Side(lambda: peer.predict(table.x), lambda found: {"sum": np.abs(found).sum()})


def penalty(share: float, table: Table) -> float:
    """This share of the penalty from which on all coefficients are 0, on the scale of both: beside the mean of ½r²."""
    x, y = table.x - table.x.mean(axis=0), table.y - table.y.mean()
    return float(share * np.abs(y @ x).max() / len(y))


def lasso_work(l1: float, table: Table, form: tuple[Any, float]) -> Mapping[str, float]:
    coef, intercept = form
    wrong = table.y - table.x @ coef - intercept
    return {"objective": wrong @ wrong / (2 * len(wrong)) + l1 * np.abs(coef).sum(), "nonzeros": (coef != 0).sum()}


def our_lasso(share: float, table: Table) -> Side:
    data, l1 = regression(table), penalty(share, table)

    def work(state: lasso.State) -> Mapping[str, float]:
        return lasso_work(l1, table, (state.coef, float(state.intercept)))

    return Side(lambda: fit("lasso", lasso.Lasso(l1=l1), data), work)


def their_lasso(share: float, gram: bool, table: Table) -> Side:
    l1 = penalty(share, table)

    def run() -> Any:
        return linear_model.Lasso(l1, precompute=gram, tol=1e-8, max_iter=100_000).fit(table.x, table.y)

    return Side(run, lambda peer: lasso_work(l1, table, (peer.coef_, peer.intercept_)))
