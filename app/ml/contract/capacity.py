"""Capacity of the class of functions that a fit chose from: the material of bounds of its risk."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from app.ml.contract.data import Data, Vector


class WeightNorm(NamedTuple):
    """A decision between two classes by the sign of a function linear in some space, with a constant of 1 beside it."""

    norm: float
    """Length of its weights, the intercept among them."""
    trace: float
    """Sum over the training rows of their squared lengths in that space, the constant of each among them."""
    values: Vector
    """(n,) decision values times ±1, positive where right."""


class Compression(NamedTuple):
    """Training rows to which a fit alone would give the same function."""

    rows: int
    mistakes: int
    """Wrong predictions among the other rows."""


class Mistakes(NamedTuple):
    """Mistakes of an online learner while it learned, and how many its theorem allows on these rows."""

    made: int
    allowed: float
    rows: int


class GibbsRisk(NamedTuple):
    """Loss of a member drawn at random, on rows that it has not seen: 1 less its share of votes for the true class."""

    loss: float
    """Mean over members of their mean losses, from 0 to 1."""
    fewest_rows: int
    """Rows of the member that has the fewest unseen ones."""
    most_rows: int

    @classmethod
    def of(cls, losses: Sequence[float], rows: Sequence[int], members: int) -> Self | None:
        """losses: mean loss of each member on so many rows. None unless all members have rows that are new to them."""
        if not rows or len(rows) < members:
            return None
        return cls(sum(losses) / len(losses), min(rows), max(rows))


class Capacity(NamedTuple):
    """Whichever of these are known."""

    dimension: float | None = None
    """VC dimension of decisions between two classes, perhaps infinite."""
    margin_dimension: float | None = None
    """The same by the margin on the training rows themselves: it orders fits, and guarantees nothing."""
    log_labellings: Callable[[int], float] | None = None
    """Maps a number of rows to the log of the number of ways to label them, by functions as complex as the fitted one;
    complexities that the fit could choose among are counted by their weights, which add up to 1."""
    weights: WeightNorm | None = None
    compression: Compression | None = None
    mistakes: Mistakes | None = None

    @property
    def ordering(self) -> float | None:
        """The dimension by which fits are ordered."""
        return self.dimension if self.margin_dimension is None else self.margin_dimension


def planes(_params: Any, _state: Any, data: Data) -> Capacity:
    """Hyperplanes in the columns, with a constant: VC dimension d + 1."""
    return Capacity(dimension=data.x.shape[1] + 1)
