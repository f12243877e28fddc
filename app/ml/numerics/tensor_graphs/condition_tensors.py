"""Conditions of rules as tensors of truths."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.rules.conditions import OPS, Condition

OPERATORS = {"<=": "LessOrEqual", ">": "Greater", "<": "Less", ">=": "GreaterOrEqual", "==": "Equal"}


def condition_tensor(condition: Condition, x: Tensor) -> Tensor:
    """(n, 1) truths: of a missing value nothing holds but that it is missing."""
    column, op = x[[condition.column]], OPS[condition.op]
    missing = column.apply("IsNaN")
    if op in {"known", "missing"}:
        return missing if op == "missing" else ~missing
    if op == "in":
        among = np.append(condition.among, False)
        codes = x.graph.constant(float(among.size - 1)).where(missing, column)
        return codes.to_integers().among(among)
    if op == "!=":
        return ~missing & ~column.combine("Equal", condition.value)
    return ~missing & column.combine(OPERATORS[op], condition.value)


def all_of(truths: Sequence[Tensor]) -> Tensor:
    """(n, 1) truths: whether all of these hold."""
    return reduce(Tensor.__and__, truths)
