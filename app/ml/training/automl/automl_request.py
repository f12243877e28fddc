"""The request of a search for the best model, and its faults before a row is read."""

import copy
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.suggestions import no_such
from app.base.wire import Body
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.given_kinds import KindName
from app.ml.contract.model_reference import Name
from app.ml.contract.task import Task
from app.ml.evaluation.row_losses import metrics_of
from app.ml.evaluation.validation import Validation
from app.ml.kinds.job import JobContext, Request, Sheet
from app.ml.preparation.request import Preprocessing
from app.ml.training.automl.portfolio import SMALL_BYTES, Preset, Setting, portfolio
from app.ml.training.automl.proposals import Offer, Table
from app.ml.training.planning.class_weights import ClassWeight
from app.ml.training.planning.train_spec import TrainSpec

MIN_ROWS = 20
CHEAP_FACTOR = 10.0
"""The first candidate is the first of the portfolio that takes at most so many times as long as the cheapest."""
REFERENCE = Setting({"name": "gradient_boosting"})
"""An algorithm of numbers and classes, by which the task and the columns are decided."""
BODY = {"target", "features", "weights", "class_weight", "kinds", "task", "preprocessing", "seed"}
"""Fields of the request that every training has too."""


def shared(part: type[Body], name: str) -> Any:
    """The field of another request, with its default, bounds and description."""
    return copy.copy(part.model_fields[name])


class AutomlLimits(Body):
    """Promises of the served model."""

    microseconds_a_row: float | None = Field(
        None,
        gt=0,
        description="Longest time in microseconds to predict one row: 99 of 100 predictions of single rows by the "
        "stored model take no longer, without the transport. Null: no limit.",
    )
    size_bytes: int | None = Field(None, ge=1, description="Largest size of the stored model in bytes; null: no limit.")
    seconds_to_train: float | None = Field(
        None, gt=0, description="Longest time in seconds of the fit of all training rows; null: no limit."
    )


class AutomlValidation(Body):
    """Rows that compare candidates, and rows that evaluate the chosen one."""

    folds: int | None = Field(
        None,
        ge=2,
        le=20,
        description="Number of folds. Null: 8 below 2,000 training rows, else 5; from 100,000 on one fold of 20,000 "
        "rows. Never more than the rarest class has rows.",
    )
    test_fraction: float | None = shared(Validation, "test_fraction")
    group: str | None = shared(Validation, "group")
    time: str | None = shared(Validation, "time")


class AutomlRequest(Request):
    """Find the best model within a budget of seconds."""

    model: Name | None = Field(None, description="The model that gets the best one as a version; null: none does.")
    dataset: DatasetReference = Field(
        description="The id of an uploaded dataset, or its name: the newest dataset of that name."
    )
    target: str = Field(min_length=1, description="Column to predict.")
    seconds: float = Field(
        300.0, ge=5, le=86_400, description="Budget in seconds, from the start of the job to its end; not the queue."
    )
    units: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Number of fits instead of seconds: no clock decides, and the same request gives the same model "
        "bytes on any number of cores. Null: `seconds` counts.",
    )
    preset: Preset = Field(
        "balanced",
        description="fast: no ensemble. balanced: ensembles of at most 8 members. best: of at most 25. interpretable: "
        "models that a person can read: linear ones, additive ones, small trees, rules. small: models below 100 kB.",
    )
    metric: str | None = Field(
        None,
        description="Metric to improve: rmse, mae or r2 of numbers; log_loss, brier, accuracy, balanced_accuracy or "
        "roc_auc of classes. Null: rmse, or log_loss.",
    )
    include: list[str] | None = Field(
        None, min_length=1, max_length=50, description="Algorithms to choose among; null: those of the preset."
    )
    exclude: list[str] = Field([], max_length=50, description="Algorithms to leave out.")
    limits: AutomlLimits = Field(
        AutomlLimits(),
        description="Promises of the model: no version is made that breaks one; by default there are none.",
    )
    choose: Literal["simplest", "metric"] = Field(
        "simplest",
        description="simplest: the smallest model among the candidates that are statistically as good as the best and "
        "within one standard error of it, or an ensemble that is surely better. metric: the best in rank, or such an "
        "ensemble.",
    )
    features: list[str] | None = shared(TrainSpec, "features")
    weights: str | None = shared(TrainSpec, "weights")
    class_weight: ClassWeight | None = shared(TrainSpec, "class_weight")
    kinds: dict[str, KindName] = shared(TrainSpec, "kinds")
    task: Task | None = Field(
        None,
        description="classification or regression. Null: regression for a numeric target other than the numbers 0 and "
        "1, else classification.",
    )
    preprocessing: Preprocessing = shared(TrainSpec, "preprocessing")
    validation: AutomlValidation = Field(
        AutomlValidation(), description="Rows that compare and evaluate; by default each field has its own default."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of all splits, draws and fits.")

    @model_validator(mode="before")
    @classmethod
    def _limit_of_budget(cls, body: Any) -> Any:
        """A time limit a little above the budget, where none is named."""
        if not isinstance(body, dict) or body.get("time_limit_seconds") is not None or body.get("units") is not None:
            return body
        seconds = body.get("seconds", 300.0)
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            return body
        return {**body, "time_limit_seconds": 1.05 * seconds + 30}


class AutomlPlan(NamedTuple):
    """A request without faults, resolved for one table."""

    table: Table
    task: Task
    metric: str
    offers: list[Offer]
    left_out: list[tuple[str, str]]
    """Algorithms that cannot learn from this table, and why."""
    size_bytes: int | None


def plan_automl(request: AutomlRequest, sheet: Sheet, memory_bytes: float) -> AutomlPlan:
    """Raises InvalidRequest with every fault."""
    body = request.model_dump(mode="json", include=BODY)
    body["validation"] = request.validation.model_dump(include={"test_fraction", "group", "time"})
    table = Table(body, sheet, memory_bytes)
    faults = [*_name_faults(request), *_target_faults(request, sheet)]
    try:
        reference = table.offer(REFERENCE)
    except InvalidRequest as error:
        faults += [_placed(fault) for fault in error.faults]
        raise InvalidRequest(faults=list(dict.fromkeys(faults))) from None
    task = reference.planned.task
    metrics = metrics_of(task.record.prediction)
    if not task.supervised:
        faults.append(Fault("/task", "Take classification or regression: other tasks have no target to predict."))
    elif request.metric is not None and request.metric not in metrics:
        faults.append(Fault("/metric", no_such(f"A {task} is not ranked by", request.metric, metrics)))
    if reference.planned.rows < MIN_ROWS:
        detail = f"{reference.planned.rows} rows have a target, and a choice among models takes {MIN_ROWS}."
        faults.append(Fault("/dataset", detail, "too_few"))
    if faults:
        raise InvalidRequest(faults=list(dict.fromkeys(faults)))
    body["task"] = task.value
    offers, left_out = _offers(request, table, task)
    if not offers:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out[:3])
        detail = f"No algorithm is left that can learn from this table. {reasons}".strip()
        raise InvalidRequest(faults=[Fault("/include" if request.include else "/preset", detail)])
    seconds = min(offer.seconds(reference.planned.rows) for offer in offers)
    if request.units is None and seconds > request.seconds:
        detail = f"The cheapest candidate takes about {seconds:.3g} seconds, and there are {request.seconds:g}."
        raise InvalidRequest(faults=[Fault("/seconds", detail, "budget_too_small")])
    limit = request.limits.size_bytes
    if request.preset == "small":
        limit = SMALL_BYTES if limit is None else min(limit, SMALL_BYTES)
    return AutomlPlan(table, task, request.metric or task.record.measure, offers, left_out, limit)


def context_plan(request: AutomlRequest, context: JobContext) -> AutomlPlan:
    return plan_automl(request, context.datasets[0], context.memory_bytes)


def _offers(request: AutomlRequest, table: Table, task: Task) -> tuple[list[Offer], list[tuple[str, str]]]:
    settings = portfolio(task.record.prediction, request.preset)
    if request.include is not None:
        families = {setting.family for setting in settings}
        settings = [setting for setting in settings if setting.family in request.include]
        settings += [Setting({"name": name}) for name in request.include if name not in families]
    offers, left_out = list[Offer](), dict[str, str]()
    for setting in settings:
        if setting.family in request.exclude:
            continue
        try:
            offer = table.offer(setting)
        except InvalidRequest as error:
            left_out.setdefault(setting.family, error.faults[0].detail if error.faults else str(error.detail))
            continue
        if setting.max_rows is not None and offer.planned.rows > setting.max_rows:
            left_out.setdefault(setting.family, f"It compares all pairs of rows: at most {setting.max_rows} rows.")
            continue
        offers.append(offer)
    families = {offer.family for offer in offers}
    seconds = [offer.seconds(table.sheet.rows) for offer in offers]
    first = next((place for place, duration in enumerate(seconds) if duration <= CHEAP_FACTOR * min(seconds)), 0)
    ordered = [*offers[first : first + 1], *offers[:first], *offers[first + 1 :]]
    return ordered, [(name, reason) for name, reason in left_out.items() if name not in families]


def _name_faults(request: AutomlRequest) -> Iterator[Fault]:
    for field, names in (("include", request.include or []), ("exclude", request.exclude)):
        for place, name in enumerate(names):
            if name not in catalogue():
                yield Fault(
                    f"/{field}/{place}", no_such("There is no algorithm", name, catalogue()), "unknown_algorithm"
                )


def _target_faults(request: AutomlRequest, sheet: Sheet) -> Iterator[Fault]:
    for column in sheet.columns:
        if column.name == request.target and column.distinct is not None and column.distinct < 2:
            yield Fault("/target", f"{request.target!r} has one value: there is nothing to predict.", "constant")


def _placed(fault: Fault) -> Fault:
    """The fault at a place of the request, which names no algorithm."""
    return fault._replace(pointer="/dataset") if fault.pointer.startswith("/algorithm") else fault
