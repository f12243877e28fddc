"""Candidates of a search for the best model: settings of families of learners that differ on purpose.

The settings are start values from published portfolios and the defaults of their papers: each family's first is its
usual one, the later ones move away from it.

References: Feurer et al. (2022), Auto-sklearn 2.0, JMLR 23:261; Salinas & Erickson (2024), TabRepo, arXiv:2311.02971.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from app.ml.contract.task import PredictionKind

Preset = Literal["fast", "balanced", "best", "interpretable", "small"]
MAX_MEMBERS: Mapping[str, int] = {"fast": 1, "balanced": 8, "best": 25, "interpretable": 1, "small": 1}
"""Members of an ensemble, by preset."""
SMALL_BYTES = 100_000
"""Size of a model that `small` may make."""
BOOSTING = (
    # learning_rate, max_leaf_nodes, min_samples_leaf, l2, max_features, max_samples, l1, extra_trees
    (0.1, 31, 20, 1.0, 1.0, 1.0, 0.0, False),
    (0.05, 15, 10, 1.0, 0.6, 0.9, 0.0, False),
    (0.03, 63, 5, 0.5, 0.5, 0.9, 0.1, True),
    (0.05, 6, 3, 5.0, 0.6, 0.8, 1.0, False),
    (0.08, 16, 12, 0.5, 0.7, 0.7, 1.0, False),
    (0.03, 127, 15, 1.0, 0.7, 0.9, 0.0, False),
    (0.05, 8, 1, 10.0, 0.4, 0.7, 0.1, True),
    (0.02, 31, 3, 0.5, 0.5, 0.8, 0.5, False),
    (0.015, 16, 40, 2.0, 0.6, 0.9, 1.0, True),
    (0.01, 84, 3, 1.0, 0.5, 1.0, 0.0, False),
)
STEPS = 30.0
"""Learning rate times the most rounds; early stopping ends them earlier."""
MAX_SVM_ROWS, MAX_STRONG_SVM_ROWS, MAX_PROCESS_ROWS = 20_000, 5_000, 1_000
"""Training rows above which kernels of all pairs cost more than they gain."""


class Setting(NamedTuple):
    """An algorithm with parameters."""

    algorithm: Mapping[str, Any]
    """Its `name` and the parameters that differ from their defaults."""
    max_rows: int | None = None
    """Training rows above which it is no candidate; None: any number."""

    @property
    def family(self) -> str:
        return str(self.algorithm["name"])


def portfolio(kind: PredictionKind, preset: Preset) -> list[Setting]:
    """Settings for predictions of this kind, families in turn: the first of each, then the second of each."""
    classes = kind is PredictionKind.PROBABILITIES
    if preset == "interpretable":
        return [*_readable(classes=classes)]
    families: dict[str, list[Setting]] = {}
    for setting in (*_linear(classes=classes), *_trees(classes=classes), *_others(classes=classes)):
        families.setdefault(setting.family, []).append(setting)
    depth = max(map(len, families.values()))
    return [settings[place] for place in range(depth) for settings in families.values() if place < len(settings)]


def _linear(*, classes: bool) -> Iterator[Setting]:
    if classes:
        yield Setting({"name": "logistic"})
        yield Setting({"name": "generative_bayes"})
        return
    yield Setting({"name": "ridge", "selection": "lowest_error"})
    yield Setting({"name": "lasso", "selection": "lowest_error"})


def _trees(*, classes: bool) -> Iterator[Setting]:
    for rate, leaves, rows, l2, features, samples, l1, extra in BOOSTING:
        yield Setting(
            {
                "name": "gradient_boosting",
                "n_estimators": round(STEPS / rate),
                "learning_rate": rate,
                "max_leaf_nodes": leaves,
                "min_samples_leaf": float(rows),
                "l2": l2,
                "max_features": features,
                "max_samples": samples,
                "l1": l1,
                "extra_trees": extra,
                "early_stopping": True,
                "n_iter_no_change": 20,
            }
        )
    forest = {"name": "random_forest", "n_estimators": 300, **({"voting": "soft"} if classes else {})}
    yield Setting(forest)
    yield Setting({**forest, "min_samples_leaf": 5.0, "max_features": 0.5})
    if classes:
        yield Setting({**forest, "probability": "calibrated"})


def _others(*, classes: bool) -> Iterator[Setting]:
    yield Setting({"name": "knn", "n_neighbors": 5})
    yield Setting({"name": "knn", "n_neighbors": 25, "weights": "distance"})
    name = "svm" if classes else "svr"
    for cost, rows in ((1.0, MAX_SVM_ROWS), (10.0, MAX_SVM_ROWS), (0.3, MAX_STRONG_SVM_ROWS)):
        yield Setting({"name": name, "C": cost}, rows)
    for network in ({"hidden_layers": [100]}, {"hidden_layers": [256, 128], "dropout": 0.1}, {"hidden_layers": [64]}):
        l2 = {"l2": 0.01} if network["hidden_layers"] == [64] else {}
        yield Setting({"name": "mlp", "early_stopping": True, **network, **l2})
    if not classes:
        yield Setting({"name": "gaussian_process"}, MAX_PROCESS_ROWS)
        yield Setting({"name": "additive"})


def _readable(*, classes: bool) -> Iterator[Setting]:
    """Models that a person can read."""
    if classes:
        yield Setting({"name": "logistic"})
        yield Setting({"name": "logistic", "l2": 0.01})
        yield Setting({"name": "rules", "max_rules": 20})
    else:
        yield Setting({"name": "linear"})
        yield Setting({"name": "ridge", "selection": "lowest_error"})
        yield Setting({"name": "lasso", "selection": "one_standard_error"})
        yield Setting({"name": "additive"})
    for leaves in (16, 8, 4):
        yield Setting({"name": "decision_tree", "max_leaf_nodes": leaves, "min_samples_leaf": 5.0})
