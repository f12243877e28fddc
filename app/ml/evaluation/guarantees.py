"""Guarantees of a classifier: upper bounds of its error rate on new rows, which hold together with probability 1 − δ.

Each of k bounds that are given fails with probability δ/k at most, so that the least of them holds too. A bound whose
premises fail is withheld, with the reason. Formulas: `app.ml.statistics.risk_bounds`.
"""

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.capacity import Capacity, GibbsRisk
from app.ml.numerics.support_vectors.vc_bounds import confidence_term, growth_term
from app.ml.statistics.risk_bounds import binomial_upper, compression_upper, vote_upper, weights_upper

DELTA = 0.05
TWO = 2
"""Classes of a bound by planes."""
INDEPENDENT = "Needs independent rows of one distribution, the same in training and in use; holds whatever it is."
PREPARED = "Scaling, imputed values and categories count as fixed."
COMPLETE = f"New rows have no missing values. {PREPARED}"
SUPPORTED = f"A fit of the support vectors alone gives the same model. {PREPARED}"
ANY_DATA = "Holds whatever the data."
UNKNOWN = "No bound of the capacity of this fit is known."


class Certificate(Wire):
    """A bound that holds for the model."""

    name: str = Field(
        description="Name of the bound: holdout, vc_dimension, labellings, margin, compression, vote or mistakes."
    )
    quantity: Literal["error_rate", "mistakes"] = Field(
        description="Bounded quantity: `error_rate` on new rows, from 0 to 1, or number of `mistakes` while learning."
    )
    bound: float = Field(description="The quantity is at most this; an error rate of 1 or more promises nothing.")
    measured: float = Field(description="Measured value of the same kind, on the rows that the bound rests on.")
    rows: int = Field(description="Number of rows that the bound rests on.")
    delta: float = Field(description="Probability with which the bound may fail; 0: it holds with certainty.")
    premise: Literal["independent_rows", "any_data"] = Field(
        description="Condition of the bound: `independent_rows` of one distribution, or `any_data`."
    )
    vacuous: bool = Field(description="True where the bound promises nothing, as an error rate of 1 or more.")
    statement: str = Field(description="The bound in one sentence, with its condition.")
    source: str = Field(description="Books and papers that prove the bound.")


class Withheld(Wire):
    """A bound that is not given."""

    name: str = Field(description="Name of the bound.")
    reason: str = Field(description="Premise that fails.")


class Guarantees(Wire):
    """Bounds that hold for a model, and those that do not."""

    delta: float = Field(description="Probability with which any of the bounds of the error rate may fail.")
    tightest: str | None = Field(
        None, description="Name of the least bound of the error rate; null: none is given that promises anything."
    )
    certificates: list[Certificate] = Field(description="Bounds, the tightest first.")
    withheld: list[Withheld] = Field(description="Bounds whose premises fail, with the reason.")


class Errors(NamedTuple):
    """Wrong predictions among so many rows."""

    mistakes: int
    rows: int

    @property
    def share(self) -> float:
        return self.mistakes / self.rows


class Evidence(NamedTuple):
    """Measurements of a training, and the premises that fail."""

    test: Errors | None
    train: Errors | None
    """None: not all training rows were evaluated."""
    classes: int
    capacity: Capacity | None = None
    gibbs: GibbsRisk | None = None
    dependent: str | None = None
    """Reason why rows are not independent draws of equal weight; None: nothing is known against it."""
    prepared: str | None = None
    """Reason why the class of functions was not fixed before the training rows; None: it was."""
    undetermined: str | None = None
    """Reason why a fit of the support vectors alone may give another model; None: it gives the same."""


class _Bound(NamedTuple):
    name: str
    measured: float
    rows: int
    upper: Callable[[float], float]
    """Bound of the risk by δ."""
    source: str
    also: str = ""
    """Further premise."""


def guarantees(evidence: Evidence, delta: float = DELTA) -> Guarantees:
    """All bounds that the evidence allows."""
    bounds, withheld = list[_Bound](), list[Withheld]()
    for bound in _bounds(evidence):
        if isinstance(bound, Withheld):
            withheld.append(bound)
        else:
            bounds.append(bound)
    certificates = sorted(
        (_certificate(bound, delta / len(bounds)) for bound in bounds), key=lambda certificate: certificate.bound
    )
    useful = [certificate.name for certificate in certificates if not certificate.vacuous]
    return Guarantees(
        delta=delta,
        tightest=useful[0] if useful else None,
        certificates=[*certificates, *_of_mistakes(evidence.capacity)],
        withheld=withheld,
    )


def without_holdout(stated: Guarantees, uses: int) -> Guarantees:
    """The same without the bound by test rows, which have evaluated so many models."""
    remaining = [certificate for certificate in stated.certificates if certificate.name != "holdout"]
    if len(remaining) == len(stated.certificates):
        return stated
    useful = [
        certificate.name
        for certificate in remaining
        if certificate.quantity == "error_rate" and not certificate.vacuous
    ]
    reason = f"The test rows have evaluated {uses} models by now: the best of several is partly the luckiest."
    return stated.model_copy(
        update={
            "tightest": useful[0] if useful else None,
            "certificates": remaining,
            "withheld": [Withheld(name="holdout", reason=reason), *stated.withheld],
        }
    )


def _bounds(evidence: Evidence) -> Iterator[_Bound | Withheld]:
    yield _by_test(evidence)
    by_training = list(_by_training(evidence))
    reason = evidence.dependent or evidence.prepared
    if not by_training:
        yield Withheld(name="training", reason=UNKNOWN)
    elif reason is not None:
        yield from (Withheld(name=bound.name, reason=reason) for bound in by_training)
    else:
        for bound in by_training:
            lost = evidence.undetermined if bound.also == SUPPORTED else None
            yield bound if lost is None else Withheld(name=bound.name, reason=lost)


def _by_test(evidence: Evidence) -> _Bound | Withheld:
    test = evidence.test
    if test is None:
        return Withheld(name="holdout", reason="No row was held out.")
    if evidence.dependent is not None:
        return Withheld(name="holdout", reason=evidence.dependent)
    source = "Langford (2005), J. Mach. Learn. Res. 6:273, Theorem 3.3: the exact binomial bound, one-sided."
    return _Bound("holdout", test.share, test.rows, lambda delta: binomial_upper(*test, delta), source)


def _by_training(evidence: Evidence) -> Iterator[_Bound]:
    """Bounds by the training rows, if their premises hold."""
    train, capacity, gibbs = evidence.train, evidence.capacity or Capacity(), evidence.gibbs
    if gibbs is not None:
        source = "Maurer (2004), arXiv:cs/0411099; Lorenzen, Igel and Seldin (2019), Mach. Learn. 108:1503: PAC-Bayes."
        yield _Bound("vote", gibbs.loss, gibbs.fewest_rows, lambda delta: vote_upper(*gibbs, delta), source, PREPARED)
    if train is None:
        return
    share, rows = train.share, train.rows
    if (h := capacity.dimension) is not None and evidence.classes == TWO:
        source = "Vapnik (1998), Statistical Learning Theory, Theorem 4.1."
        yield _Bound("vc_dimension", share, rows, lambda delta: _by_dimension(train, h, delta), source, PREPARED)
    if (growth := capacity.log_labellings) is not None:
        source = "Vapnik (1998), Statistical Learning Theory, Theorem 4.1, by the number of labellings itself."
        yield _Bound("labellings", share, rows, lambda delta: _by_labellings(train, growth, delta), source, COMPLETE)
    if (weights := capacity.weights) is not None and evidence.classes == TWO:
        source = "Mohri, Rostamizadeh and Talwalkar (2018), Foundations of Machine Learning, Theorems 5.8 and 6.12."
        yield _Bound("margin", share, rows, lambda delta: weights_upper(*weights, delta), source, PREPARED)
    if (compression := capacity.compression) is not None:
        source = "Langford (2005), J. Mach. Learn. Res. 6:273, Theorem 8.1: sample compression."
        yield _Bound(
            "compression", share, rows, lambda delta: compression_upper(*compression, rows, delta), source, SUPPORTED
        )


def _by_dimension(train: Errors, dimension: float, delta: float) -> float:
    return train.share + confidence_term(train.rows, dimension, delta) + 1 / train.rows


def _by_labellings(train: Errors, log_labellings: Callable[[int], float], delta: float) -> float:
    return train.share + growth_term(log_labellings(2 * train.rows), train.rows, delta) + 1 / train.rows


def _certificate(limit: _Bound, delta: float) -> Certificate:
    bound = limit.upper(delta)
    vacuous = not bound < 1
    promise = "The bound promises nothing: it is" if vacuous else "The error rate on new rows is at most"
    return Certificate(
        name=limit.name,
        quantity="error_rate",
        bound=bound,
        measured=limit.measured,
        rows=limit.rows,
        delta=delta,
        premise="independent_rows",
        vacuous=vacuous,
        statement=f"{promise} {bound:.4g}, with probability {1 - delta:.4g}; measured: {limit.measured:.4g} of "
        f"{limit.rows} rows. {INDEPENDENT} {limit.also}".rstrip(),
        source=limit.source,
    )


def _of_mistakes(capacity: Capacity | None) -> Iterator[Certificate]:
    if capacity is None or capacity.mistakes is None or not math.isfinite(capacity.mistakes.allowed):
        return
    made, allowed, rows = capacity.mistakes
    yield Certificate(
        name="mistakes",
        quantity="mistakes",
        bound=allowed,
        measured=float(made),
        rows=rows,
        delta=0.0,
        premise="any_data",
        vacuous=False,
        statement=f"The theorem allows {math.floor(allowed)} mistakes on {rows} rows; there were {made}. {ANY_DATA}",
        source="Shalev-Shwartz and Ben-David (2014), Understanding Machine Learning, Theorem 21.16.",
    )
