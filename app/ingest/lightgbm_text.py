"""Text of a LightGBM model, checked number by number, and written again with nothing but what was checked.

treelite trusts the indices of such a file: a child of -13 among three leaves is a read before an array. It also takes
a line after the last tree for one of that tree. So it reads the text that `checked` writes, never the file itself.

References: `src/io/tree.cpp` and `src/boosting/gbdt_model_text.cpp` of LightGBM 4.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Labels, Vector
from app.ml.numerics.trees.foreign_trees import damaged, unsupported, walk

MISSING_BITS, ZERO, MISSING_KINDS = 2, 1, 3
"""Bits 2 and 3 of `decision_type` state what is missing: nothing, zeros, or NaN."""
CATEGORICAL, MAX_DECISION = 1, 15
FIRST, END = "Tree=", "end of trees"
WHOLE = re.compile(r"-?\d{1,10}(?: -?\d{1,10})*", re.ASCII)
REAL = re.compile(r"(?:[-+.\deE]{1,30}|inf)(?: (?:[-+.\deE]{1,30}|inf))*", re.ASCII)
"""An infinite threshold parts all numbers from missing values."""
OBJECTIVE = re.compile(r"[\x21-\x7e]{1,100}(?: [\x21-\x7e]{1,100}){0,9}")
MAX_COLUMNS, MAX_CLASSES = 100_000, 10_000
WORD_BITS = 32
Lines = Mapping[str, str]


class CheckedText(NamedTuple):
    head: Lines
    """The lines `name=value` before the first tree."""
    tail: str
    """All after the last tree."""
    text: str
    """Text that is read instead of the file."""
    trees: int


def checked(content: bytes, iterations: int | None = None) -> CheckedText:
    """iterations: boosting rounds that are kept; None: all. Raises InvalidData and ImportUnsupported."""
    if b"\0" in content:
        raise damaged("The file holds a character that no text has.")
    try:
        lines = [line.removesuffix("\r") for line in content.decode().split("\n")]
    except UnicodeDecodeError:
        raise damaged("The names in the file are not UTF-8.") from None
    if lines[0] != "tree":
        raise damaged("The text of a LightGBM model begins with a line that holds the word tree alone.")
    starts = [number for number, line in enumerate(lines) if line.startswith(FIRST)]
    if not starts:
        raise damaged("There are no trees.")
    if END not in lines[starts[-1] :]:
        raise damaged("The file ends before the last of its trees does.")
    end = lines.index(END, starts[-1])
    head = _fields(lines[: starts[0]])
    columns, classes = _columns(head), _classes(head)
    texts = [lines[first:last] for first, last in pairwise([*starts, end])]
    blocks = [_fields(text[1:]) for text in texts]
    sizes = [str(sum(len(line.encode()) + 1 for line in text)) for text in texts]
    if head.get("tree_sizes", "").split() not in ([], sizes) or len(blocks) % classes:
        raise damaged("The file does not hold the trees that it states.")
    trees = [_tree(block, columns) for block in blocks[: (iterations or len(blocks)) * classes]]
    stated: dict[str, str | int] = {
        "num_class": classes,
        "num_tree_per_iteration": classes,
        "max_feature_idx": columns - 1,
    }
    if (objective := head.get("objective")) is not None:
        if not OBJECTIVE.fullmatch(objective):
            raise damaged("The objective is not one of LightGBM.")
        stated["objective"] = objective
    written = ["tree", *_written(stated), *(["average_output"] if "average_output" in lines[: starts[0]] else [])]
    for number, tree in enumerate(trees):
        written += ["", f"{FIRST}{number}", *_written(tree)]
    return CheckedText(head, "\n".join(lines[end + 1 :]), "\n".join([*written, "", END, ""]), len(trees))


def _written(fields: Mapping[str, object]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in fields.items())


def _fields(lines: list[str]) -> dict[str, str]:
    pairs = [line.split("=", 1) for line in lines if "=" in line]
    fields = {name: value for name, value in pairs}  # noqa: C416  the pairs are lists
    if len(fields) < len(pairs):
        raise damaged("A line of the file is there twice.")
    return fields


def _columns(head: Lines) -> int:
    columns = _number(head, "max_feature_idx", range(MAX_COLUMNS)) + 1
    if any(len(head.get(name, "").split(" ")) != columns for name in ("feature_names", "feature_infos")):
        raise damaged("The file does not name each of its columns.")
    return columns


def _classes(head: Lines) -> int:
    classes = _number(head, "num_class", range(1, MAX_CLASSES + 1))
    if _number(head, "num_tree_per_iteration", range(1, MAX_CLASSES + 1)) != classes:
        raise damaged("Not each class has a tree in each iteration.")
    return classes


def _tree(fields: Lines, columns: int) -> dict[str, str | int]:
    """The fields that count, each of the stated size, with no index that leads out of the tree."""
    if fields.get("is_linear", "0") != "0":
        raise unsupported("linear_tree", "/trees", "Leaves hold linear models: train without linear_tree.")
    limit = range(1 + sum(map(len, fields.values())))  # no array has more numbers than the text has letters
    leaves, subsets = _number(fields, "num_leaves", limit[1:]), _number(fields, "num_cat", limit)
    if not np.isfinite(_reals(fields, "leaf_value", leaves)).all():
        raise damaged("The value of a leaf is not finite.")
    record: dict[str, str | int] = {"num_leaves": leaves, "num_cat": subsets, "leaf_value": fields["leaf_value"]}
    if leaves == 1:
        return record | {"num_cat": 0}
    nodes = leaves - 1
    left, right = (_wholes(fields, name, nodes, range(-leaves, nodes)) for name in ("left_child", "right_child"))
    _demand_tree(left, right, leaves)
    _wholes(fields, "split_feature", nodes, range(columns))
    kinds = _wholes(fields, "decision_type", nodes, range(MAX_DECISION + 1))
    missing = kinds >> MISSING_BITS
    if (missing == ZERO).any():
        detail = "Zeros count as missing: train without zero_as_missing, with NaN for missing values."
        raise unsupported("zero_as_missing", "/trees", detail)
    if (missing == MISSING_KINDS).any():
        raise damaged("A split does not state what is missing.")
    thresholds = _reals(fields, "threshold", nodes)
    for name in ("left_child", "right_child", "split_feature", "decision_type", "threshold"):
        record[name] = fields[name]
    record |= _counts(fields, leaves)
    if not subsets:
        if (kinds & CATEGORICAL).any():
            raise damaged("A split of categories has none.")
        return record
    _demand_subsets(fields, subsets, thresholds[(kinds & CATEGORICAL) > 0])
    return record | {name: fields[name] for name in ("cat_boundaries", "cat_threshold")}


def _counts(fields: Lines, leaves: int) -> dict[str, str]:
    """The training rows of each leaf and each node, where both are there."""
    sizes = {"leaf_count": leaves, "internal_count": leaves - 1}
    if not sizes.keys() <= fields.keys():
        return {}
    for name, size in sizes.items():
        _wholes(fields, name, size, range(2**31))
    return {name: fields[name] for name in sizes}


def _demand_tree(left: Labels, right: Labels, leaves: int) -> None:
    """Raises InvalidData unless each node but the root, and each leaf, is the child of one node."""
    nodes = left.size
    below = [np.where(child < 0, nodes + ~child, child) for child in (left, right)]
    none = np.zeros(leaves, np.int64)
    reached = walk(np.arange(nodes + leaves) < nodes, *(np.concatenate([child, none]) for child in below))
    if reached.size != nodes + leaves:
        raise damaged("A node of a tree is not reached.")


def _demand_subsets(fields: Lines, subsets: int, thresholds: Vector) -> None:
    """Raises InvalidData unless each subset of categories is a part of the words that hold them all."""
    words = 1 + fields.get("cat_threshold", "").count(" ")
    ends = _wholes(fields, "cat_boundaries", subsets + 1, range(words + 1))
    _wholes(fields, "cat_threshold", words, range(1 << WORD_BITS))
    if ends[0] != 0 or ends[-1] != words or (np.diff(ends) < 1).any():
        raise damaged("The categories of a split are not among those of the file.")
    if ((thresholds != np.floor(thresholds)) | (thresholds < 0) | (thresholds >= subsets)).any():
        raise damaged("A split of categories has none.")


def _number(fields: Lines, name: str, limits: range) -> int:
    return int(_wholes(fields, name, 1, limits)[0])


def _wholes(fields: Lines, name: str, size: int, limits: range) -> Labels:
    """(size,) whole numbers within the limits."""
    numbers = _numbers(fields, name, size, WHOLE, int)
    if (numbers < limits.start).any() or (numbers >= limits.stop).any():
        raise damaged(f"A number of {name} is out of range.")
    return numbers.astype(np.int64)


def _reals(fields: Lines, name: str, size: int) -> Vector:
    """(size,) numbers, some of which may be infinite."""
    return _numbers(fields, name, size, REAL, float).astype(np.float64)


def _numbers(
    fields: Lines, name: str, size: int, pattern: re.Pattern[str], number: Callable[[str], float]
) -> NDArray[np.number]:
    value = fields.get(name, "").rstrip(" ")
    if value.count(" ") + 1 != size or not pattern.fullmatch(value):
        raise damaged(f"{name} does not hold {size} numbers.")
    try:
        return np.array([number(cell) for cell in value.split(" ")])
    except ValueError:
        raise damaged(f"{name} does not hold {size} numbers.") from None
