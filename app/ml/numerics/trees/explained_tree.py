"""Path of a row through one tree, as JSON: the splits that it passes, and its leaf."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import JSON, Vector
from app.ml.numerics.trees.forest import Trees
from app.ml.numerics.trees.linear_forms import Bounded, Forms
from app.ml.numerics.trees.one_tree import path


class ExplainedTree(NamedTuple):
    """One tree of N nodes, with what its paths show."""

    trees: Trees
    sums: Forms
    """Weighted sums of columns; the tree has them as columns after the last."""
    leaves: Bounded
    """Linear functions of leaves."""
    weight: Vector
    """(N,) of the training rows that reach the node."""

    def path(self, row: Vector, prediction: NDArray[np.float64]) -> JSON:
        """row: the columns, then the sums. Where the row takes both branches the path ends."""
        *passed, last = path(self.trees, row)
        end = {"rows": float(self.weight[last]), "prediction": prediction.tolist()}
        if (column := int(self.trees.column[last])) >= 0:
            end |= columns_of(self.trees, self.sums, column)
            end["stopped"] = (
                "The value of this split is missing, for which this node has no branch: the row takes both branches"
            )
        elif self.leaves.forms.size:
            end["linear"] = linear_leaf(self.trees, self.leaves, int(self.trees.left[last]))
        return {"path": [self._split(node, float(row[self.trees.column[node]])) for node in passed], "leaf": end}

    def _split(self, node: int, value: float) -> JSON:
        """The split of a node, and the branch that a row of this value takes."""
        tree = self.trees
        column, threshold = int(tree.column[node]), float(tree.threshold[node])
        result = columns_of(self.trees, self.sums, column) | {"rows": float(self.weight[node])}
        if math.isnan(value):
            return result | {"op": "missing", "branch": "missing"}
        if math.isinf(threshold):
            return result | {"op": "known", "branch": "left"}
        if not (levels := int(tree.levels[column])):
            left, form = value <= threshold, column - (tree.levels.size - self.sums.size)
            limit = threshold + (self.sums.shift(form) if form >= 0 else 0.0)
            return result | {"op": "<=" if left else ">", "threshold": limit, "branch": "left" if left else "right"}
        named = tree.members[int(threshold) : int(threshold) + levels]
        left, codes = bool(named[int(value)]), np.flatnonzero(named).tolist()
        return result | {
            "op": "in" if left else "not in",
            "categories": codes,
            "branch": "left" if left else "right",
        }


def columns_of(trees: Trees, sums: Forms, column: int) -> dict[str, JSON]:
    """The column of a split, or the terms of its sum."""
    form = column - (trees.levels.size - sums.size)
    return {"column": column} if form < 0 else {"terms": sums.terms(form)}


def linear_leaf(trees: Trees, leaves: Bounded, place: int) -> dict[str, JSON]:
    """The prediction of a leaf: intercept + Σ coef · x, not less than `low` nor more than `high`."""
    forms, low, high = leaves
    intercept = float(trees.values[place, 0]) - forms.shift(place)
    ends = {"low": float(low[place]), "high": float(high[place])}
    return {"intercept": intercept, "terms": forms.terms(place)} | ends
