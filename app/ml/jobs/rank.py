"""Rank the columns of a dataset by what they show of a target, one at a time.

Correlation, correlation ratio, chi-square, mutual information, Fisher's index and MIFS, each with intervals or
p-values that are corrected for the number of columns. Without a choice of measures the kinds of the columns and the
number of rows choose.
"""

import math
from collections.abc import Iterator
from typing import Literal
from uuid import UUID

import numpy as np
from pydantic import Field

from app.base.errors import InvalidData, InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.ml.contract.algorithm import Labels
from app.ml.contract.column_names import no_column
from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.contract.given_kinds import KindName
from app.ml.contract.progress import Reporter, Stages
from app.ml.contract.task import DESCRIPTION as TASK
from app.ml.evaluation.column_measures import MEASURES_OF_COLUMNS, MeasureName, MeasureOptions, Values
from app.ml.evaluation.column_ranking import ColumnRanking, NamedColumn, ranking
from app.ml.evaluation.measure_choice import chosen_measures
from app.ml.kinds.job import Checked, Estimate, Inputs, JobContext, Kind, Needs, Outcome, Request, Result, Sheet
from app.ml.preparation.arrow_columns import Raw, RawColumn
from app.ml.training.dry_run import row_look
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.task_choice import NUMBERS
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.rows.training_set import TrainingSet

MOST_GREEDY = 500
"""Columns that `mifs` compares pair by pair."""
ALONE = (
    "Each column is measured alone, so that columns which matter only together, as in an exclusive or, rank low. "
    "Confirm a choice of columns by validation, as the job select does."
)


class RankRequest(Request):
    """Rank the columns of a dataset by what they show of a target."""

    dataset: DatasetReference = Field(
        description="The id of an uploaded dataset, or its name: the newest dataset of that name."
    )
    target: str = Field(description="Column that the others are compared with. Rows without a value are left out.")
    features: list[str] | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        description="Columns to rank. Null: every column but the target, the group and time, text and identifier-like "
        "ones.",
    )
    kinds: dict[str, KindName] = Field(
        {}, description="Kinds of columns that are used as another kind than the dataset has them, as in a training."
    )
    measures: list[MeasureName] | None = Field(
        None,
        min_length=1,
        description="Measures to rank by, each in a ranking of its own. Null: chosen by the kinds of target and "
        "columns and the number of rows; the result has the reason.",
    )
    max_bins: int | None = Field(
        None,
        ge=2,
        le=256,
        description="Bins of numbers for `mutual_information`, `conditional_information` and `mifs`, at most; each has "
        "about equally many rows. Null: up to 16, so that two columns have 5 rows to a cell.",
    )
    n_neighbors: int = Field(
        3, ge=1, le=100, description="Number of nearest rows for `nearest_neighbour_information`; more vary less."
    )
    beta: float = Field(
        0.5,
        ge=0,
        le=10,
        description="Weight of redundancy in `mifs`: the information shared with columns before. 0: none counts.",
    )
    bias_correction: bool = Field(
        True,
        description="True: `mutual_information`, `conditional_information` and `mifs` are less the bias of few rows "
        "(Miller and Madow). False: as the shares of the table are, which is exact if its rows are all there are.",
    )
    given: list[str] = Field(
        [], max_length=10, description="Columns that are known already, for `conditional_information`."
    )
    test_fraction: float = Field(
        0.2,
        ge=0,
        lt=1,
        description="Share of rows left out: those that a training with the same share, group, time and seed holds "
        "out, so that they can still evaluate a model of the columns chosen. 0: every row is used.",
    )
    group: str | None = Field(
        None, description="Column by which whole groups of rows are left out, as in a training. Null: there is none."
    )
    time: str | None = Field(
        None, description="Column by which the latest rows are left out, as in a training. Null: there is none."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the choice of the rows that are left out.")

    @property
    def spec(self) -> TrainSpec:
        """A training of the same target, columns and rows, whose checks are those of this request."""
        validation = {"test_fraction": self.test_fraction, "group": self.group, "time": self.time}
        own = self.model_dump(mode="json", include={"target", "features", "kinds", "seed"})
        return TrainSpec.model_validate(own | {"algorithm": {"name": "decision_tree"}, "validation": validation})


class RankEstimate(Estimate):
    """Estimate of a ranking."""

    columns: int = Field(description="Number of columns that would be ranked.")
    memory_bytes: int = Field(description="Rough peak of the process.")


class RankResult(Result):
    """Columns by rank, for every measure."""

    kind: Literal["rank"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    dataset: UUID = Field(description="Id of the dataset.")
    target: str = Field(description="Column that the others were compared with.")
    task: str = Field(description=TASK)
    rows: int = Field(description="Number of rows with a target that were used.")
    evidence: str = Field(description="Evidence behind the values: the rows, and what a ranking cannot show.")
    reason: str | None = Field(None, description="Reason for the choice of the measures; null: the request named them.")
    rankings: list[ColumnRanking] = Field(description="A ranking for every measure.")


def needs(request: RankRequest) -> Needs:
    return Needs((request.dataset,))


def check(request: RankRequest, known: JobContext) -> Checked:
    (sheet,) = known.datasets
    faults, planned = list[Fault](), None
    try:
        planned = _plan(request, sheet, known.memory_bytes)
    except InvalidRequest as error:
        faults += [_placed(fault) for fault in error.faults]
    columns = sheet.columns if planned is None else planned.columns
    faults += _given_faults(request, {column.name: column for column in columns})
    if planned is not None:
        faults += _measure_faults(request, planned)
    if faults or planned is None:
        raise InvalidRequest(faults=faults)
    estimate = RankEstimate(
        columns=len(planned.features), memory_bytes=planned.memory_bytes, warnings=[*planned.warnings]
    )
    return Checked(estimate=estimate, look=row_look(planned, request.kinds))


def _plan(request: RankRequest, sheet: Sheet, memory_bytes: float = math.inf) -> Plan:
    wanted = {MEASURES_OF_COLUMNS[name].of_target for name in request.measures or ()}
    in_doubt = NUMBERS if "numbers" in wanted else None
    return plan(request.spec, sheet.columns, sheet.rows, memory_bytes, in_doubt=in_doubt, whole=True)


def _placed(fault: Fault) -> Fault:
    """With the pointer into this request."""
    return fault._replace(pointer=fault.pointer.removeprefix("/validation"))


def _measure_faults(request: RankRequest, planned: Plan) -> Iterator[Fault]:
    held = "numbers" if planned.task.of_numbers else "classes"
    named = request.measures or []
    for place, name in enumerate(named):
        if name in named[:place]:
            yield Fault(f"/measures/{place}", "This measure is named twice.", "duplicate")
        wanted = MEASURES_OF_COLUMNS[name].of_target
        if wanted not in {None, held}:
            detail = f"{name} needs a target of {wanted}; this one holds {held}."
            yield Fault(f"/measures/{place}", detail)
        if name == "mifs" and len(planned.features) > MOST_GREEDY:
            detail = f"mifs compares columns pair by pair, up to {MOST_GREEDY} of them: name these in features."
            yield Fault(f"/measures/{place}", detail, "too_large")


def _given_faults(request: RankRequest, columns: dict[str, TableColumn]) -> Iterator[Fault]:
    conditional = "conditional_information" in (request.measures or ())
    if conditional and not request.given:
        yield Fault("/given", "conditional_information needs the columns that are known already.", "missing")
    if request.given and not conditional:
        yield Fault("/given", "Only conditional_information has given columns: name it in measures.")
    for place, name in enumerate(request.given):
        at, column = f"/given/{place}", columns.get(name)
        if column is None:
            yield no_column(at, name, columns)
        elif name == request.target:
            yield Fault(at, "The target cannot be given.")
        elif column.kind == ColumnKind.TEXT:
            yield Fault(at, "Free text cannot be given.")


def run(request: RankRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    (source,), stages = inputs.datasets, Stages(progress)
    stages(0.0, "reading the table")
    planned = _plan(request, source.sheet)
    source = source.used_as(request.kinds)
    table = source.read(dict.fromkeys([*planned.features, *request.given, *_named(request)]))
    training_set = TrainingSet.read(planned, table)
    rng = np.random.Generator(np.random.PCG64(request.seed))
    rows = training_set.holdout(request.test_fraction, rng).train
    if rows.size < 2:
        raise InvalidData("Fewer than 2 rows are left to rank columns on: lower test_fraction.")
    places = training_set.target.rows[rows]
    target = Values(training_set.target.y[rows], planned.task.of_numbers, planned.task.of_classes)
    columns = _columns(training_set.raw, places)
    chosen = None if request.measures else chosen_measures([one.values for one in columns], target, rows.size)
    names = request.measures if chosen is None else chosen.measures
    options = MeasureOptions(request.max_bins, request.n_neighbors, request.beta, request.bias_correction)
    rankings = []
    for place, name in enumerate(names or ()):
        begin, end = (0.1 + 0.9 * (place + more) / len(names or ()) for more in (0, 1))
        of, own = columns, options
        if name == "conditional_information":
            given = _columns(Raw.read(table, _given(request, planned)), places)
            own = options._replace(given=tuple(one.values for one in given))
            of = [column for column in columns if column.name not in request.given]
        rankings.append(ranking(name, of, target, own, stages.within(begin, end, name)))
    result = RankResult(
        kind="rank",
        dataset=UUID(str(request.dataset)),
        target=request.target,
        task=planned.task,
        rows=rows.size,
        evidence=_evidence(training_set.rows, rows.size),
        reason=chosen and chosen.reason,
        rankings=rankings,
        warnings=[*planned.warnings],
    )
    return Outcome(result=result)


def _named(request: RankRequest) -> Iterator[str]:
    """Columns that the request names besides those to rank."""
    return (name for name in (request.target, request.group, request.time) if name is not None)


def _given(request: RankRequest, planned: Plan) -> list[RawColumn]:
    known = {column.name: column for column in planned.columns}
    named = [known[name] for name in request.given]
    return [RawColumn(one.name, ColumnKind(one.kind), one.notation, one.source_kind) for one in named]


def _columns(raw: Raw, rows: Labels) -> list[NamedColumn]:
    """The columns of these rows of the table."""
    return [
        NamedColumn(column.name, column.kind, Values.of(raw.values[rows, place], column.kind))
        for place, column in enumerate(raw.columns)
    ]


def _evidence(all_rows: int, used: int) -> str:
    left = f" Another {all_rows - used}, which a training holds out, were left alone." if used < all_rows else ""
    return f"The values rest on {used} rows with a target.{left} {ALONE}"


KIND = Kind(
    operation="rank_columns",
    dry_run="validate_ranking",
    request=RankRequest,
    result=RankResult,
    estimate=RankEstimate,
    needs=needs,
    check=check,
    run=run,
)
