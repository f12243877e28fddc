"""Ridge, lasso and logistic regression of categories beside those of scikit-learn on sparse indicators.

Ours fits the matrix that a training prepares from the table; the rival gets indicators that are made already.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import scipy
from sklearn import linear_model

from app.ml.contract.columns import TableColumn
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet
from tests.benchmarks.shapes.case import Case, Measure, Side
from tests.benchmarks.shapes.tables import CATEGORIES_PER_COLUMN, Table, grid

CELLS, L1 = 5_000_000, 0.01
REASON = "scikit-learn reports neither rank nor condition number, for which the equations are factorised"
RIDGE = {"Ridge sparse_cg": {"solver": "sparse_cg", "tol": 1e-10}, "Ridge auto": {}}
LOGISTIC = {"LogisticRegression": {"max_iter": 2000}, "LogisticRegression exact": {"max_iter": 2000, "tol": 1e-8}}


def cases() -> Iterator[Case]:
    for shape in grid("one_hot", cells=CELLS):
        if shape.columns > shape.rows or shape.columns > 2_000:
            continue
        ridges = {name: partial(their_ridge, how) for name, how in RIDGE.items()}
        yield Case("ridge", shape, partial(ours, "ridge", "y"), ridges, {"objective": Measure(1e-9)}, exception=REASON)
        peers = {"Lasso": their_lasso}
        measures = {"objective": Measure(1e-6)}
        yield Case("lasso", shape, partial(ours, "lasso", "y"), peers, measures, stage=f"fit l1 {L1}")
        peers = {name: partial(their_logistic, how) for name, how in LOGISTIC.items()}
        yield Case("logistic", shape, partial(ours, "logistic", "class"), peers, {"objective": Measure(1e-9)})


def ours(algorithm: str, target: str, table: Table) -> Side:
    x, n = table.x, table.shape.rows
    columns = {f"c{j}": pa.array([f"v{code:02}" for code in x[:, j]]) for j in range(x.shape[1])}
    kinds = [TableColumn(name, "categorical", 0, CATEGORIES_PER_COLUMN) for name in columns]
    numeric = target == "y"
    kinds.append(TableColumn(target, "numeric", 0, None) if numeric else TableColumn(target, "categorical", 0, 2))
    values = table.y if numeric else np.where(table.classes > 0, "b", "a")
    own = {"l1": L1} if algorithm == "lasso" else {}
    spec = {"target": target, "algorithm": {"name": algorithm, **own}, "validation": {"test_fraction": 0}}
    planned = plan(TrainSpec.model_validate(spec), kinds, n)
    training_set, rows = TrainingSet.read(planned, pa.table(columns | {target: values})), np.arange(n)
    preparation = training_set.prepare(rows)
    data = training_set.data(preparation, rows)

    def work(state: Any) -> Mapping[str, float]:
        score = data.x @ state.coef.reshape(-1) + float(np.ravel(state.intercept)[0])
        return {"objective": objective(algorithm, score, table, state.coef)}

    return Side(lambda: training_set.fit(data, 0, lambda *_, **__: None)[0].state, work)


def objective(algorithm: str, score: Any, table: Table, coef: Any) -> float:
    """Mean per row."""
    square = float((coef**2).sum())
    if algorithm == "lasso":
        return float(0.5 * ((table.y - score) ** 2).mean() + L1 * np.abs(coef).sum())
    if algorithm == "ridge":
        return float(((table.y - score) ** 2).sum() + square) / len(score)
    loss = np.logaddexp(0, -score * (2 * table.classes - 1)).sum()
    return float(loss + 0.5 * square) / len(score)


def their_ridge(how: Mapping[str, Any], table: Table) -> Side:
    x = scipy.sparse.csr_matrix(table.csr())

    def work(peer: Any) -> Mapping[str, float]:
        return {"objective": objective("ridge", peer.predict(x), table, peer.coef_)}

    return Side(lambda: linear_model.Ridge(**how).fit(x, table.y), work)


def their_lasso(table: Table) -> Side:
    x = scipy.sparse.csc_matrix(table.csr())
    x.indices, x.indptr = x.indices.astype(np.int32), x.indptr.astype(np.int32)  # it takes no others

    def work(peer: Any) -> Mapping[str, float]:
        return {"objective": objective("lasso", peer.predict(x), table, peer.coef_)}

    return Side(lambda: linear_model.Lasso(L1, tol=1e-8, max_iter=100_000).fit(x, table.y), work)


def their_logistic(how: Mapping[str, Any], table: Table) -> Side:
    x = scipy.sparse.csr_matrix(table.csr())

    def work(peer: Any) -> Mapping[str, float]:
        return {"objective": objective("logistic", peer.decision_function(x), table, peer.coef_)}

    return Side(lambda: linear_model.LogisticRegression(**how).fit(x, table.classes), work)
