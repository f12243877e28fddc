"""Parameters of all algorithms: one name has one meaning, one scale and one type."""

import re
from collections import defaultdict

import numpy as np
import pytest

from app.ml.catalogue import nested
from app.ml.catalogue.algorithm_files import catalogue, find
from app.ml.contract.algorithm import Data, Task
from app.ml.contract.parameter_levels import CRITICAL, EXPERT, level

COUNT, NUMBER, TRUTH, WORD = "integer", "number", "boolean", "string"
TABLE = {
    "C": (NUMBER, "Cost of a row"),
    "activation": (WORD, "Function of hidden units"),
    "cannot_link_weight": (NUMBER, "Penalty of a pair that cannot be together"),
    "cache_size": (NUMBER, "Most memory that computed rows of the kernel take"),
    "ccp_alpha": (NUMBER, "cost-complexity"),
    "class_loss": (WORD, "Loss that is minimised in classification"),
    "coef0": (NUMBER, "Constant in the kernels"),
    "contamination": (NUMBER, "Share of the training rows that are anomalies"),
    "covariance": (WORD, "Form of the covariance"),
    "criterion": (WORD, "Impurity"),
    "cv": (COUNT, "Number of folds"),
    "degree": (COUNT, "Degree of the kernels"),
    "early_stopping": (TRUTH, "held-out rows"),
    "epochs": (COUNT, "passes over the rows"),
    "batch_size": (COUNT, "Number of rows"),
    "estimator": ("Learner", "Learner that is trained for each|Learner that is trained on"),
    "estimators": ("Learners", "Members, whose predictions are combined"),
    "final_estimator": ("Learner", "combines the members"),
    "fit_intercept": (TRUTH, "constant term"),
    "gamma": (NUMBER, "Factor in the kernel"),
    "graph": (WORD, "Similarity graph of the rows"),
    "indefinite": (WORD, "not positive semidefinite"),
    "growth": (NUMBER, "Factor of the rate"),
    "hidden_layers": ("array", "Number of units of each hidden layer"),
    "init": (WORD, "Starting"),
    "init_range": (NUMBER, "Largest starting weight"),
    "interval_of": (WORD, "Target of a prediction interval"),
    "kernel": (WORD, "Kernel of two rows"),
    "l1": (NUMBER, "Penalty"),
    "l2": (NUMBER, "Penalty"),
    "laplacian": (WORD, "Laplacian of the graph"),
    "learning_rate": (NUMBER, "multiplied"),
    "loss": (WORD, "Loss that is minimised"),
    "max_bins": (COUNT, "Maximum number of histogram bins"),
    "max_delta_step": (NUMBER, "Largest value of a leaf"),
    "max_depth": (COUNT, "Maximum depth"),
    "max_features": ("MaxFeatures", "Columns"),
    "max_iter": (COUNT, "Maximum number of"),
    "max_leaf_nodes": (COUNT, "Maximum number of leaves"),
    "max_samples": (NUMBER, "share of all rows"),
    "metric": (WORD, "distance"),
    "metric_form": (WORD, "Form of the learned metric"),
    "min_impurity_decrease": (NUMBER, "Smallest decrease of impurity"),
    "min_margin": (NUMBER, "Smallest lead of the best class over the second"),
    "min_probability": (NUMBER, "Smallest probability"),
    "min_samples_leaf": (NUMBER, "Smallest .* of a leaf"),
    "min_samples_split": (NUMBER, "Smallest .* of a node that is split"),
    "missing": (WORD, "Treatment of missing values"),
    "momentum": (NUMBER, "Share of the step before"),
    "must_link_weight": (NUMBER, "Penalty of a pair that must be together"),
    "n_clusters": (COUNT, "Number of clusters"),
    "n_components": (COUNT, "Number of (directions|components)"),
    "n_estimators": (COUNT, "[Nn]umber of (members|trees|rounds|boosting rounds)"),
    "n_init": (COUNT, "Number of starts"),
    "n_iter_no_change": (COUNT, "without improvement on the held-out rows"),
    "n_neighbors": (COUNT, "Number of neighbours"),
    "optimizer": (WORD, "Method of the training"),
    "p": (NUMBER, "Power"),
    "penalise_intercept": (TRUTH, "intercept"),
    "priors": ("several", "Prior probabilities"),
    "radius": (NUMBER, "Largest distance"),
    "reduction": (NUMBER, "Factor of the rate"),
    "selection": (WORD, "Choice of the strength"),
    "sigma": (NUMBER, "Noise \\(standard deviation\\) of a row of weight 1"),
    "shrinkage": (NUMBER, "Share of the (pooled|mean) variance in"),
    "shuffle": (TRUTH, "new order"),
    "solver": (WORD, "."),
    "splits": (WORD, "Candidate thresholds"),
    "tol": (NUMBER, "Stop when"),
    "validation_fraction": (NUMBER, "Share of the rows held out"),
    "voting": (WORD, "`soft`.*`hard`|`hard`.*`soft`"),
    "weights": (WORD, "Neighbours"),
    "width": (NUMBER, "Kernel width"),
}
"""The type of a parameter, null aside, and what each of its descriptions says."""
RETIRED = [
    "accept_above",
    "answer",
    "base",
    "bins",
    "choice",
    "columns",
    "combine",
    "components",
    "count",
    "folds",
    "fraction",
    "gap",
    "gap_above",
    "held_out",
    "intercept",
    "k",
    "max_leaves",
    "members",
    "min_gain",
    "patience",
    "penalty",
    "pruning",
    "rate",
    "rounds",
    "second",
    "share",
    "sweeps",
    "theta",
    "trees",
    "vote",
    "words",
]
MEAN, SUM = {"lasso", "linear_sgd", "logistic"}, {"ridge"}
NETWORKS = {"autoencoder", "mlp"}
"""Their penalties stand beside the mean too; their minimum is not the only one."""


def kind_of(schema):
    """The type of the schema of a parameter, null aside."""
    (schema, *others) = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if schema.get("type") == "array" and "$ref" in schema["items"]:
        return f"{schema['items']['$ref'].rpartition('/')[2]}s"
    return "several" if others else schema["type"]


def parameters():
    """(algorithm, name, schema) of every parameter."""
    for algorithm, entry in catalogue().items():
        for name, schema in entry.algorithm.params.model_json_schema()["properties"].items():
            yield algorithm, name, schema


def test_no_parameter_has_a_retired_name():
    assert not [(algorithm, name) for algorithm, name, _ in parameters() if name in RETIRED]


def test_a_name_of_the_table_has_its_type_and_meaning_everywhere():
    wrong = [
        (algorithm, name)
        for algorithm, name, schema in parameters()
        if name in TABLE and (kind_of(schema) != TABLE[name][0] or not re.search(TABLE[name][1], schema["description"]))
    ]
    assert wrong == []


def test_names_that_algorithms_share_stand_in_the_table():
    algorithms = defaultdict(set)
    for algorithm, name, _ in parameters():
        algorithms[name].add(algorithm)
    assert {name for name, several in algorithms.items() if len(several) > 1} <= TABLE.keys()
    assert TABLE.keys() <= algorithms.keys()


def test_descriptions_of_penalties_name_the_objective_and_the_scale():
    for algorithm, name, schema in parameters():
        if name in {"l1", "l2"}:
            scale = "mean (not the sum)" if algorithm in MEAN | NETWORKS else "sum (not the mean)"
            assert f"beside the {scale} of " in schema["description"], algorithm
            assert "minimises" in schema["description"], algorithm


@pytest.mark.parametrize("algorithm", sorted(MEAN | SUM))
def test_penalties_beside_the_mean_do_not_depend_on_the_sum_of_weights(algorithm):
    """All weights three times as large: the same fit beside the mean, and beside the sum for a penalty three times."""
    rng, entry = np.random.default_rng(0), find(algorithm).algorithm
    x, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2, 60)
    task = Task.REGRESSION if Task.REGRESSION in entry.tasks else Task.CLASSIFICATION
    y = x @ [1.0, 0.5, 0] + rng.normal(size=60)
    y = y if task is Task.REGRESSION else (y > 0) * 1.0

    def coefficients(penalty, times):
        params = entry.params(**{"l1" if algorithm == "lasso" else "l2": penalty})
        return entry.fit(params, Data.of(task, x, y, weights=times * weights), nested.context(0)).state.coef

    once, factor = coefficients(0.3, 1), 3 if algorithm in SUM else 1
    np.testing.assert_allclose(coefficients(0.3 * factor, 3), once, rtol=1e-5)
    assert np.abs(coefficients(0.9, 1) - once).max() > 1e-3


def test_every_algorithm_shows_something_first_and_levels_name_parameters_that_exist():
    named = {name: entry.algorithm.params.model_fields.keys() for name, entry in catalogue().items()}
    assert CRITICAL.isdisjoint(EXPERT)
    assert (CRITICAL | EXPERT) - set().union(*named.values()) == set()
    assert {name for name, fields in named.items() if fields and all(level(one) == "expert" for one in fields)} == set()
