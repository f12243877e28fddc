"""Explanations of predictions: those of the algorithm, else what each column adds to scores that are linear."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.ml.contract.algorithm import JSON, Algorithm, LinearForm
from app.ml.contract.data import Matrix, Vector
from app.ml.contract.sparse_rows import dense, sparse


def explains(algorithm: Algorithm[Any, Any]) -> bool:
    """True if single predictions of the algorithm have an explanation."""
    return algorithm.explain is not None or algorithm.linear is not None


def explanations(algorithm: Algorithm[Any, Any], params: Any, state: Any, x: Matrix) -> list[JSON]:
    """One JSON value a row (n, d): why this prediction. Needs an algorithm that `explains`."""
    if algorithm.explain is not None:
        return list(algorithm.explain(params, state, x))
    assert algorithm.linear is not None  # noqa: S101  as documented
    return list(column_sums(algorithm.linear(state), x))


def column_sums(form: LinearForm, x: Matrix) -> Iterator[dict[str, JSON]]:
    """The part of each column in the scores of rows (n, d): with the intercept the parts add up to them.

    A part of several scores is a list of one number for each. Of sparse rows the columns that are 0 are left out.
    """
    rows = sparse(x)
    for i in range(len(x)):
        row = x[i] if rows is None else dense(x[i : i + 1])[0]
        places = range(len(row)) if rows is None else np.flatnonzero(row).tolist()
        parts = [
            {"column": j, "value": float(row[j]), "contribution": one_or_all(row[j] * form.coef[j])} for j in places
        ]
        yield {"intercept": one_or_all(form.intercept), "contributions": parts}


def one_or_all(scores: Vector) -> JSON:
    """The number of a single score, or the list of several."""
    return float(scores[0]) if len(scores) == 1 else scores.tolist()
