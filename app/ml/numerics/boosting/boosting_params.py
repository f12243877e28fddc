"""Parameters of gradient boosting."""

from typing import Annotated, Literal

from pydantic import Field

from app.ml.contract.params import MaxFeatures, Params
from app.ml.numerics.trees.binning import MAX_BYTE_BINS


class BoostingParams(Params):
    """Number and size of the trees, their loss, what bounds their steps, and when to stop."""

    n_estimators: int = Field(
        100,
        ge=1,
        le=10_000,
        description="Maximum number of rounds; each adds one tree, or one for each of more than two classes.",
    )
    learning_rate: float = Field(0.1, gt=0, le=1, description="Shrinkage: the factor by which each step is multiplied.")
    max_leaf_nodes: int = Field(31, ge=2, le=4096, description="Maximum number of leaves of a tree.")
    max_depth: int | None = Field(None, ge=1, le=1000, description="Maximum depth of a tree; null: unlimited.")
    min_samples_leaf: float = Field(
        20.0,
        ge=1,
        le=1e100,
        description="Smallest number of training rows of a leaf, whatever their weight; approximate in classification, "
        "where the curvature of the loss measures it.",
    )
    l2: float = Field(
        1.0,
        ge=0,
        le=1e100,
        description="Penalty on the values of leaves, beside the sum (not the mean) of the losses: minimises "
        "Σ weight·loss + ½·l2·Σ value².",
    )
    max_bins: int = Field(
        MAX_BYTE_BINS, ge=2, le=MAX_BYTE_BINS, description="Maximum number of histogram bins of a column."
    )
    category_smoothing: float = Field(
        10.0,
        ge=0,
        le=1e100,
        description="Added to the curvature of each category to put them in order; also the rows it needs to be named.",
    )
    category_l2: float = Field(
        10.0, ge=0, le=1e100, description="Added to `l2` in the leaves below a split of categories."
    )
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
    l1: float = Field(
        0.0,
        ge=0,
        le=1e100,
        description="Penalty on the values of leaves, beside the sum (not the mean) of the losses: minimises "
        "Σ weight·loss + l1·Σ |value|, beside that of `l2`.",
    )
    max_samples: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Rows that each tree grows from, as a share of all rows, drawn without replacement.",
    )
    max_features_tree: MaxFeatures | None = Field(
        None, description="Columns that each tree may split, drawn anew: a number or a share; null: all."
    )
    max_features: MaxFeatures | None = Field(
        None,
        description="Columns that each node may split, drawn of those of its tree: a number or a share; null: all.",
    )
    extra_trees: bool = Field(
        False, description="Each node tries one drawn threshold of a numeric column instead of all thresholds."
    )
    min_impurity_decrease: float = Field(
        0.0,
        ge=0,
        le=1e100,
        description="Smallest decrease of impurity by a split: of the mean loss of the tree's rows, to second order.",
    )
    monotone: dict[str, Literal[-1, 0, 1]] = Field(
        {},
        max_length=1000,
        description="Direction of the prediction along numeric columns, by name: 1 never falls where the column rises, "
        "-1 never rises, 0 is free. A missing value that no row of a node had then goes with most rows. The summary of "
        "the report counts the pairs of leaves that prove it.",
    )
    interactions: list[list[str]] = Field(
        [],
        max_length=60,
        description="Groups of columns that may interact: the columns of a path from the root to a leaf lie in one of "
        "them. A column that no group names interacts with none. Empty: all columns may.",
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
