r"""Rules: if all of these tests hold, then this class; the first rule that fires decides, else the default.

A rule is a conjunction of tests of one column each (x ≤ t, x > t, x among categories, x is known, x is missing) with
the shares of the classes among the training rows that it predicts. Rules are read off a tree, one for each path from
its root to a leaf, which together are complete and free of contradiction. Each then loses the tests it can do without,
as long as its error, taken pessimistically (the upper limit of a binomial share at confidence 0.75), does not grow;
they are tried by this error, the surest first, and a rule that never comes first is dropped. What the rules before it
leave of a rule's training rows gives its probabilities; over all training rows these have the frequencies of the
classes as their mean. Shorter rules may fire together: where two of them name different classes, the conflict is
reported with the training rows both fire on. A row on which none fires gets the last word, the shares of the rows that
are left over, or else of all.

Rules may also be `given`. They are tried in their order and predict the class they name, with probability 1 or the
one given; the training rows show for each on how many it fires and errs, which contradict each other, and the default,
unless it is given too.
A test of a missing value, or of a category that training never saw, does not hold.

Rules of few rows are too sure. On the benchmark table `many_categories.yes` the log loss is 1.60, that of a tree
of scikit-learn with 32 leaves 1.10, and 0.96 with `min_samples_leaf` 20; `shorten` false leaves it at 1.58.
The tree has 3 rows a leaf, too: its lead at that size is unexplained.

In short: A list of rules, each a few tests joined by and; the first that fires decides. They are given, or read off a
tree and shortened. A warning names the rules that would contradict each other.

Use when: the model must be read, discussed and signed by people who decide by rules themselves.

A light and a sound, either of which is an alarm, give rules of one test, and a last one of two:

>>> from itertools import product
>>> x = np.array(list(product([0.0, 1.0], repeat=2)) * 10)
>>> data = Data.of(Task.CLASSIFICATION, x, (x[:, 0] > 0) | (x[:, 1] > 0))
>>> state = fit(RuleSet(), data, Context.of(0)).state
>>> for rule in summary(RuleSet(), state)["rules"]:
...     print([(test["column"], test["op"], test["value"]) for test in rule["if"]], rule["then"], rule["rows"])
[(0, '>', 0.5)] 1 20.0
[(1, '>', 0.5)] 1 20.0
[(0, '<=', 0.5), (1, '<=', 0.5)] 0 10.0

References: Quinlan (1993), C4.5, ch. 5; Battiti & Brunato, The LION Way, ch. 6.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from pydantic import Field

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Accepts,
    Algorithm,
    Context,
    Data,
    Fit,
    Labels,
    Matrix,
    Params,
    Symmetry,
    Task,
    Vector,
)
from app.ml.contract.labels import Label
from app.ml.contract.named_numbers import every
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.rules.conditions import (
    COMPARES,
    OPS,
    Condition,
    GivenRule,
    Rule,
    Truths,
    code_of,
    given_faults,
    together,
    understood,
)
from app.ml.numerics.tensor_graphs.condition_tensors import all_of, condition_tensor
from app.ml.numerics.trees.binning import ranked
from app.ml.numerics.trees.compiled.column_split import GINI
from app.ml.numerics.trees.growth import Grower, Grown, Rules
from app.ml.numerics.trees.one_tree import branches_of

CONFIDENCE = 0.75
"""Confidence of the upper limit of an error, as in C4.5."""


class RuleSet(Params):
    given: list[GivenRule] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Rules in the order in which they are tried; null: they are learned.",
    )
    otherwise: Label | None = Field(
        None, description="Class where no given rule fires; null: the shares of the training rows left over."
    )
    shorten: bool = Field(
        True,
        description="Removes tests from learned rules that they can do without; if false, a rule fires on any row.",
    )
    max_depth: int = Field(6, ge=1, le=30, description="Maximum depth of the tree: at most so many tests in a rule.")
    max_rules: int = Field(
        32, ge=2, le=1000, description="Maximum number of leaves of the tree that the rules are read off."
    )
    min_samples_leaf: float = Field(3.0, gt=0, le=1e9, description="Smallest weight of the training rows of a leaf.")


class State(NamedTuple):
    rules: tuple[Rule, ...]
    otherwise: Vector
    """(k,) the last word."""
    conflicts: Matrix
    """(c, 3): two rules, and the weight of the training rows on which both fire with different classes."""


def fit(params: RuleSet, data: Data, context: Context) -> Fit[State]:
    return _learned(params, data, context) if params.given is None else _given(params, params.given, data)


def _given(params: RuleSet, stated_rules: Sequence[GivenRule], data: Data) -> Fit[State]:
    """The rules unchanged; the rows give how often each fires and errs, and which contradict each other."""
    rules, warnings = understood(stated_rules, data)
    last = None if params.otherwise is None else code_of(params.otherwise, data)
    if params.otherwise is not None and last is None:
        fault = Fault("/algorithm/otherwise", "No training row is of such a class.", "unknown_class")
        raise InvalidData("The given rules do not fit the data.", faults=[fault])
    left = ~np.any([rule.fires(data.x) for rule in rules], axis=0)
    word = _last_word(data, left) if last is None else np.eye(data.targets.shape[1])[last]
    return Fit(State(tuple(rules), word, _conflicts(rules, data)), iterations=len(rules), warnings=warnings)


def _last_word(data: Data, left: Truths) -> Vector:
    """Shares of the classes in the rows left over, or else in all."""
    remaining = data.take(left) if left.any() else data
    counts = remaining.weights @ remaining.targets
    shares: Vector = counts / counts.sum()
    return shares


def _learned(params: RuleSet, data: Data, context: Context) -> Fit[State]:
    table, order = ranked(data)
    how = Rules(GINI, params.max_depth, params.max_rules, min_samples_leaf=params.min_samples_leaf)
    tree = Grower(data, table, order).grow(data.weights, how)
    candidates: list[Rule] = []
    for tests in _read_off(tree, data.levels):
        candidates.append(_shortened(tests, data) if params.shorten else _counted(tests, data))
        context.progress(0.9 * min(len(candidates) / params.max_rules, 1.0))
    ordered = sorted(_distinct(candidates), key=lambda rule: (_pessimistic(rule), -rule.rows, len(rule.tests)))
    chosen, left = [], np.ones(len(data.x), np.bool_)
    for rule in ordered:
        first = left & rule.fires(data.x)
        if first.any():
            chosen.append(_predicting(rule, data, first))
            left &= ~first
    return Fit(State(tuple(chosen), _last_word(data, left), _conflicts(chosen, data)), iterations=len(chosen))


def predict(params: RuleSet, state: State, x: Matrix) -> Matrix:
    predicted = np.tile(state.otherwise, (len(x), 1))
    for rule in reversed(state.rules):  # so that the first rule decides
        predicted[rule.fires(x)] = rule.shares
    return predicted


def explain(params: RuleSet, state: State, x: Matrix) -> list[JSON]:
    """For each row the rule that predicts it, and the later ones that fire too but name another class."""
    fired = np.array([rule.fires(x) for rule in state.rules]).reshape(len(state.rules), len(x))
    return [_explained(state, np.flatnonzero(fired[:, row]).tolist()) for row in range(len(x))]


def summary(params: RuleSet, state: State) -> JSON:
    return {
        "rules": [_written(rule) for rule in state.rules],
        "classes": every(len(state.otherwise)),
        "otherwise": state.otherwise.tolist(),
        "conflicts": [
            {"rules": [int(first), int(other)], "rows": rows} for first, other, rows in state.conflicts.tolist()
        ],
    }


def _explained(state: State, fired: Sequence[int]) -> JSON:
    if not fired:
        return {"rule": None, "otherwise": state.otherwise.tolist(), "contradicted_by": []}
    first = state.rules[fired[0]]
    others = [i for i in fired[1:] if state.rules[i].shares.argmax() != first.shares.argmax()]
    return {"rule": fired[0], **_written(first), "contradicted_by": others}


def _written(rule: Rule) -> dict[str, JSON]:
    tests = [
        {"column": test.column, "op": OPS[test.op]}
        | ({"categories": np.flatnonzero(test.among).tolist()} if test.among.size else {})
        | ({"value": test.value} if OPS[test.op] in COMPARES else {})
        for test in rule.tests
    ]
    return {
        "if": tests,
        "then": int(rule.shares.argmax()),
        "shares": rule.shares.tolist(),
        "rows": rule.rows,
        "errors": rule.errors,
    }


def _read_off(tree: Grown, levels: Labels) -> Iterator[tuple[Condition, ...]]:
    """The tests on each path to a leaf; of several on one side of one column the last is enough.

    A leaf has one path more for each split on the way whose missing values go to a side of it.
    """
    below = np.stack([*branches_of(tree).values()])
    waiting: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    while waiting:
        node, tests = waiting.pop()
        if tree.column[node] < 0:
            yield tests
            continue
        for test, to in zip(_tests(tree, node, levels), below[:, node].tolist(), strict=True):
            if to >= 0:
                others = (
                    condition for condition in tests if (condition.column, condition.op) != (test.column, test.op)
                )
                waiting.append((to, (*others, test)))


def _tests(tree: Grown, node: int, levels: Labels) -> tuple[Condition, Condition, Condition]:
    """Conditions of the left, the right and the missing branch."""
    column, threshold, nothing = int(tree.column[node]), float(tree.threshold[node]), np.zeros(0, np.bool_)
    missing = Condition(column, OPS.index("missing"), 0.0, nothing)
    if np.isinf(threshold):
        return Condition(column, OPS.index("known"), 0.0, nothing), missing, missing
    if size := int(levels[column]):
        members = tree.members[int(threshold) : int(threshold) + size].copy()
        among = OPS.index("in")
        return Condition(column, among, 0.0, members), Condition(column, among, 0.0, ~members), missing
    return Condition(column, 0, threshold, nothing), Condition(column, 1, threshold, nothing), missing


def _shortened(tests: tuple[Condition, ...], data: Data) -> Rule:
    """Without the tests whose absence does not raise the pessimistic error, the most useless first."""
    best = _counted(tests, data)
    while best.tests:
        shorter = [_counted(best.tests[:i] + best.tests[i + 1 :], data, like=best) for i in range(len(best.tests))]
        candidate = min(shorter, key=_pessimistic)
        if _pessimistic(candidate) > _pessimistic(best):
            break
        best = candidate
    return best


def _counted(tests: tuple[Condition, ...], data: Data, like: Rule | None = None) -> Rule:
    """By all training rows on which it fires; its errors are those of the class that `like` names."""
    fires = together(tests, data.x)
    counts = data.weights[fires] @ data.targets[fires]
    total = float(counts.sum())
    shares = counts / total
    named = int(shares.argmax()) if like is None else int(like.shares.argmax())
    return Rule(tests, shares, total, float(np.delete(counts, named).sum()))


def _predicting(rule: Rule, data: Data, rows: Truths) -> Rule:
    """With the shares of the classes among the rows that it predicts, and the errors of the class these name."""
    counts = data.weights[rows] @ data.targets[rows]
    predicting = rule._replace(shares=counts / counts.sum())
    return _counted(rule.tests, data, like=predicting)._replace(shares=predicting.shares)


def _pessimistic(rule: Rule) -> float:
    """The upper confidence limit of the share of errors."""
    if rule.errors >= rule.rows:
        return 1.0
    return float(scipy.special.betaincinv(rule.errors + 1, rule.rows - rule.errors, CONFIDENCE))


def _distinct(rules: Sequence[Rule]) -> list[Rule]:
    seen: dict[tuple[tuple[int, int, float, bytes], ...], Rule] = {}
    for rule in rules:
        key = tuple(sorted((test.column, test.op, test.value, test.among.tobytes()) for test in rule.tests))
        seen.setdefault(key, rule)
    return list(seen.values())


def _conflicts(rules: Sequence[Rule], data: Data) -> Matrix:
    fires = [rule.fires(data.x) for rule in rules]
    named = [int(rule.shares.argmax()) for rule in rules]
    conflicts = [
        (i, j, float(data.weights[fires[i] & fires[j]].sum()))
        for i in range(len(rules))
        for j in range(i + 1, len(rules))
        if named[i] != named[j] and (fires[i] & fires[j]).any()
    ]
    return np.array(conflicts, np.float64).reshape(-1, 3)


def to_tensor(params: RuleSet, state: State, x: Tensor) -> Tensor:
    probabilities = x.repeated(state.otherwise)
    for rule in reversed(state.rules):  # so that the first rule decides
        fires = [condition_tensor(test, x) for test in rule.tests]
        shares = x.repeated(rule.shares)
        probabilities = shares.where(all_of(fires), probabilities) if fires else shares
    return probabilities


ALGORITHM = Algorithm(
    tasks={Task.CLASSIFICATION},
    params=RuleSet,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    seconds=lambda _, size: 5e-7 * size.cells,
    explain=explain,
    summary=summary,
    accepts={Accepts.MISSING, Accepts.CATEGORIES},
    faults=lambda params, inputs: given_faults(params.given or (), inputs.kinds),
    breaks={Symmetry.COLUMN_ORDER: "of equally good splits that of the first column is taken"},
)
