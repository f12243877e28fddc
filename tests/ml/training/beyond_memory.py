"""Plans of tables that memory does not hold, of so few rows that a test can learn them."""

import math

from app.ml.training.planning.plan import Plan, plan

BEYOND = 1.0
"""Stands for a byte less than all rows take."""


def plan_within(spec, columns, rows, memory_bytes=math.inf, **more) -> Plan:
    """As `plan`; within BEYOND rows are learned in parts, and there is no memory for their hashes."""
    if memory_bytes != BEYOND:
        return plan(spec, columns, rows, memory_bytes, **more)
    made = plan(spec, columns, rows, plan(spec, columns, rows, **more).memory_bytes - 1, **more)
    return made._replace(memory_limit=made.memory_bytes)
