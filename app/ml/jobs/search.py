"""Choose among settings and algorithms by cross-validation on the same folds, and train the one chosen.

Every combination of the grids, with random draws if any, is evaluated on the same folds of the training rows. The
first in rank is then fitted on all of them and evaluated once on the test rows, which no candidate has seen. Where
candidates are better together, the result holds their committee, ready to be trained.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Literal, NamedTuple

from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.base.suggestions import no_such
from app.ml.contract.model_reference import Name
from app.ml.contract.progress import Reporter, Stages, reporter
from app.ml.contract.task import Task
from app.ml.evaluation.validation import Validation
from app.ml.kinds.job import Checked, Estimate, Inputs, JobContext, Kind, Needs, Outcome, Request, Result, Sheet, Source
from app.ml.training.dry_run import row_look
from app.ml.training.planning.cost import BASE_SECONDS
from app.ml.training.planning.counts import scaling_faults
from app.ml.training.planning.plan import Plan, plan
from app.ml.training.planning.projection import Projection
from app.ml.training.planning.related_table import RelatedTable
from app.ml.training.planning.train_spec import AlgorithmSpec, TrainSpec
from app.ml.training.rows.related_rows import check_relations
from app.ml.training.search.candidates import Candidate, SearchSpec, candidates
from app.ml.training.search.ensemble_selection import Ensemble
from app.ml.training.search.ranking_criteria import NAMES, REFUSED, fits, higher_is_better, metric_faults, ranked_task
from app.ml.training.search.search import CandidateResult, rank
from app.ml.training.train import train

CHOSEN = 0.9
"""Progress of a search when it has chosen."""
MANY = 10
"""Candidates from which the best is better than it looks."""


class SearchRequest(SearchSpec, Request):
    """Try many settings, keep the one that validates best."""

    model: Name | None = Field(None, description="The model that gets the chosen one as a version; absent: none does.")
    dataset: DatasetReference = Field(
        description="The id of an uploaded dataset, or its name: the newest dataset of that name."
    )
    validation: Validation = Field(
        Validation(method="kfold"),
        description="Validation of the candidates by kfold; by default 5 folds of the rows that 20% test rows leave.",
    )
    metric: str | None = Field(
        None,
        description="Metric that ranks the candidates: one of the report such as rmse, mae, r2, accuracy, log_loss or "
        "roc_auc; or q, the goodness of fit of a least-squares fit with known errors; or structural_risk, of two "
        "classes the errors on the training rows and a term that grows with the capacity. Of clusterings silhouette, "
        "davies_bouldin, stability (agreement of the clusters of different fits), gap (how much tighter they are "
        "than those of rows without clusters), or with a target adjusted_rand or adjusted_mutual_information; of trees "
        "of clusters cophenetic_correlation. Of projections trustworthiness, continuity or stress, or with "
        "classes separation. Of densities log_density of the rows held out, or bic or aic of one fit of all training "
        "rows. Null: rmse for numbers, log_loss for classes, but accuracy where a candidate has degrees of membership "
        "instead of probabilities; silhouette for clusterings, trustworthiness for projections, but separation for "
        "those that learn from classes; log_density for densities.",
    )
    rule: Literal["best", "one_standard_error"] = Field(
        "best",
        description="best: ties go to the candidate given first. one_standard_error: the first within one standard "
        "error of the best, so give the simplest first.",
    )
    keep_fold_models: bool = Field(
        False,
        description="Makes each member of the ensemble a cross-validated committee of its fits without one "
        "fold each; if false, one fit of all rows.",
    )


class SearchEstimate(Estimate):
    """Estimate of a search."""

    candidates: int = Field(description="Number of candidates.")
    fits: int = Field(description="Number of fits that the job would make.")
    memory_bytes: int = Field(description="Rough peak of the process.")
    seconds: float = Field(description="Rough time from start to end.")


class SearchResult(Result):
    """Candidates with their metrics, in the order of the request."""

    kind: Literal["search"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    metric: str = Field(description="Metric that ranks the candidates.")
    better: Literal["lower", "higher"] = Field(description="Direction of the metric: lower or higher is better.")
    chosen: int = Field(description="Place in the list, from 0.")
    evidence: str = Field(description="Evidence behind the metrics: one sentence with rows, folds and seed.")
    candidates: list[CandidateResult] = Field(description="Candidates in the order of the request.")
    ensemble: Ensemble | None = Field(
        None,
        description="Ensemble to train in one more job; null where no average of candidates was better than "
        "the best of them, and without a target.",
    )


def needs(request: SearchRequest) -> Needs:
    relations, projection = request.relations, request.preprocessing.projection
    related = () if relations is None or relations.form == "square" else (relations.dataset,)
    return Needs((request.dataset, *related), () if projection is None else (projection.wanted,))


def check(request: SearchRequest, known: JobContext) -> Checked:
    sheet, *others = known.datasets
    fixed = _Fixed(
        next((Projection(*one) for one in known.models), None),
        next((RelatedTable(one.digest, one.columns) for one in others), None),
        [request.algorithm, *request.alternatives],
        known.in_doubt or ranked_task(request.metric),
        known.memory_bytes,
    )
    faults = [*scaling_faults(request.preprocessing, [request.algorithm, *request.alternatives])]
    if request.validation.method != "kfold":
        faults.append(Fault("/validation/method", "A search validates by kfold."))
    if request.metric is not None and request.metric not in {*NAMES, *REFUSED}:
        usable = [name for name in NAMES if name not in REFUSED]
        faults.append(Fault("/metric", no_such("There is no metric", request.metric, usable)))
    if faults:
        raise InvalidRequest(faults=faults)
    found = candidates(request)
    plans = _plans(found, sheet, fixed)
    if len({one.task for one in plans}) > 1:
        raise InvalidRequest(faults=[Fault("/alternatives", "All candidates must do the same task: name it in task.")])
    algorithms, compared = [one.spec.algorithm.name for one in found], plans[0].reference is not None
    texts = bool(request.preprocessing.text)
    details = metric_faults(request.metric, plans[0].task, algorithms, compared=compared, texts=texts)
    if faults := [Fault("/metric", detail) for detail in details]:
        raise InvalidRequest(faults=faults)
    if request.metric == "gap" and request.relations is not None:
        detail = "gap compares with rows drawn in their columns, not with relations: take silhouette or stability."
        raise InvalidRequest(faults=[Fault("/metric", detail)])
    each = fits(request.metric, request.validation.folds)
    last = 0.0 if request.model is None else max(one.seconds - BASE_SECONDS + one.halvings for one in plans)
    estimate = SearchEstimate(
        candidates=len(found),
        fits=each * len(found) + (request.model is not None),
        memory_bytes=max(one.memory_bytes for one in plans),
        seconds=round(BASE_SECONDS + last + sum(each * (one.seconds - BASE_SECONDS) for one in plans), 2),
        warnings=list(dict.fromkeys([*(warning for one in plans for warning in one.warnings), *fixed.warnings(sheet)])),
    )
    names = tuple(sorted({one.spec.algorithm.name for one in found}))
    names += tuple(version.header.algorithm for version in known.models)
    related = None if request.relations is None else partial(_check_rows, request, plans)
    look = row_look(plans[0], request.kinds)
    return Checked(request.model, None, tuple(sorted(set(names))), estimate, related, look)


def _check_rows(request: SearchRequest, plans: Sequence[Plan], sources: Sequence[Source]) -> None:
    """Reads the relations. Raises InvalidRequest, naming cells, as the job would."""
    source, *others = sources
    table = source.used_as(request.kinds).read()
    related = next((RelatedTable(one.sheet.digest, one.sheet.columns, cache(one.read)) for one in others), None)
    for planned in {one.spec.algorithm.name: one for one in plans}.values():
        check_relations(planned._replace(related=related), table)


class _Fixed(NamedTuple):
    """Parts of the request that are the same for every candidate, in every fold."""

    projection: Projection | None
    related: RelatedTable | None
    algorithms: Sequence[AlgorithmSpec]
    """All that are to do the same task."""
    in_doubt: Task | None
    memory_bytes: float

    def plan(self, spec: TrainSpec, sheet: Sheet) -> Plan:
        return plan(
            spec,
            sheet.columns,
            sheet.rows,
            self.memory_bytes,
            projection=self.projection,
            related=self.related,
            alternatives=self.algorithms,
            in_doubt=self.in_doubt,
            whole=True,
        )

    def warnings(self, sheet: Sheet) -> Sequence[str]:
        return () if self.projection is None else [*self.projection.warnings(sheet.digest)]


def _plans(found: Sequence[Candidate], sheet: Sheet, fixed: _Fixed) -> list[Plan]:
    """Plan of each candidate. Raises InvalidRequest with every fault of any."""
    plans: list[Plan] = []
    faults: dict[Fault, None] = {}
    for one in found:
        try:
            plans.append(fixed.plan(one.spec, sheet))
        except InvalidRequest as error:
            for fault in error.faults:
                where = one.root + fault.pointer.removeprefix("/algorithm")
                placed = fault._replace(pointer=where) if fault.pointer.startswith("/algorithm") else fault
                faults[placed] = None
    if faults:
        raise InvalidRequest(faults=list(faults))
    return plans


def run(request: SearchRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    source, *others = inputs.datasets
    source = source.used_as(request.kinds)
    sheet, table, stages = source.sheet, source.read(), Stages(progress)
    fixed = _Fixed(
        next((Projection(*one.version, one.model) for one in inputs.models), None),
        next((RelatedTable(one.sheet.digest, one.sheet.columns, cache(one.read)) for one in others), None),
        [request.algorithm, *request.alternatives],
        inputs.in_doubt or ranked_task(request.metric),
        inputs.memory_bytes,
    )
    found = candidates(request)
    planned = fixed.plan(found[0].spec, sheet)
    ranking = rank(
        found,
        planned,
        table,
        folds=request.validation.folds,
        metric=request.metric,
        rule=request.rule,
        stages=stages,
        share=CHOSEN,
        fold_models=request.keep_fold_models,
        each=inputs.each,
    )
    lucky = f"The best of {len(found)} candidates looks better than it is: use its test metrics."
    result = SearchResult(
        kind="search",
        metric=ranking.metric,
        better="higher" if higher_is_better(ranking.metric) else "lower",
        chosen=ranking.best,
        evidence=ranking.evidence,
        candidates=ranking.tried,
        ensemble=ranking.ensemble,
        warnings=[*ranking.warnings, *fixed.warnings(sheet), *([lucky] if len(found) >= MANY else [])],
    )
    if request.model is None:
        return Outcome(result=result)
    received = stages.within(CHOSEN, 1.0, "training the chosen one")
    if ranking.best:
        planned = fixed.plan(found[ranking.best].spec, sheet)
    selected = f"The best of {len(found)} candidates was chosen by these rows." if len(found) > 1 else None
    trained = train(
        planned._replace(warnings=(*planned.warnings, *fixed.warnings(sheet)), selected=selected),
        table,
        data_digest=sheet.digest,
        reading=sheet.reading,
        progress=reporter(received),
        each=inputs.each,
    )
    return Outcome(trained, result)


KIND = Kind(
    operation="search_models",
    dry_run="validate_search",
    request=SearchRequest,
    result=SearchResult,
    estimate=SearchEstimate,
    needs=needs,
    check=check,
    run=run,
)
