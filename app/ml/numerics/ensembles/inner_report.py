"""Report of a learner inside a learner, with names for the inputs that it sees there."""

from collections.abc import Callable

from app.ml.contract.algorithm import JSON, FittedLearner, Vector
from app.ml.contract.explanations import column_sums, one_or_all
from app.ml.contract.named_numbers import Names, named
from app.ml.numerics.trees.tree_rules import rules_of

MAX_RULES = 100
"""Leaves of a tree up to which its rules are listed."""


def describe_fit(learned: FittedLearner, name: Callable[[int], JSON]) -> dict[str, JSON]:
    """Named coefficients of a linear form, rules of a tree, and the summary of the learner, whichever it has.

    name: of an input by its number.
    """
    algorithm, params, state = learned.algorithm, learned.params, learned.state
    described: dict[str, JSON] = {}
    if algorithm.linear is not None:
        coef, intercept = algorithm.linear(state)
        described["coefficients"] = [
            {"column": name(j), "coefficient": one_or_all(weights)} for j, weights in enumerate(coef)
        ]
        described["intercept"] = one_or_all(intercept)
    if "tree" in algorithm.queries:
        trees = algorithm.queries["tree"](params, state)
        levels = trees.tree(0).reached() if trees.members == 1 else []
        if 0 < sum(level.size for level in levels) < 2 * MAX_RULES:
            described["rules"] = named(list(rules_of(list(trees.tree(0).nodes(levels)))), Names(name))
    if algorithm.summary is not None:
        described["summary"] = named(algorithm.summary(params, state), Names(name))
    return described


def explain_row(learned: FittedLearner, row: Vector, name: Callable[[int], JSON]) -> dict[str, JSON]:
    """The algorithm's own explanation of the row (d,), or what each input adds to a linear form."""
    if learned.algorithm.explain is not None:
        return {
            "explanation": named(learned.algorithm.explain(learned.params, learned.state, row[None])[0], Names(name))
        }
    if learned.algorithm.linear is None:
        return {}
    (parts,) = column_sums(learned.algorithm.linear(learned.state), row[None])
    return dict(named(parts, Names(name)))
