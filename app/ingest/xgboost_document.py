"""Document of trees of XGBoost, checked number by number, and written again with nothing but what was checked.

treelite trusts the indices of such a file, and reads a field that is there twice as two. So it reads the JSON that
`checked` writes, never the file itself.

References: https://xgboost.readthedocs.io, "Introduction to Model IO"; `src/tree/tree_model.cc` of XGBoost 3.
"""

import json
import re
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels
from app.ml.contract.model_file_options import ModelFileOptions
from app.ml.numerics.trees.foreign_trees import damaged, unsupported, walk

BOOSTERS = {"gbtree", "dart"}
MAX_COLUMNS, MAX_CLASSES, MAX_CATEGORY = 100_000, 10_000, 2**24
SCORE = re.compile(r"\[?[-+.\deE]{1,30}(?:,[-+.\deE]{1,30})*\]?", re.ASCII)
LEAF = -1
K = TypeVar("K", bound=np.number)


class CheckedDocument(NamedTuple):
    text: str
    """Document that is read instead of the file."""
    trees: int
    rounds: int
    """Boosting rounds of the file."""


def checked(learner: Any, version: Any, options: ModelFileOptions) -> CheckedDocument:
    """Raises InvalidData and ImportUnsupported; KeyError, TypeError and ValueError for what is no such document."""
    booster, params = learner["gradient_booster"], learner["learner_model_param"]
    name = booster["name"]
    if name not in BOOSTERS:
        detail = "The boosters gbtree, dart and gblinear can be imported."
        raise unsupported(str(name)[:40], "/learner/gradient_booster/name", detail)
    columns, classes = column_count(params), number(params["num_class"], range(MAX_CLASSES + 1))
    if number(params.get("num_target", 1), range(2**31)) != 1:
        raise unsupported("several_outputs", "/learner", "The model predicts several numbers at once.")
    model = booster["gbtree"]["model"] if name == "dart" else booster["model"]
    trees = model["trees"]
    groups = max(1, classes)
    if not isinstance(trees, list) or not trees:
        raise damaged("There are no trees.")
    outputs = wholes(model["tree_info"], len(trees), range(groups))
    ends = _rounds(model, len(trees), groups)
    rounds = _chosen(ends.size - 1, learner, options)
    tree_count = int(ends[rounds])
    types = learner.get("feature_types") or ["c"] * columns  # without types any column may be split so
    if len(types) != columns:
        raise damaged("The file does not state the kind of each of its columns.")
    categorical = np.array([kind == "c" for kind in types])
    written = {"trees": [_tree(tree, categorical, i) for i, tree in enumerate(trees[:tree_count])]}
    inner: dict[str, Any] = {"name": "gbtree", "model": written | {"tree_info": outputs[:tree_count].tolist()}}
    if name == "dart":
        inner = {
            "name": "dart",
            "gbtree": inner,
            "weight_drop": reals(booster["weight_drop"], len(trees))[:tree_count].tolist(),
        }
    score = str(params["base_score"])
    if not SCORE.fullmatch(score) or not np.isfinite([float(part) for part in score.strip("[]").split(",")]).all():
        raise damaged("The base score is not a finite number.")
    stated = {"base_score": score, "num_class": str(classes), "num_feature": str(columns), "num_target": "1"}
    document = {
        "version": wholes(version, 3, range(10_000)).tolist(),
        "learner": {
            "learner_model_param": stated,
            "gradient_booster": inner,
            "objective": {"name": str(learner["objective"]["name"])[:200]},
        },
    }
    return CheckedDocument(json.dumps(document), tree_count, ends.size - 1)


def column_count(params: Any) -> int:
    """Number of columns that the file states."""
    return number(params["num_feature"], range(1, MAX_COLUMNS + 1))


def best_round(learner: Any) -> int | None:
    """The best round of early stopping, from 0; None: the file names none."""
    best = dict(learner.get("attributes") or {}).get("best_iteration")
    return None if best is None else number(best, range(2**31))


def _rounds(model: Any, trees: int, groups: int) -> Labels:
    """(rounds + 1,) the trees before each round."""
    if (ends := model.get("iteration_indptr")) is not None:
        ends = wholes(ends, len(ends), range(trees + 1))
        if ends.size < 2 or ends[0] != 0 or ends[-1] != trees or (np.diff(ends) < 0).any():
            raise damaged("The rounds of the training do not hold the trees.")
        return ends
    step = groups * number((model.get("gbtree_model_param") or {}).get("num_parallel_tree", 1), range(1, trees + 1))
    if trees % step:
        raise damaged("The rounds of the training do not hold the trees.")
    return np.arange(0, trees + 1, step)


def _chosen(rounds: int, learner: Any, options: ModelFileOptions) -> int:
    if options.rounds is not None:
        return min(options.rounds, rounds)
    best = best_round(learner)
    return rounds if best is None or not options.best else min(best + 1, rounds)


def _tree(tree: Any, categorical: NDArray[np.bool_], place: int) -> dict[str, Any]:
    """The fields that count, each of the stated size, with no index that leads out of the tree.

    categorical: (columns,) whether categories are in the column.
    """
    columns = categorical.size
    stated = tree["tree_param"]
    if number(stated.get("size_leaf_vector", 0), range(2**31)) > 1:
        raise unsupported("several_outputs", "/trees", "Each leaf holds several numbers.")
    size = number(stated["num_nodes"], range(1, 1 + len(tree["left_children"])))
    left, right = (wholes(tree[name], size, range(LEAF, size)) for name in ("left_children", "right_children"))
    is_split = left != LEAF
    if (is_split != (right != LEAF)).any():
        raise damaged("A node of a tree has one child.")
    walk(is_split, left, right)
    conditions = floats(tree["split_conditions"], size)
    split_columns = wholes(tree["split_indices"], size, range(columns))
    if np.isnan(conditions).any() or not np.isfinite(conditions[~is_split]).all():
        raise damaged("A threshold of a split, or a leaf, is not a finite number.")
    written = {
        "id": place,
        "tree_param": {
            "num_nodes": str(size),
            "size_leaf_vector": "1",
            "num_feature": str(columns),
            "num_deleted": "0",
        },
        "left_children": left.tolist(),
        "right_children": right.tolist(),
        "parents": [0] * size,
        "base_weights": [0.0] * size,
        "split_indices": split_columns.tolist(),
        "split_conditions": conditions.tolist(),
        "default_left": wholes(tree["default_left"], size, range(2)).tolist(),
    }
    if "sum_hessian" in tree:
        written["sum_hessian"] = reals(tree["sum_hessian"], size).tolist()
    if "split_type" not in tree or not len(tree["split_type"]):
        return written
    by_category = wholes(tree["split_type"], size, range(2))
    nodes = wholes(tree["categories_nodes"], len(tree["categories_nodes"]), range(size))
    categories = wholes(tree["categories"], len(tree["categories"]), range(MAX_CATEGORY))
    starts, sizes = (
        wholes(tree[name], nodes.size, range(categories.size + 1))
        for name in ("categories_segments", "categories_sizes")
    )
    if (starts + sizes > categories.size).any():
        raise damaged("The categories of a split are not among those of the file.")
    splits = np.flatnonzero((by_category == 1) & is_split)
    if (np.diff(nodes) <= 0).any() or not np.isin(splits, nodes).all():
        raise damaged("A split of categories has none.")
    if not categorical[split_columns[splits]].all():
        raise damaged("A split by categories has a column that the file declares numeric.")
    return written | {
        "split_type": by_category.tolist(),
        "categories_nodes": nodes.tolist(),
        "categories": categories.tolist(),
        "categories_segments": starts.tolist(),
        "categories_sizes": sizes.tolist(),
    }


def number(value: Any, limits: range) -> int:
    """A whole number, which the document may hold as a text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,10}", value, re.ASCII):
        value = int(value)
    return int(wholes([value], 1, limits)[0])


def wholes(values: Any, size: int, limits: range) -> Labels:
    """(size,) whole numbers within the limits."""
    numbers = _array(values, size, "iub", np.int64)
    if (numbers < limits.start).any() or (numbers >= limits.stop).any():
        raise damaged("A number of the file is out of range.")
    return numbers.astype(np.intp)


def reals(values: Any, size: int) -> NDArray[np.float32]:
    """(size,) finite numbers of 32 bits."""
    numbers = floats(values, size)
    if not np.isfinite(numbers).all():
        raise damaged("A number of the file is not finite.")
    return numbers


def floats(values: Any, size: int) -> NDArray[np.float32]:
    """(size,) numbers of 32 bits."""
    with np.errstate(over="ignore"):
        return _array(values, size, "iubf", np.float32)


def _array(values: Any, size: int, kinds: str, kind: type[K]) -> NDArray[K]:
    numbers = np.asarray(values)
    if numbers.shape != (size,) or (size and numbers.dtype.kind not in kinds):
        raise damaged(f"{size} numbers of the file are not there.")
    return numbers.astype(kind)
