"""A training that starts from a stored version: its prototypes, in the columns of the new preparation."""

from collections.abc import Iterator
from typing import NamedTuple

from app.errors import Fault, InvalidData
from app.ml.catalogue import catalogue
from app.ml.contract.algorithm import JSON, ColumnUnits, Matrix
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.preparation.preparation import Preparation
from app.ml.training.train_spec import TrainSpec

AT = "/initialise_from"
COUNT = "n_clusters"
"""Parameter with the number of prototypes."""


class Start(NamedTuple):
    """The version that `initialise_from` names."""

    model: str
    version: int
    digest: str
    header: Header
    fitted: Model | None = None
    """Only where rows are read."""

    @property
    def receipt(self) -> dict[str, JSON]:
        """Its part of the receipt of a training."""
        own = {"model": self.model, "version": self.version, "digest": self.digest}
        return own | {"data_digest": self.header.receipt.get("data_digest")}

    def prototypes(self, preparation: Preparation) -> Matrix:
        """(k, d) in the columns of this preparation. Raises InvalidData where the version has other columns."""
        model = self.fitted
        if model is None or model.algorithm.prototypes is None:
            raise ValueError("only a plan with the fitted version reads rows")
        prototypes = model.algorithm.prototypes(model.params, model.state)
        if prototypes is None:
            raise InvalidData(f"{self.model}/{self.version} has no prototypes to start from.")
        if model.preparation.layout.names != preparation.layout.names:
            detail = "Its columns are others than those of this training, as prepared: give both the same preprocessing"
            raise InvalidData(f"{self.model}/{self.version} cannot be started from. {detail}.")
        before, now = (ColumnUnits(*one.scaling.units) for one in (model.preparation, preparation))
        values = before.values(prototypes)
        return (values - now.offset) / now.scale


def starters() -> list[str]:
    """Names of the algorithms that can start from a version."""
    return [name for name, entry in catalogue().items() if entry.algorithm.fit_from is not None]


def start_faults(spec: TrainSpec, start: Start, features: tuple[str, ...]) -> Iterator[Fault]:
    """features: columns that the training learns from; none: not known."""
    name, header = spec.algorithm.name, start.header
    if name not in starters():
        detail = f"{name} cannot start from a version. Algorithms that can: {', '.join(starters())}."
        yield Fault(AT, detail, "not_offered")
        return
    if header.algorithm != name:
        yield Fault(
            AT, f"The model {start.model!r} is of {header.algorithm}: a training of {name} starts from its own."
        )
        return
    if spec.preprocessing.projection is not None or "projection" in header.receipt:
        yield Fault(AT, "A training behind a projection, or from a version behind one, starts anew: leave one out.")
    wanted, there = spec.algorithm.model_dump()[COUNT], header.parameters[COUNT]
    if wanted != there:
        yield Fault(f"/algorithm/{COUNT}", f"The version has {there} clusters to start from, not {wanted}.")
    inputs = {column.name for column in header.inputs}
    if features and inputs != set(features):
        columns = ", ".join(sorted(inputs))
        yield Fault(AT, f"The version learned from the columns {columns}: name these in features.", "wrong_columns")
