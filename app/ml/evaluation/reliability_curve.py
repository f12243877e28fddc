"""Reliability curve of one class as it is sent: observed shares of the class beside predicted probabilities."""

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.labels import Label
from app.ml.statistics.metric_value import Metric


class ReliabilityBin(Wire):
    """Rows whose predicted probability of a class lies in one range."""

    lower_edge: float = Field(description="Smallest probability of the bin, which belongs to the bin below it.")
    upper_edge: float = Field(description="Largest probability of the bin, which belongs to it.")
    rows: int = Field(description="Number of rows of the bin.")
    mean_probability: float = Field(description="Mean of the predicted probabilities of the class, by row weights.")
    observed_share: Metric = Field(description="Share of the rows that are of the class, by row weights.")


class ClassReliability(Wire):
    """Reliability curve of the probabilities of one class."""

    label: Label = Field(description="Class whose probability is predicted.")
    expected_calibration_error: Metric = Field(
        description="Mean distance of the observed share from the mean probability over the bins, weighted by rows."
    )
    bins: list[ReliabilityBin] = Field(description="Bins that have rows, in ascending order of probability.")
