"""Columns of an algorithm that learns from counts: they are not scaled, and hold no numbers below 0."""

from collections.abc import Iterator, Sequence

from app.base.faults import Fault
from app.ml.catalogue import nested
from app.ml.contract.algorithm import Learner
from app.ml.contract.columns import TableColumn
from app.ml.preparation.request import Preprocessing
from app.ml.training.planning.train_spec import TrainSpec


def learns_counts(spec: Learner) -> bool:
    return nested.entry_of(spec).algorithm.counts(spec)


def unscaled(spec: TrainSpec) -> TrainSpec:
    """The request without scaling, where the algorithm learns from counts."""
    if not learns_counts(spec.algorithm):
        return spec
    return spec.model_copy(update={"preprocessing": spec.preprocessing.model_copy(update={"scaling": "none"})})


def scaling_faults(how: Preprocessing, learners: Sequence[Learner], pointer: str = "") -> Iterator[Fault]:
    """Standard scaling that the request names; as a default it gives way to none. at: where the training stands.

    Only of a request as it came: those that earlier releases stored name all defaults.
    """
    names = [learner.name for learner in learners if learns_counts(learner)]
    if names and how.scaling == "standard":
        detail = f"{names[0]} learns from counts, which are not scaled: leave scaling out, or set it to none."
        yield Fault(f"{pointer}/preprocessing/scaling", detail)


def count_faults(spec: TrainSpec, chosen: Sequence[TableColumn]) -> Iterator[Fault]:
    """Scaling other than the default, and inputs with numbers below 0. chosen: the inputs."""
    if not learns_counts(spec.algorithm):
        return
    name, how = spec.algorithm.name, spec.preprocessing
    if how.scaling == "minmax":  # requests that earlier releases stored name `standard`, then the default
        yield Fault("/preprocessing/scaling", f"{name} learns from counts, which are not scaled: leave it out.")
    if not how.keep_inputs:
        return  # formulas may make counts of them
    below = [column.name for column in chosen if column.minimum is not None and column.minimum < 0]
    if below:
        names = ", ".join(map(repr, below[:5]))
        yield Fault("/features", f"{name} learns from counts; these columns have numbers below 0: {names}.")
