"""Parameters that every network has, by which it is trained."""

from typing import Annotated, Literal

from pydantic import Field

from app.ml.contract.algorithm import Params
from app.ml.numerics.networks.network_layers import Activation

Width = Annotated[int, Field(ge=1, le=10_000)]
"""Number of units of a layer."""
STOCHASTIC = frozenset({"adam", "sgd"})
"""Optimizers whose steps are of few rows."""
RATES = {"adam": 1e-3, "sgd": 0.01, "gradient_descent": 0.1, "bold_driver": 0.1}
"""Learning rates unless one is given; other optimizers need none."""


class NetworkParams(Params):
    """Training of a network."""

    activation: Activation = Field("tanh", description="Function of hidden units of the sum of their inputs.")
    optimizer: Literal[
        "adam",
        "sgd",
        "lbfgs",
        "conjugate_gradient",
        "one_step_secant",
        "bold_driver",
        "steepest_descent",
        "gradient_descent",
    ] = Field(
        "adam",
        description="Method of the training. `adam` and `sgd` take a step for each batch of rows, in 32 bits; the "
        "others take all rows for each step, in 64 bits, and suit small tables and exact fits.",
    )
    learning_rate: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="Length of a step, by which a gradient is multiplied; the first one of `bold_driver`. Null: 0.001 "
        "for `adam`, 0.01 for `sgd`, else 0.1. The other optimizers find their steps.",
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="Share of the step before that `sgd` adds to each step.")
    growth: float = Field(
        1.1, ge=1, le=10, description="Factor of the rate of `bold_driver` after a step that lowers the loss."
    )
    reduction: float = Field(
        0.5, gt=0, lt=1, description="Factor of the rate of `bold_driver` after a step that raises the loss."
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Number of rows of a step of `adam` and `sgd`. Null: a tenth of them, from 16 to 200.",
    )
    epochs: int = Field(200, ge=1, le=100_000, description="Maximum number of passes over the rows by `adam`, `sgd`.")
    shuffle: bool = Field(True, description="Takes the rows in a new order in each epoch.")
    max_iter: int = Field(
        200, ge=1, le=1_000_000, description="Maximum number of iterations of optimizers that take all rows."
    )
    tol: float = Field(
        1e-4,
        gt=0,
        le=1,
        description="Stop when the loss of `n_iter_no_change` epochs falls by less than this, or, with all rows, no "
        "slope of the mean loss exceeds this share of it.",
    )
    l2: float = Field(
        1e-4,
        ge=0,
        le=1e6,
        description="Penalty beside the mean (not the sum) of the losses: minimises (Σ weight·loss)/(Σ weight) + "
        "½·l2·‖weights of the network‖², biases left aside.",
    )
    early_stopping: bool = Field(
        False, description="Stop when held-out rows are no longer predicted better, and keep the best iteration."
    )
    validation_fraction: float = Field(0.1, gt=0, lt=1, description="Share of the rows held out for early stopping.")
    n_iter_no_change: int = Field(
        10,
        ge=1,
        le=10_000,
        description="Iterations without improvement on the held-out rows, or by `tol` without these, before a stop.",
    )
    init_range: float | None = Field(
        None,
        gt=0,
        le=100,
        description="Largest starting weight: all are drawn uniformly between this and its negative. Null: by the "
        "numbers of units, so that signals keep their size through the layers.",
    )

    @property
    def stochastic(self) -> bool:
        """True if each step is of few rows."""
        return self.optimizer in STOCHASTIC

    @property
    def rate(self) -> float:
        """Learning rate of the first step."""
        return self.learning_rate or RATES.get(self.optimizer, 1.0)
