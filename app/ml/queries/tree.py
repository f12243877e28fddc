"""The nodes of a decision tree, or of one tree of a forest, of boosted trees, or of bagging and random subspaces of
trees, from the root down.

A node has the condition of its left branch in the units and categories of the table; a leaf has its value. At most
10,000 nodes, fewer where they have many classes or categories; `max_depth` cuts a larger tree.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from app.base.errors import BodyTooLarge, InvalidRequest
from app.base.faults import Fault
from app.base.wire import Body, Wire
from app.ml.contract.algorithm import JSON, Vector
from app.ml.contract.labels import Label
from app.ml.kinds.query import Query, Subject, declared
from app.ml.models.model_response import ModelResponse
from app.ml.numerics.trees.tree_rules import rules_of
from app.ml.training.reporting.reporting import readable

if TYPE_CHECKING:
    from app.ml.numerics.trees.member_trees import MemberTrees
    from app.ml.numerics.trees.tree_nodes import TreeNodes

MOST_NODES = 10_000
"""Nodes of one response."""
MOST_NUMBERS = 2**20
"""Class shares, or categories, of all nodes of a response."""


class TreeRequest(Body):
    """The tree to read, and down to where."""

    member: int = Field(
        0,
        ge=0,
        lt=2**31,
        description="Tree of an ensemble, counted from 0. Gradient boosting of more than two classes has one tree for "
        "each class in every round, in the order of the classes. Members that are ensembles of trees themselves have "
        "theirs one after the other.",
    )
    max_depth: int | None = Field(
        None, ge=0, le=100_000, description="Splits between the root and the deepest nodes; null: the whole tree."
    )
    rules: bool = Field(False, description="True: also a rule for each leaf, its path as conditions joined by AND.")


class TreeTerm(Wire):
    """A column of a weighted sum."""

    column: str = Field(description="Name of the column.")
    coef: float = Field(description="Coefficient, per unit of the column in the table.")


class LinearLeaf(Wire):
    """Linear prediction of a leaf: intercept + Σ coef · column, kept between `low` and `high`."""

    intercept: float = Field(description="Constant term.")
    terms: list[TreeTerm] = Field(description="Columns with their coefficients.")
    low: float = Field(description="Least prediction of the leaf.")
    high: float = Field(description="Greatest prediction of the leaf.")


class TreeNode(Wire):
    """A split or a leaf. A leaf has no `op`."""

    node: int = Field(description="Number of the node, from 0 at the root; parents come before their children.")
    parent: int | None = Field(None, description="Number of the node above; null at the root.")
    depth: int = Field(description="Splits between the root and this node.")
    rows: float | None = Field(
        None,
        description="Weight of the training rows that reach the node; null: forests and boosting do not keep it.",
    )
    impurity: float | None = Field(
        None,
        description="Variance, Gini index or entropy of these rows; null: forests and boosting do not keep it.",
    )
    gain: float | None = Field(
        None,
        description="Impurity times weight that the split takes away; null: forests and boosting do not keep it.",
    )
    value: list[float] | None = Field(
        None,
        description="Mean target of these rows, or their share of each class, in a decision tree, alone or in bagging "
        "and random subspaces; in a leaf of a forest what it adds to the average over all trees, of boosting "
        "to their sum: one number, or one for each class. Null: a split of a forest or of boosting.",
    )
    column: str | None = Field(None, description="Column of the split; null: a leaf, or a split of a weighted sum.")
    terms: list[TreeTerm] | None = Field(
        None, description="Weighted sum of columns that the split compares; null: the split has one column."
    )
    op: str | None = Field(
        None,
        description="Condition of the left branch: `<=` (not above the threshold), `in` (one of the categories) or "
        "`known` (the value is not missing). Null: a leaf.",
    )
    threshold: float | None = Field(
        None,
        description="Greatest value that goes left, in the table's unit; for a datetime seconds since 1970, UTC. "
        "Null: the split has none.",
    )
    categories: list[Label] | None = Field(None, description="Categories that go left; null: the split has none.")
    left: int | None = Field(None, description="Node of rows that meet the condition; null: not in this response.")
    right: int | None = Field(None, description="Node of rows that do not; null: not in this response.")
    missing: int | None = Field(
        None,
        description="Node of rows whose value is missing; null: they take both branches, or it is left out here.",
    )
    left_share: float | None = Field(
        None,
        description="Weight of the left branch in the prediction of a row whose value is missing, which takes both "
        "branches; null: such rows take one.",
    )
    linear: LinearLeaf | None = Field(None, description="Linear prediction of the leaf; null: it predicts its value.")
    truncated: bool = Field(description="True if the node has branches that `max_depth` leaves out.")


class TreeCondition(Wire):
    """A condition of a rule."""

    column: str | None = Field(None, description="Column of the condition; null: it is of a weighted sum.")
    terms: list[TreeTerm] | None = Field(
        None, description="Weighted sum of columns; null: the condition is of one column."
    )
    op: str = Field(description="One of `<=`, `>`, `in`, `not in`, `known` and `missing`.")
    threshold: float | None = Field(
        None, description="Number of `<=` and `>`, in the table's unit; null: another condition."
    )
    categories: list[Label] | None = Field(
        None, description="Categories of `in` and `not in`; null: another condition."
    )
    or_missing: bool = Field(False, description="True if a missing value meets the condition too.")


class TreeRule(Wire):
    """The path to a leaf as a rule: a row that meets all conditions has its value. A row whose missing value takes both
    branches of a split meets none.
    """

    leaf: int = Field(description="Number of the node in `nodes`.")
    conditions: list[TreeCondition] = Field(description="Conditions from the root down, joined by AND.")
    rows: float | None = Field(
        None,
        description="Weight of the training rows that meet them; null: forests and boosting do not keep it.",
    )
    value: list[float] | None = Field(
        None,
        description="Value of the node, as in `nodes`; null: a split of a forest or of boosting that `max_depth` cuts.",
    )
    linear: LinearLeaf | None = Field(None, description="Linear prediction of the leaf; null: it predicts its value.")


class Tree(ModelResponse):
    """One tree of a model, node by node."""

    member: int = Field(description="Number of the tree, from 0.")
    members: int = Field(description="Number of trees of the model.")
    classes: list[Label] | None = Field(None, description="Classes in the order of the values; null for other tasks.")
    target_function: str | None = Field(
        None, description="Function of the target that was fitted, which the values describe; null: the target itself."
    )
    nodes: list[TreeNode] = Field(description="Nodes, level by level from the root.")
    rules: list[TreeRule] | None = Field(
        None, description="Rules, one for each node without branches here; null: they were not requested."
    )


def tree(subject: Subject, request: TreeRequest) -> Tree:
    """Raises InvalidRequest for a member that is not there, BodyTooLarge for more nodes than fit into a response."""
    model = subject.model
    view: TreeNodes | MemberTrees = model.algorithm.queries["tree"](model.params, model.state)
    if request.member >= view.members:
        raise InvalidRequest(faults=[Fault("/member", f"The model has {view.members} trees, counted from 0.")])
    nodes_of_member = view.tree(request.member)
    levels, width = (
        nodes_of_member.reached(math.inf if request.max_depth is None else request.max_depth),
        nodes_of_member.trees.width,
    )
    size, most = sum(level.size for level in levels), max(1, min(MOST_NODES, MOST_NUMBERS // width))
    if size > most:
        raise BodyTooLarge(f"The tree has {size} nodes down to this depth; one response holds {most}: lower max_depth.")
    conditions = width * sum(depth * level.size for depth, level in enumerate(levels))
    if request.rules and conditions > MOST_NUMBERS:
        raise BodyTooLarge("The rules of this tree do not fit into a response: lower max_depth, or leave out rules.")
    nodes = [_in_units(node, *model.preparation.scaling.units) for node in nodes_of_member.nodes(levels)]
    named = readable(nodes, model.preparation, model.classes or ())
    return Tree(
        **subject.fields,
        member=request.member,
        members=view.members,
        classes=None if model.classes is None else list(model.classes),
        target_function=None if model.linearising == "none" else model.linearising,
        nodes=named,
        rules=list(rules_of(named)) if request.rules else None,
    )


def _in_units(node: dict[str, JSON], offsets: Vector, scales: Vector) -> dict[str, JSON]:
    """The same node, in the units of the table: there a number of the matrix is (number - offset) / scale."""
    if "linear" in node:
        terms, shift = _scaled(node["linear"]["terms"], offsets, scales)
        linear = node["linear"] | {"terms": terms, "intercept": node["linear"]["intercept"] - shift}
        return node | {"linear": linear}
    if "terms" in node:
        terms, shift = _scaled(node["terms"], offsets, scales)
        return node | {"terms": terms} | ({"threshold": node["threshold"] + shift} if "threshold" in node else {})
    if "threshold" in node:
        column = node["column"]
        return node | {"threshold": float(node["threshold"] * scales[column] + offsets[column])}
    return node


def _scaled(terms: Sequence[dict[str, Any]], offsets: Vector, scales: Vector) -> tuple[list[JSON], float]:
    """Terms of the table's columns, and by how much their sum is more than that of the matrix's columns."""
    scaled = [term | {"coef": float(term["coef"] / scales[term["column"]])} for term in terms]
    return scaled, float(sum(term["coef"] * offsets[term["column"]] for term in scaled))


QUERY = Query(operation="read_tree", request=TreeRequest, response=Tree, run=tree, offered=declared("tree"))
