"""Trees as tensors: one operation, TreeEnsemble, which compares and adds with 64 bits."""

from typing import Protocol

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.tensor_graphs.class_tensors import with_gaps
from app.ml.numerics.trees.forest import Trees, sound
from app.ml.numerics.trees.linear_forms import Bounded, Forms


def tree_totals(trees: Trees, x: Tensor) -> Tensor:
    """(n, k) as `total`: the sums of the values of all trees, one tree after the other."""
    return _ensemble(trees, x, trees.values, by_tree=False)


def tree_sums(trees: Trees, output: Labels, outputs: int, x: Tensor) -> Tensor:
    """(n, outputs) sums of trees with values (L, 1), each added to the output (T,) that is its own."""
    values, leaves = np.zeros((len(trees.values), outputs)), trees.column < 0
    values[trees.left[leaves], output[tree_numbers(trees)[leaves]]] = trees.values[trees.left[leaves], 0]
    return _ensemble(trees, x, values, by_tree=False)


def tree_values(trees: Trees, x: Tensor) -> Tensor:
    """(n, T) as `each`: the first value of every tree."""
    return _ensemble(trees, x, trees.values[:, :1], by_tree=True)


def leaf_rows(trees: Trees, x: Tensor) -> Tensor:
    """(n, T) numbers: the row of `values` that each tree leads to; NaN of a row that goes both ways."""
    return _ensemble(trees, x, np.arange(len(trees.values), dtype=np.float64)[:, None], by_tree=True, whole=True)


def tree_numbers(trees: Trees) -> Labels:
    """(N,) the tree of each node, -1 of nodes that no root leads to."""
    numbers = np.full(trees.column.size, -1)
    nodes, owners = trees.root.astype(np.intp), np.arange(trees.root.size)
    while nodes.size:
        numbers[nodes] = owners
        split = trees.column[nodes] >= 0
        nodes, owners = nodes[split], owners[split]
        below, third = trees.left[nodes].astype(np.intp), trees.missing[nodes] == 2
        known_only = np.isinf(trees.threshold[nodes]) & (trees.missing[nodes] < 1)
        nodes = np.concatenate([below, below[~known_only] + 1, below[third] + 2])
        owners = np.concatenate([owners, owners[~known_only], owners[third]])
    return numbers


def _ensemble(trees: Trees, x: Tensor, values: Matrix, *, by_tree: bool, whole: bool = False) -> Tensor:
    """by_tree: the value of every tree, not their sum. whole: NaN where a row goes both ways."""
    arrays = [np.ascontiguousarray(array) for array in sound(trees)[:-1]]
    width = trees.root.size if by_tree else values.shape[1]
    return x.graph.compute(
        "TreeEnsemble", [x, *arrays, np.ascontiguousarray(values)], width, by_tree=by_tree, whole=whole
    )


class FormedState(Protocol):
    @property
    def trees(self) -> Trees: ...
    @property
    def splits(self) -> Forms: ...
    @property
    def leaves(self) -> Bounded: ...


def formed_tree(_: object, state: FormedState, x: Tensor) -> Tensor:
    """(n, k) as `predictions`: columns after those of x are `splits`, and leaves may add linear functions."""
    tree, splits, leaves = state.trees, state.splits, state.leaves
    coef, centre = _dense(splits, x.width)
    forms = [((x - c)[np.flatnonzero(w)] * w[w != 0]).reduce("ReduceSum") for w, c in zip(coef, centre, strict=True)]
    wide = x.beside(*forms)
    if not leaves.forms.size:
        return tree_totals(tree, wide)
    reached, (coef, centre) = leaf_rows(tree, wide), _dense(leaves.forms, x.width)
    row = x.repeated(np.zeros(1)).where(reached.apply("IsNaN"), reached).to_integers()
    total = row.among(tree.values[:, 0])
    for column in np.flatnonzero(coef.any(axis=0)).tolist():
        added = row.among(coef[:, column]) * (x[[column]] - row.among(centre[:, column]))
        total = total + x.repeated(np.zeros(1)).where(added.apply("IsNaN"), added)
    return with_gaps(total.combine("Max", row.among(leaves.low)).combine("Min", row.among(leaves.high)), reached)


def _dense(forms: Forms, columns: int) -> tuple[Matrix, Matrix]:
    """(F, d) coefficients and centres of each form."""
    coef, centre = np.zeros((2, forms.size, columns))
    for place in range(forms.size):
        form = forms.one(place)
        coef[place, form.column], centre[place, form.column] = form.coef, form.centre
    return coef, centre
