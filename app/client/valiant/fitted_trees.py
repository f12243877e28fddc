"""Trees of a fitted estimator of scikit-learn, as the service imports them: no pickle leaves the machine.

Beside the trees go probe rows at and beside the thresholds, with the predictions of scikit-learn itself, which the
service compares with its own.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .fitted_parts import Fitted, NotImportable, classes_of, columns_of, described, named, written

LEAST_ROWS, MOST_ROWS = 1000, 5000
MAX_FLOAT = sys.float_info.max
"""In place of an infinite threshold, which all but missing values are below."""


class _Sum(NamedTuple):
    """A sum of trees: each a record, the sums before them, and what becomes of the sums."""

    trees: list[dict[str, Any]]
    base: list[float]
    transform: str
    single: bool
    average: bool = False
    sigmoid: float = 1.0


def fitted_trees(estimator: Any) -> Fitted:
    """The trees of an estimator, its classes and its own predictions of probe rows. Raises NotImportable."""
    import numpy as np  # noqa: PLC0415  scikit-learn has it; the client itself does not need it

    ensemble = READERS[type(estimator).__name__](estimator)
    classes = classes_of(estimator)
    rows = _probe_rows(estimator, ensemble)
    named_rows = named(rows, estimator)
    predicted = estimator.predict_proba(named_rows) if classes else estimator.predict(named_rows)
    predicted = np.asarray(predicted, np.float64).reshape(len(rows), -1)
    if len(ensemble.base) == 1 and classes:
        predicted = predicted[:, 1:]
    document = described(estimator, columns_of(estimator), rows) | {
        "format_name": "valiant-trees",
        "transform": ensemble.transform,
        "sigmoid": ensemble.sigmoid,
        "single": ensemble.single,
        "average": ensemble.average,
        "base": ensemble.base,
        "trees": ensemble.trees,
        "sums": _sums(estimator, ensemble, named_rows, predicted).tolist(),
        "predictions": predicted.tolist(),
    }
    return written(document)


def _sums(estimator: Any, ensemble: _Sum, rows: Any, predicted: Any) -> Any:
    """Before the transform, by the estimator's own function."""
    import numpy as np  # noqa: PLC0415

    if ensemble.transform == "identity":
        return predicted
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(rows), np.float64).reshape(len(rows), -1)
    return np.log(predicted)  # of the transform `exponential` alone


def _probe_rows(estimator: Any, ensemble: _Sum) -> Any:
    """(n, d): each threshold and the numbers beside it, of 32 and of 64 bits, among random ones of other columns."""
    import numpy as np  # noqa: PLC0415

    rng, tried = np.random.default_rng(0), []
    for column in range(estimator.n_features_in_):
        thresholds = [
            threshold
            for tree in ensemble.trees
            for split_column, threshold in zip(tree["column"], tree["threshold"], strict=True)
            if split_column == column
        ]
        bounds = np.unique([threshold for threshold in thresholds if threshold < MAX_FLOAT])
        single = bounds.astype(np.float32)
        near = [bounds, *(np.nextafter(bounds, end) for end in (-np.inf, np.inf)), single.astype(np.float64)]
        near += [np.nextafter(single, np.float32(end)).astype(np.float64) for end in (-np.inf, np.inf)]
        tried.append(np.unique(np.concatenate([*near, [0.0, 1.0, -1.0]])))
    n = min(max(LEAST_ROWS, *(values.size for values in tried)), MOST_ROWS)
    rows = np.stack([rng.permutation(np.resize(rng.permutation(values), n)) for values in tried], axis=1)
    missing = np.where(rng.random(rows.shape) < 0.05, np.nan, rows)
    try:
        estimator.predict(named(missing[:50], estimator))
    except ValueError:
        return rows
    return missing


def _forest(estimator: Any) -> _Sum:
    members = estimator.estimators_
    trees = [tree for member in members for tree in _leaf_means(member)]
    return _Sum(trees, [0.0] * _outputs(estimator), "identity", single=True, average=True)


def _single_tree(estimator: Any) -> _Sum:
    return _Sum(list(_leaf_means(estimator)), [0.0] * _outputs(estimator), "identity", single=True)


def _outputs(estimator: Any) -> int:
    """Sums: one for numbers and for two classes, else one for each class."""
    count = len(getattr(estimator, "classes_", ()))
    return count if count > 2 else 1


def _leaf_means(member: Any) -> Iterator[dict[str, Any]]:
    """The tree once for each output: shares of the class, or the mean."""
    tree = member.tree_
    values = tree.value[:, 0, :]
    if not hasattr(member, "classes_"):
        yield _record(tree, values[:, 0], 0)
        return
    shares = values / values.sum(axis=1, keepdims=True)  # counts in older versions
    if shares.shape[1] == 1:
        raise NotImportable("The estimator knows one class only.")
    for place, k in enumerate([1] if shares.shape[1] == 2 else range(shares.shape[1])):
        yield _record(tree, shares[:, k], place)


def _record(tree: Any, value: Any, output: int) -> dict[str, Any]:
    leaf = tree.children_left < 0
    missing = getattr(tree, "missing_go_to_left", None)
    return {
        "output": output,
        "column": [-1 if ends else int(column) for ends, column in zip(leaf, tree.feature, strict=True)],
        "threshold": [
            0.0 if ends else min(float(threshold_), MAX_FLOAT)
            for ends, threshold_ in zip(leaf, tree.threshold, strict=True)
        ],
        "left": tree.children_left.tolist(),
        "right": tree.children_right.tolist(),
        "missing_left": [False] * len(leaf) if missing is None else [bool(flag) for flag in missing],
        "value": [float(number) if ends else 0.0 for ends, number in zip(leaf, value, strict=True)],
    }


def _gradient_boosting(estimator: Any) -> _Sum:
    import numpy as np  # noqa: PLC0415

    rows = np.stack([np.zeros(estimator.n_features_in_), np.ones(estimator.n_features_in_)]).astype(np.float32)
    base = np.asarray(estimator._raw_predict_init(rows), np.float64)  # noqa: SLF001  nothing public has it
    if (base[0] != base[1]).any():
        raise NotImportable("GradientBoosting with an estimator as `init` cannot be imported: use its default.")
    trees = [
        _record(member.tree_, estimator.learning_rate * member.tree_.value[:, 0, 0], k)
        for stage in estimator.estimators_
        for k, member in enumerate(stage)
    ]
    if not hasattr(estimator, "classes_"):
        return _Sum(trees, base[0].tolist(), "identity", single=True)
    if len(estimator.classes_) > 2:
        return _Sum(trees, base[0].tolist(), "softmax", single=True)
    factor = 2.0 if estimator.loss == "exponential" else 1.0
    return _Sum(trees, base[0].tolist(), "sigmoid", single=True, sigmoid=factor)


def _hist_gradient_boosting(estimator: Any) -> _Sum:
    stages, base = estimator._predictors, estimator._baseline_prediction.ravel().tolist()  # noqa: SLF001  as above
    trees = [_hist_record(member.nodes, k) for stage in stages for k, member in enumerate(stage)]
    if hasattr(estimator, "classes_"):
        return _Sum(trees, base, "softmax" if len(base) > 1 else "sigmoid", single=False)
    if estimator.loss not in {"squared_error", "absolute_error", "quantile", "poisson", "gamma"}:
        raise NotImportable(f"The loss {estimator.loss!r} is not known.")
    return _Sum(trees, base, "exponential" if estimator.loss in {"poisson", "gamma"} else "identity", single=False)


def _hist_record(nodes: Any, output: int) -> dict[str, Any]:
    if nodes["is_categorical"].any():
        raise NotImportable("HistGradientBoosting with categorical columns cannot be imported: encode them as numbers.")
    leaf = nodes["is_leaf"].astype(bool)
    return {
        "output": output,
        "column": [-1 if ends else int(column) for ends, column in zip(leaf, nodes["feature_idx"], strict=True)],
        "threshold": [
            0.0 if ends else min(float(threshold), MAX_FLOAT)
            for ends, threshold in zip(leaf, nodes["num_threshold"], strict=True)
        ],
        "left": nodes["left"].astype(int).tolist(),
        "right": nodes["right"].astype(int).tolist(),
        "missing_left": nodes["missing_go_to_left"].astype(bool).tolist(),
        "value": [float(number) if ends else 0.0 for ends, number in zip(leaf, nodes["value"], strict=True)],
    }


READERS: dict[str, Callable[[Any], _Sum]] = {
    f"{name}{kind}": read
    for name, read in {
        "DecisionTree": _single_tree,
        "ExtraTree": _single_tree,
        "RandomForest": _forest,
        "ExtraTrees": _forest,
        "GradientBoosting": _gradient_boosting,
        "HistGradientBoosting": _hist_gradient_boosting,
    }.items()
    for kind in ("Classifier", "Regressor")
}
"""By the name of the estimator's class."""
