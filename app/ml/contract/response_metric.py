"""Metrics of a regression that belong to the loss it minimises."""

from typing import Literal, NamedTuple

MetricName = Literal["poisson_deviance", "gamma_deviance", "tweedie_deviance", "pinball", "cross_entropy"]


class ResponseMetric(NamedTuple):
    """A mean over rows of a loss of the target beside the prediction."""

    name: MetricName
    parameter: float = 0.0
    """Power of a Tweedie deviance; level of a pinball loss; of others without a meaning."""
