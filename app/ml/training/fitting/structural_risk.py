r"""Structural risk minimisation: the errors on the training rows, and a term that grows with the capacity (LION 10.1).

With probability 0.95 the risk of every function of a class of capacity h is at most its share of errors on l rows plus
√((h (ln(2l/h) + 1) − ln(p/4)) / l), p = 0.05. Planes in d columns have h = d + 1; planes with a margin, and machines in
the space of a kernel, what their algorithm states. That of a margin is measured on the same rows, so that the bound
orders candidates rather than guarantees anything; above 1 it guarantees nothing in any case. Where the ways to label 2l
rows are counted instead, as those of trees with so many leaves, their logarithm takes the place of h (ln(2l/h) + 1).

Reference: Vapnik (1998), Statistical Learning Theory, ch. 6.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

from pydantic import Field

from app.base.errors import InvalidData
from app.base.wire import Wire
from app.ml.catalogue.algorithm_files import catalogue, find
from app.ml.contract.algorithm import Algorithm, Labels
from app.ml.contract.capacity import Capacity, planes
from app.ml.numerics.support_vectors.vc_bounds import FAILURE, confidence_term, growth_term
from app.ml.training.fitting.fit import fit_rows
from app.ml.training.rows.training_set import TrainingSet

STRUCTURAL_RISK = "structural_risk"


class Risk(NamedTuple):
    """A fit of all training rows."""

    dimension: float
    """Bound of the dimension of Vapnik and Chervonenkis, perhaps infinite; NaN: labellings were counted."""
    errors: float
    """Share of training rows that are predicted wrong."""
    confidence: float
    """The term that is added."""

    @property
    def bound(self) -> float:
        return self.errors + self.confidence


class CandidateCapacity(Wire):
    """Parts of the bound of the risk of a candidate, which one fit of all training rows has."""

    dimension: float | None = Field(
        description="Bound of the dimension of Vapnik and Chervonenkis; null: infinite, or labellings were counted."
    )
    empirical_risk: float = Field(description="Share of training rows that are predicted wrong.")
    confidence: float = Field(description="Term that grows with the dimension and is added to the empirical risk.")

    @classmethod
    def of(cls, risk: Risk) -> Self:
        dimension = risk.dimension if math.isfinite(risk.dimension) else None
        return cls(dimension=dimension, empirical_risk=risk.errors, confidence=risk.confidence)


def vacuous(bounds: Iterable[float]) -> Iterator[str]:
    """A warning of bounds that promise nothing."""
    every = list(bounds)
    if above := sum(bound >= 1 for bound in every):
        yield (
            f"The bound of the risk is not below 1 for {above} of {len(every)} candidates: for these it promises "
            f"nothing, and only orders them."
        )


def states_capacity(algorithm: Algorithm[Any, Any]) -> bool:
    """True if the capacity of its fits is known, of a classifier."""
    of_classes = any(task.of_classes for task in algorithm.tasks)
    return of_classes and (algorithm.capacity is not None or algorithm.linear is not None)


def capacity_faults(algorithms: Iterable[str]) -> Iterator[str]:
    """Why structural risk cannot rank candidates of these algorithms."""
    for name in dict.fromkeys(algorithms):
        if not states_capacity(find(name).algorithm):
            able = ", ".join(name for name, entry in catalogue().items() if states_capacity(entry.algorithm))
            yield f"{STRUCTURAL_RISK} needs the capacity of a classifier, which {name} lacks. These state it: {able}."


def structural_risk(training_set: TrainingSet, rows: Labels, seed: int) -> Risk:
    """The risk of one fit of these rows. Raises InvalidData for other than two classes."""
    if len(training_set.classes) != 2:
        raise InvalidData(f"{STRUCTURAL_RISK} bounds the risk of two classes; these are {len(training_set.classes)}.")
    fitted = fit_rows(training_set, rows, seed)
    algorithm, data = training_set.algorithm, fitted.data
    predicted = fitted.learned.predict(data.x).argmax(axis=1)
    errors = float((predicted != data.codes).mean())
    capacity = (algorithm.capacity or planes)(training_set.params, fitted.fit.state, data)
    dimension = math.nan if capacity.ordering is None else float(capacity.ordering)
    return Risk(dimension, errors, _confidence(capacity, len(data.x)))


def _confidence(capacity: Capacity, rows: int) -> float:
    if capacity.ordering is not None:
        return confidence_term(rows, capacity.ordering, FAILURE)
    if capacity.log_labellings is not None:
        return growth_term(capacity.log_labellings(2 * rows), rows, FAILURE)
    raise InvalidData(f"{STRUCTURAL_RISK} needs the capacity of the fit, and no bound of it is known.")
