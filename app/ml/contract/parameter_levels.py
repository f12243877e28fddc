"""The order in which parameters deserve attention: a form shows first what changes a model most.

A name has one meaning in all algorithms, so it has one level. The levels are those of H2O.
"""

from typing import Literal, TypeAlias

Level: TypeAlias = Literal["critical", "secondary", "expert"]

CRITICAL = frozenset({
    "C", "alpha", "bandwidth", "contamination", "covariance", "density", "distance_threshold", "dropout", "eps",
    "epsilon", "estimator", "estimators", "final_estimator", "gamma", "graph", "grid_height", "grid_width",
    "growth", "hidden_layers", "kernel", "l1", "l2", "leaf_model", "learning_rate", "length_scale", "linkage",
    "loss", "max_depth", "max_rules", "metric", "n_clusters", "n_components", "n_estimators", "n_inducing",
    "n_neighbors", "noise", "nu", "representation", "selection", "shrinkage", "stages", "weighting", "width",
})  # fmt: skip
"""They decide how flexible a model is, how many parts it has, or which rows count as near."""
EXPERT = frozenset({
    "amplitude", "batch_size", "bits", "bound", "cache_size", "category_l2", "category_smoothing", "code_words",
    "coef0", "covariance_floor", "d0", "dof", "failure_probability", "focal_gamma", "huber_delta", "indefinite",
    "index", "init", "init_range", "interval_of", "literal", "max_bins", "max_delta_step", "max_iter",
    "missing_exceptions", "momentum", "n_iter_no_change", "optimizer", "penalise_intercept", "prior_rate",
    "prior_shape", "prior_variance", "push", "reduction", "settling", "shuffle", "solver", "step_offset",
    "step_scale", "tol", "validation_fraction",
})  # fmt: skip
"""They steer the search for a minimum, or are constants of its equations: the defaults suit nearly all tables."""


def level(name: str) -> Level:
    """Level of a parameter; one without a place above is secondary."""
    return "critical" if name in CRITICAL else "expert" if name in EXPERT else "secondary"
