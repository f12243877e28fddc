"""The minimum of a mean loss over rows: by a fixed rate, by accelerated steps, by trial steps, or from the inside."""

from collections.abc import Callable
from typing import Protocol

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.linear_models.interior_point import proven
from app.ml.numerics.linear_models.losses import MeanLoss
from app.ml.numerics.optimise.gradient_descent import Bottom, accelerated, by_feel, steepest


class MeanLossSolver(Protocol):
    """Parameters of the minimisation, as `linear_sgd` has them."""

    @property
    def solver(self) -> str: ...

    @property
    def learning_rate(self) -> float | None: ...

    @property
    def tol(self) -> float: ...

    @property
    def max_iter(self) -> int: ...


def mean_loss_minimum(function: MeanLoss, start: Matrix, params: MeanLossSolver, watch: Callable[..., None]) -> Bottom:
    """start: (d + 1, s), which the interior point method does not need. Losses with a corner may end beside it."""
    if params.solver == "search":
        found = by_feel(function, start, params.max_iter, watch)
        return found._replace(converged=found.converged and function.kind.smooth)
    if params.learning_rate is not None:
        return steepest(
            function, start, rate=params.learning_rate, tol=params.tol, max_iter=params.max_iter, watch=watch
        )
    if function.kind.smooth:
        return accelerated(function, start, params.tol, params.max_iter, watch)
    return proven(function, params.tol, params.max_iter, watch)
