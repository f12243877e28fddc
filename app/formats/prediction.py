"""The parts of a response to predictions that every format has."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix
from app.ml.evaluation.rejection import Policy
from app.ml.models.contributions import method_in
from app.ml.models.model import Model, Predicted


class Version(Protocol):
    """A model version, as responses name it."""

    @property
    def model(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def digest(self) -> str: ...
    @property
    def names(self) -> Mapping[int, str]:
        """Names that a person has given to clusters, by their numbers."""


class WrittenPrediction(NamedTuple):
    body: bytes
    version: int
    ignored: Sequence[str]
    """Columns that were sent and not used."""
    rows: int
    """That were sent."""
    filed: int | None = None
    """Rejected rows that wait for a review; None: the request wants none."""


class Extras(NamedTuple):
    """Parts of a response that only some requests include."""

    policy: Policy | None = None
    confidence: float | None = None
    include: tuple[str, ...] = ()
    """Names of outputs beside the predictions."""
    top: int | None = None
    """Reasons of each row, at most; None: the request wants none."""

    @property
    def explains(self) -> bool:
        """True if contributions are among what the request includes."""
        return self.method is not None

    @property
    def method(self) -> str | None:
        """Name of the contributions that the request includes."""
        return method_in(self.include)


NO_EXTRAS = Extras()


def decided(predicted: Predicted, policy: Policy) -> tuple[Predicted, list[str]]:
    """The classes that the policy assigns, and what becomes of each row."""
    probabilities = predicted.probabilities
    if probabilities is None:
        raise ValueError("Only probabilities can be decided upon.")
    accepted = policy.accepts(probabilities)
    if predicted.unknown is not None:
        accepted[predicted.unknown] = False
    result = predicted._replace(values=policy.assigned(probabilities))
    return result, ["accepted" if is_accepted else "rejected" for is_accepted in accepted.tolist()]


def intervals(predicted: Predicted | None) -> Matrix:
    """(n, 2), of the good rows."""
    return np.empty((0, 2)) if predicted is None else np.ascontiguousarray(predicted.intervals, np.float64)


def outputs_of(model: Model, predicted: Predicted | None, extras: Extras) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name and values, of the good rows, of each output that the request includes."""
    for name in extras.include:
        if method_in([name]):
            continue
        offered = model.algorithm.outputs[name]
        yield name, offered.none(model.params, model.state) if predicted is None else predicted.outputs[name]


def names_of(version: Version, predicted: Predicted | None) -> list[str | None]:
    """Name of the cluster of each good row; None where it has none."""
    return [] if predicted is None else [version.names.get(label) for label in predicted.predictions]


def numbers_of(model: Model, predicted: Predicted | None) -> NDArray[np.float64]:
    """Predictions of the good rows as numbers."""
    if predicted is None:
        return np.empty((0, len(model.classes or ())) if model.classes is not None else 0)
    values = predicted.values if predicted.probabilities is None else predicted.probabilities
    return np.ascontiguousarray(values, np.float64)
