"""Baseline of a report: metrics of a constant prediction on the test rows, and what follows from them for the model."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.labels import Class, Label
from app.ml.statistics.metric_value import Metric


class Baseline(Wire):
    """A constant prediction beside the model, on the same rows."""

    metric: str = Field(description="Name of the metric.")
    prediction: Label | None = Field(
        None,
        description="The constant: mean of the target (of `mae` its median) or most frequent class of the training "
        "rows. Null: the share of each class among them, as probabilities.",
    )
    constant: Metric = Field(description="Metric of the constant prediction.")
    difference: Metric = Field(
        description="Metric of the model less that of the constant, with a paired interval. The interval is null where "
        "no row makes a difference."
    )
    surpassed: bool | None = Field(
        None,
        description="True where the model is better than the constant, false where it is worse. Null: the interval of "
        "the difference holds 0 or is null, so that these rows do not distinguish the two.",
    )


def warnings(baselines: Sequence[Baseline]) -> Iterator[str]:
    """Sentences on the metrics in which these rows do not show that the model is better than a constant."""
    for baseline in baselines:
        apart = baseline.difference
        if baseline.surpassed or apart.value is None:
            continue
        prediction, shown = baseline.prediction, baseline.constant.display
        constant = "the shares of the classes" if prediction is None else f"{_shown(prediction)} for every row"
        if apart.lower is None or apart.upper is None:
            if apart.value == 0:
                yield f"The {baseline.metric} on the test rows is that of predicting {constant}: {shown}."
            continue
        relation = "worse than" if baseline.surpassed is False else "not distinguishable from"
        yield (
            f"The {baseline.metric} on the test rows is {relation} that of predicting {constant}, {shown}: "
            f"the interval of the difference is {apart.lower:.3g} to {apart.upper:.3g}."
        )


def _shown(prediction: Class) -> str:
    return f"{prediction:.4g}" if isinstance(prediction, float) else repr(prediction)
