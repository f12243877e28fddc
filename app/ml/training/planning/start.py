"""A training that starts from a stored version: its state, in the columns of the new preparation (warm start)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from app.base.errors import InvalidData
from app.base.faults import Fault
from app.ml.catalogue.algorithm_files import catalogue, find
from app.ml.contract.algorithm import JSON, ColumnUnits
from app.ml.contract.labels import Class
from app.ml.models.header import Header
from app.ml.models.model import Model
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.request import Preprocessing
from app.ml.tables.casting import training_of
from app.ml.training.planning.train_spec import TrainSpec

if TYPE_CHECKING:
    from app.ml.training.planning.plan import Plan

AT = "/initialise_from"
SHARED = tuple(name for name in Preprocessing.model_fields if name not in {"scaling", "imputation"})
"""Fields of the preprocessing that decide which columns the matrix has, and the target."""


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
        version_fields = {"model": self.model, "version": self.version, "digest": self.digest}
        return version_fields | {"data_digest": self.header.receipt.get("data_digest")}

    def warnings(self, data_digest: str) -> Iterator[str]:
        """data_digest: of the dataset that is learned from."""
        if self.header.receipt.get("data_digest") == data_digest:
            yield (
                f"The fit starts from {self.model}/{self.version}, which has learned from this dataset, perhaps from "
                "rows held out now: metrics can be better than on new rows, unless the fit ends at the same minimum "
                "wherever it starts."
            )

    def state(self, preparation: Preparation, classes: tuple[Class, ...]) -> Any:
        """The state in the columns of this preparation. Raises InvalidData where columns or classes differ."""
        model = self.fitted
        if model is None or model.algorithm.warm_start is None:
            raise ValueError("only a plan with the fitted version reads rows")
        lead = f"{self.model}/{self.version} cannot be started from."
        if not model.algorithm.warm_start.any_target and (model.classes or ()) != classes:
            raise InvalidData(
                f"{lead} Its classes are {_named(model.classes)}, those of this dataset {_named(classes)}."
            )
        if model.preparation.layout.names != preparation.layout.names:
            only = sorted({*model.preparation.layout.names} ^ {*preparation.layout.names})
            detail = (
                f"Prepared columns that only one of both trainings has: {_named(only)}" if only else "Order differs"
            )
            raise InvalidData(f"{lead} {detail}.")
        before, now = (ColumnUnits(*each.scaling.units) for each in (model.preparation, preparation))
        units = ColumnUnits((before.offset - now.offset) / now.scale, before.scale / now.scale)
        return model.algorithm.warm_start.moved(model.state, units)


def starters() -> list[str]:
    """Names of the algorithms that can start from a version."""
    return [name for name, entry in catalogue().items() if entry.algorithm.warm_start is not None]


def start_faults(spec: TrainSpec, start: Start, planned: "Plan | None") -> Iterator[Fault]:
    """planned: the training, where nothing else is wrong with it."""
    name, header = spec.algorithm.name, start.header
    warm = find(name).algorithm.warm_start
    if warm is None:
        detail = f"{name} cannot start from a version. Algorithms that can: {', '.join(starters())}."
        yield Fault(AT, detail, "not_offered")
        return
    if header.algorithm not in {name, *warm.others}:
        accepted = " or ".join(("its own", *(f"one of {other}" for other in warm.others)))
        yield Fault(
            AT, f"The model {start.model!r} is of {header.algorithm}: a training of {name} starts from {accepted}."
        )
        return
    if spec.preprocessing.projection is not None or "projection" in header.receipt:
        yield Fault(AT, "A training behind a projection, or from a version behind one, starts anew: leave one out.")
    settings = spec.algorithm.model_dump()
    for parameter in warm.equal:
        wanted, there = settings[parameter], header.parameters[parameter]
        if wanted != there:
            detail = (
                f"The version to start from has {parameter} {there!r}, this training {wanted!r}: give both the same."
            )
            yield Fault(f"/algorithm/{parameter}", detail)
    yield from _preparation_faults(spec, header)
    if planned is not None:
        yield from _table_faults(start, planned)


def _preparation_faults(spec: TrainSpec, header: Header) -> Iterator[Fault]:
    """Fields of the preprocessing by which the columns, or the target, are others."""
    try:
        before = Preprocessing.model_validate(_spec_of(header).get("preprocessing", {}))
    except ValidationError:
        yield Fault(AT, "The preprocessing of its training no longer exists: start anew.")
        return
    there, wanted = (each.model_dump(include={*SHARED}) for each in (before, spec.preprocessing))
    for field in SHARED:
        if there[field] != wanted[field]:
            detail = (
                "The training of the version to start from prepared its columns in another way: give both the same."
            )
            yield Fault(f"/preprocessing/{field}", detail)


def _table_faults(start: Start, planned: "Plan") -> Iterator[Fault]:
    header = start.header
    inputs = {column.name for column in header.inputs}
    if inputs != set(planned.features):
        columns = ", ".join(sorted(inputs))
        yield Fault(AT, f"The version learned from the columns {columns}: name these in features.", "wrong_columns")
    kinds = {column.name: column.kind for column in planned.columns}
    for column in header.inputs:
        if kinds.get(column.name, column.kind) != column.kind:
            detail = f"The version learned from the column {column.name!r} as {column.kind}, not {kinds[column.name]}."
            yield Fault(AT, detail, "wrong_kind")
    warm = find(header.algorithm).algorithm.warm_start
    if warm is not None and warm.any_target:
        return
    if header.task != planned.task:
        yield Fault(AT, f"The version does {header.task}, this training {planned.task}.")
    elif header.classes is not None and planned.target is not None:
        yield from _class_faults(start, planned.target, {column.name: column.distinct for column in planned.columns})


def _class_faults(start: Start, target: str, distinct: Mapping[str, int | None]) -> Iterator[Fault]:
    classes, n_values = start.header.classes or (), distinct.get(target)
    if n_values is not None and n_values != len(classes):
        detail = f"The version has the {len(classes)} classes {_named(classes)}; this column has {n_values} values."
        yield Fault("/target", detail, "wrong_classes")


def _spec_of(header: Header) -> Mapping[str, JSON]:
    spec: Mapping[str, JSON] = training_of(header.receipt).get("spec") or {}
    return spec


def _named(names: Any) -> str:
    shown = [repr(name) for name in (names or ())]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
