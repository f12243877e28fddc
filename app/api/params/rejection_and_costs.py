"""Rejection options of a prediction, by query parameters: without them, nothing is decided and no time is spent."""

from typing import Annotated, TypeAlias

import numpy as np
from fastapi import Query

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.ml.evaluation.rejection import Policy

NUMBER = r"-?[0-9]{1,15}(\.[0-9]{1,15})?"
ROW = rf"{NUMBER}(,{NUMBER})*"

MinProbability: TypeAlias = Annotated[
    list[Annotated[float, Query(ge=0, le=1)]] | None,
    Query(
        max_length=1000,
        description="Smallest probability of the most probable class; rows below it are rejected. Given once for every "
        "class, in the order of `classes`, each class has its own.",
    ),
]
MinMargin: TypeAlias = Annotated[
    float | None,
    Query(ge=0, le=1, description="Smallest lead of the best class over the second; rows below it are rejected."),
]
RejectLow: TypeAlias = Annotated[
    float | None,
    Query(
        ge=0,
        le=1,
        description="Lower end of the rejection band, for two classes: rows whose probability of the second class "
        "lies in the band, its ends included, are rejected.",
    ),
]
RejectHigh: TypeAlias = Annotated[float | None, Query(ge=0, le=1, description="Upper end of the rejection band.")]
CostRows: TypeAlias = Annotated[
    str | None,
    Query(
        pattern=rf"^{ROW}(;{ROW})*$",
        max_length=100_000,
        description="Cost matrix: a row for each true class and a number for each predicted class, in the order of "
        "`classes`: `0,1;100,0`. The cheapest class is predicted, not the most probable.",
    ),
]
RejectCost: TypeAlias = Annotated[
    float | None,
    Query(
        ge=-1e15,
        le=1e15,
        description="Largest expected cost of an accepted row, with `costs` only: rows whose cheapest class costs more "
        "are rejected.",
    ),
]
Threshold: TypeAlias = Annotated[
    float | None,
    Query(
        ge=0,
        le=1,
        description="Smallest probability of the second of two classes with which it is predicted; null: the most "
        "probable class is predicted.",
    ),
]


def policy_of(
    min_probability: list[float] | None,
    min_margin: float | None,
    band: tuple[float | None, float | None],
    prices: tuple[str | None, float | None],
    threshold: float | None,
) -> Policy | None:
    """None if no parameter was given. prices: costs, and that of a rejection. Raises InvalidRequest."""
    (low, high), (costs, reject_cost) = band, prices
    if (min_probability, min_margin, low, high, costs, reject_cost, threshold).count(None) == 7:
        return None
    rows = [[float(number) for number in row.split(",")] for row in (costs or "").split(";") if row]
    faults = []
    if (low is None) is not (high is None):
        faults.append(Fault("/query/reject_high", "A band has two ends: reject_low and reject_high.", "missing"))
    if low is not None and high is not None and low > high:
        faults.append(Fault("/query/reject_high", "The band ends before it begins."))
    if any(len(row) != len(rows) for row in rows):
        faults.append(Fault("/query/costs", "There are as many rows as numbers in each.", "wrong_length"))
    if faults:
        raise InvalidRequest(faults=faults)
    between = None if low is None or high is None else (low, high)
    matrix = np.array(rows) if rows else None
    return Policy(tuple(min_probability or ()), min_margin, between, matrix, reject_cost, threshold)
