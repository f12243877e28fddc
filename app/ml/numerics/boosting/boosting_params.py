"""Parameters of boosted trees that name the loss, and what bounds their steps."""

from typing import Annotated, Literal

from pydantic import Field

from app.ml.contract.params import Params


class BoostingParams(Params):
    """The loss of boosted trees, and when to stop."""

    loss: Literal["squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "cross_entropy"] = Field(
        "squared",
        description="Loss that is minimised in regression: `absolute` (medians), `huber`, `quantile` (of `quantiles`), "
        "`poisson` (counts from 0), `gamma` (amounts above 0) and `tweedie` (amounts from 0) of the logarithm of the "
        "expected number, `cross_entropy` of shares from 0 to 1. Predictions are in the units of the target.",
    )
    class_loss: Literal["logistic", "focal"] = Field(
        "logistic",
        description="Loss that is minimised in classification: minus the log-likelihood, or, of two classes, the focal "
        "loss -(1 - p)^focal_gamma·log p, which counts rows less that are predicted well.",
    )
    quantiles: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        [0.5],
        min_length=1,
        max_length=19,
        description="Levels of the loss `quantile`, each with trees of its own. The prediction is the quantile whose "
        "level is nearest to 0.5; `include=quantiles` has all of them, in rising order in every row.",
    )
    tweedie_power: float = Field(
        1.5,
        gt=1,
        lt=2,
        description="Power p of the loss `tweedie`: the variance is proportional to the expected number to this power.",
    )
    huber_delta: float | None = Field(
        None,
        gt=0,
        le=1e100,
        description="Residual size at which the loss `huber` turns linear, in units of the target; null: the 90 % "
        "quantile of the targets' distance from their median.",
    )
    focal_gamma: float = Field(2.0, ge=0, le=5, description="Power of the class loss `focal`; 0 is the logistic loss.")
    max_delta_step: float | None = Field(
        None,
        gt=0,
        le=1e100,
        description="Largest value of a leaf, before it is multiplied by `learning_rate`; null: no limit, and 0.7 for "
        "the losses poisson, gamma and tweedie, whose values are of logarithms.",
    )
    early_stopping: bool = Field(
        False, description="Stop when held-out rows are no longer predicted better, and keep the best round."
    )
    validation_fraction: float = Field(0.1, gt=0, lt=1, description="Share of the rows held out for early stopping.")
    n_iter_no_change: int = Field(
        5, ge=1, le=10_000, description="Rounds without improvement on the held-out rows before an early stop."
    )

    @property
    def levels(self) -> list[float]:
        """Levels of the quantiles, ascending."""
        return sorted(set(self.quantiles))
