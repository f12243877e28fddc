"""Rows that a fit learns from without a target, and the relations of the labelled rows to them."""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.contract.data import Unlabelled
from app.ml.contract.relations import Relations


def with_hidden(unlabelled: Labels, labelled: Labels, rows: Labels) -> Labels:
    """The unlabelled rows and the labelled ones that are not among `rows`, whose target stays unseen, ascending."""
    return np.union1d(unlabelled, np.setdiff1d(labelled, rows, assume_unique=True))


def as_unlabelled(x: Matrix, rows: Labels, labelled: Labels, relations: Relations | None, count: int) -> Unlabelled:
    """x: (m, d) of these rows. labelled: (n,) the rows beside. relations: between all `count` rows of the table."""
    if relations is None or relations.square is not None:
        return Unlabelled(x, rows)
    return Unlabelled(x, rows, relations.take(np.concatenate([labelled, rows]), count))
