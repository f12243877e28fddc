"""A model that treelite has read, as trees of this service, with treelite's own predictions of probe rows.

Its general tree inference library (GTIL) is the reference: it is checked against the libraries themselves, and shares
no code with the traversal here.
"""

from typing import Any, NamedTuple

import numpy as np

from app.ml.algorithms.imported_trees import ImportedTrees, State
from app.ml.contract.algorithm import Matrix, TargetKind, Task, Vector
from app.ml.models.parsed_model import ParsedColumn, ParsedModel, Probes
from app.ml.numerics.trees.foreign_trees import ForeignTree, damaged, flattened, unsupported
from app.ml.numerics.trees.probe_rows import probe_rows

STRICT, INCLUSIVE = 2, 3
"""treelite's operators < and <=."""
SUBSET = 2
"""treelite's type of a node that tests for categories."""
TRANSFORMS = {
    "identity": "identity",
    "identity_multiclass": "identity",
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "multiclass_ova": "one_against_rest",
    "hinge": "step",
    "exponential": "exponential",
    "logarithm_one_plus_exp": "log_exponential",
    "signed_square": "signed_square",
}


class Described(NamedTuple):
    """Statements of the file beside its trees."""

    library: str
    objective: str
    """Empty: none is stated."""
    classifies: bool
    columns: tuple[ParsedColumn, ...]
    single: bool
    """Inputs and leaves are numbers of 32 bits."""
    trees: int
    zero: float = 0.0
    """Numbers up to it, of either sign, are compared as 0."""
    sigmoid: float | None = None
    """Factor of the sum in the logistic function; None: that of treelite."""
    warnings: tuple[str, ...] = ()


def parsed(model: Any, described: Described) -> ParsedModel:
    """Raises ImportUnsupported, and InvalidData for what is no tree."""
    import treelite  # noqa: PLC0415  it is an extra, and only this process has a use for it

    head = model.get_header_accessor()
    output, base = head.get_field("class_id").astype(np.intp), np.array(head.get_field("base_scores"), np.float64)
    k = _outputs(head, base.size)
    if (output < 0).any() or (output >= k).any():
        raise damaged("A tree is added to an output that does not exist.")
    columns = _named(described.columns, int(head.get_field("num_feature")[0]))
    level_counts = np.array([len(column.levels or ()) for column in columns], np.intp)
    if not output.size == model.num_tree == described.trees > 0:
        raise damaged("There are no trees, or others than the file states.")
    trees = [_tree(model.get_tree_accessor(t)) for t in range(output.size)]
    flat = flattened(trees, len(columns), level_counts, single=described.single, zero=described.zero)
    params = ImportedTrees.model_validate(
        {
            "library": described.library,
            "objective": described.objective,
            "transform": _transform(str(head.get_field("postprocessor"))),
            "arithmetic": "float32" if described.single else "float64",
            "average": bool(head.get_field("average_tree_output")[0]),
            "sigmoid": described.sigmoid or float(head.get_field("sigmoid_alpha")[0]),
        }
    )
    task = Task.of_target(TargetKind.CLASSES if described.classifies else TargetKind.NUMBERS)
    if k > 1 and not described.classifies:
        raise unsupported("several_outputs", "/objective", "The model predicts several numbers at once.")
    classes = max(2, k) if described.classifies else 0
    state = State(flat, output, base[:k] if k == base.size else np.zeros(k), classes)
    rows = probe_rows(flat)
    seen = rows.astype(np.float32) if described.single else np.where(np.abs(rows) <= described.zero, 0.0, rows)
    sums = treelite.gtil.predict(model, np.ascontiguousarray(seen), nthread=1, pred_margin=True)
    outcome = treelite.gtil.predict(model, np.ascontiguousarray(seen), nthread=1)
    probes = Probes(rows, _flat(sums, k), _flat(outcome, k))
    named = tuple(_with_codes(column, int(flat.levels[j])) for j, column in enumerate(columns))
    return ParsedModel(
        "imported_trees", params, state, task, named, probes, f"treelite {treelite.__version__}", described.warnings
    )


def _outputs(head: Any, bases: int) -> int:
    shape = np.array(head.get_field("leaf_vector_shape"))
    if int(head.get_field("num_target")[0]) != 1 or (shape != 1).any():
        raise unsupported("several_outputs", "/trees", "Each leaf holds several numbers.")
    k = int(head.get_field("num_class")[0])
    if not 1 <= k <= bases:
        raise damaged("The number of classes is not that of the outputs.")
    return k


def _transform(name: str) -> str:
    if name not in TRANSFORMS:
        raise unsupported("unknown_transform", "/objective", "The transform of the predictions is not known here.")
    return TRANSFORMS[name]


def _named(columns: tuple[ParsedColumn, ...], count: int) -> tuple[ParsedColumn, ...]:
    if not columns:
        return tuple(ParsedColumn(f"f{j}") for j in range(count))
    if len(columns) != count:
        raise damaged("The file does not name each of its columns.")
    if len({column.name for column in columns}) < count:
        raise unsupported("same_name", "/feature_names", "Two columns have the same name.")
    return columns


def _with_codes(column: ParsedColumn, codes: int) -> ParsedColumn:
    """Codes are the levels of a column of categories for which the file has no names."""
    if not codes or column.levels is not None:
        return column
    return column._replace(levels=tuple(map(str, range(codes - 1))), source_kind="numeric", codes_only=True)


def _tree(tree: Any) -> ForeignTree:
    """The fields as they are: `flattened` looks at what they hold. They are copied: treelite's arrays are views of
    memory that it frees.
    """
    get = tree.get_field
    is_leaf, operator = np.array(get("cleft")) < 0, np.array(get("cmp"))
    if (np.array(get("split_index"))[~is_leaf] < 0).any():
        raise damaged("A split is of a column that does not exist.")
    subset = np.array(get("node_type")) == SUBSET
    if not np.isin(operator[~is_leaf & ~subset], (STRICT, INCLUSIVE)).all():
        raise unsupported("operator", "/trees", "A split compares other than by < or <=.")
    return ForeignTree(
        np.where(is_leaf, -1, get("split_index")).astype(np.int32),
        np.array(get("threshold"), np.float64),
        operator == STRICT,
        np.array(get("cleft")),
        np.array(get("cright")),
        np.array(get("default_left"), np.bool_),
        np.array(get("leaf_value"), np.float64),
        subset,
        np.array(get("category_list_right_child"), np.bool_),
        np.array(get("category_list_begin")).astype(np.intp),
        np.array(get("category_list_end")).astype(np.intp),
        np.array(get("category_list")).astype(np.intp),
        _cover(tree, is_leaf.size),
    )


def _cover(tree: Any, size: int) -> Vector | None:
    """(N,) the training rows of each node (LightGBM), or the sum of their second derivatives (XGBoost)."""
    for name in ("data_count", "sum_hess"):
        stated = np.array(tree.get_field(name), np.float64)
        if stated.size == size:
            return stated
    return None


def _flat(predicted: Any, k: int) -> Matrix:
    return np.ascontiguousarray(np.asarray(predicted, np.float64).reshape(len(predicted), k))
