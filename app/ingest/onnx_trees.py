"""Ensembles of trees in graphs of ONNX: every index of their attributes is checked before onnxruntime sees it.

References: ONNX, operators TreeEnsembleClassifier-3, TreeEnsembleRegressor-3 and TreeEnsemble-5 of ai.onnx.ml.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.numerics.trees.foreign_trees import damaged, walk

LEAF = {"LEAF", b"LEAF"}
NODES = ("nodes_treeids", "nodes_featureids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids")
OPTIONAL = ("nodes_missing_value_tracks_true", "nodes_hitrates", "nodes_hitrates_as_tensor")
MAX_OUTPUTS, MAX_COLUMNS = 10_000, 100_000
Attributes = Mapping[str, Any]


def demand_trees(operator: str, attributes: Attributes) -> None:
    """attributes: by their names, lists and arrays. Raises InvalidData for an ensemble of what are no trees."""
    try:
        if operator == "TreeEnsemble":
            _demand_ensemble(attributes)
        else:
            _demand_listed(attributes, "class" if operator == "TreeEnsembleClassifier" else "target")
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        raise damaged("An attribute of an ensemble of trees is of another kind.") from error


def _demand_listed(attributes: Attributes, output: str) -> None:
    """A node is a row of the lists, named by its tree and its number; leaves have weights of outputs in other lists."""
    size = len(attributes.get("nodes_nodeids", ()))
    _demand_sizes(attributes, size, *NODES, optional=OPTIONAL)
    _demand_values(attributes, "nodes_values", size)
    names = _pairs(attributes, "nodes_treeids", "nodes_nodeids")
    rows = {name: row for row, name in enumerate(names)}
    if not rows or len(rows) < size:
        raise damaged("An ensemble has no trees, or two nodes of one name.")
    is_split = _splits(attributes)
    _demand_features(attributes, is_split)
    children = [
        _rows(rows, attributes["nodes_treeids"], attributes[name], is_split)
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    ]
    _demand_forest(is_split, children, _roots(attributes["nodes_treeids"]))
    ends = _pairs(attributes, f"{output}_treeids", f"{output}_nodeids")
    _demand_sizes(attributes, len(ends), f"{output}_ids")
    _demand_values(attributes, f"{output}_weights", len(ends))
    if any(name not in rows or is_split[rows[name]] for name in ends):
        raise damaged("A weight is of what is no leaf.")
    labels = max(len(attributes.get(name, ())) for name in ("classlabels_strings", "classlabels_int64s"))
    _demand_range(attributes[f"{output}_ids"], labels if output == "class" else int(attributes.get("n_targets", 1)))


def _demand_ensemble(attributes: Attributes) -> None:
    """A node is a row; whether its children are rows or leaves, other lists state."""
    size, leaves = len(attributes.get("nodes_featureids", ())), len(attributes.get("leaf_targetids", ()))
    names = "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs"
    _demand_sizes(attributes, size, *names, optional=OPTIONAL)
    for name in ("nodes_splits", "nodes_modes"):
        _demand_values(attributes, name, size)
    _demand_values(attributes, "leaf_weights", leaves, gaps=True)
    _demand_range(attributes["leaf_targetids"], int(attributes.get("n_targets", 1)))
    _demand_features(attributes, np.ones(size, np.bool_))
    is_split = np.arange(size + leaves) < size
    children = []
    for side in ("true", "false"):
        below, ends = (np.array(attributes[f"nodes_{side}{kind}"], np.int64) for kind in ("nodeids", "leafs"))
        if not np.isin(ends, (0, 1)).all() or (below < 0).any() or (below >= np.where(ends, leaves, size)).any():
            raise damaged("The children of a node lead nowhere.")
        children.append(np.concatenate([below + size * ends, np.zeros(leaves, np.int64)]))
    roots = np.array(attributes.get("tree_roots", ()), np.int64)
    if not roots.size or (roots < 0).any() or (roots >= size).any():
        raise damaged("An ensemble has no trees.")
    if size > 1 or children[0][0] != children[1][0]:  # of one node whose children are one leaf a leaf is made
        _demand_forest(is_split, children, roots)


def _demand_forest(is_split: NDArray[np.bool_], children: Sequence[Labels], roots: Labels) -> None:
    """Raises InvalidData unless each node is reached from one root, once."""
    left, right = children
    seen = np.zeros(is_split.size, np.intp)
    for root in roots.tolist():
        order = np.r_[root, 0:root, root + 1 : is_split.size]  # the walk begins at the first node
        place = np.argsort(order)
        seen[order[walk(is_split[order], place[left[order]], place[right[order]])]] += 1
    if (seen > 1).any():
        raise damaged("Two trees share a node.")


def _roots(trees: Sequence[int]) -> Labels:
    """The first node of each tree."""
    return np.sort(np.unique(np.array(trees, np.int64), return_index=True)[1])


def _rows(rows: Mapping[tuple[int, int], int], trees: Any, nodes: Any, is_split: NDArray[np.bool_]) -> Labels:
    """(N,) the rows of the named children of the splits; 0 of leaves."""
    node_rows = [
        rows.get(name, -1) if split else 0 for name, split in zip(zip(trees, nodes, strict=True), is_split, strict=True)
    ]
    if -1 in node_rows:
        raise damaged("The children of a node lead nowhere.")
    return np.array(node_rows, np.int64)


def _splits(attributes: Attributes) -> NDArray[np.bool_]:
    return np.array([mode not in LEAF for mode in attributes["nodes_modes"]], np.bool_)


def _pairs(attributes: Attributes, first: str, second: str) -> list[tuple[int, int]]:
    if len(attributes.get(first, ())) != len(attributes.get(second, ())):
        raise damaged(f"The lists {first} and {second} have several lengths.")
    return list(zip(attributes.get(first, ()), attributes.get(second, ()), strict=True))


def _demand_sizes(attributes: Attributes, size: int, *names: str, optional: Sequence[str] = ()) -> None:
    for name in (*names, *(name for name in optional if len(attributes.get(name, ())))):
        if len(attributes.get(name, ())) != size:
            raise damaged(f"The list {name} does not have one entry for each node.")


def _demand_values(attributes: Attributes, name: str, size: int, *, gaps: bool = False) -> None:
    """Numbers in a list, or in a tensor, which have to be finite; with gaps some may be NaN, of rows not predicted."""
    values = np.asarray(attributes.get(name, attributes.get(f"{name}_as_tensor", ())))
    if values.shape != (size,) or not (np.isfinite(values) | (gaps & np.isnan(values))).all():
        raise damaged(f"The list {name} does not have one number for each node.")


def _demand_features(attributes: Attributes, is_split: NDArray[np.bool_]) -> None:
    _demand_range(np.array(attributes["nodes_featureids"], np.int64)[is_split], MAX_COLUMNS)


def _demand_range(numbers: Any, stop: int) -> None:
    values = np.array(numbers, np.int64)
    if not 0 < stop <= max(MAX_OUTPUTS, MAX_COLUMNS) or (values < 0).any() or (values >= stop).any():
        raise damaged("A number of an ensemble of trees is out of range.")
