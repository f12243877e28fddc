"""Find the inputs that reach goals over the predictions of models, under bounds and constraints.

A single goal, or a weighted sum of goals, has one solution, with Lagrange multipliers as the prices of its limits. Of
several goals the solutions are a Pareto front: none is better in all goals. A goal may count the worse end of the
interval of a prediction, so that it is reached in spite of the error of the model.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from app.base.errors import InvalidRequest
from app.base.faults import Fault
from app.base.references import DatasetReference
from app.ml.contract.algorithm import Matrix
from app.ml.contract.progress import Reporter, Stages
from app.ml.decisions.design import Design, common_inputs
from app.ml.decisions.design_faults import design_faults, model_faults
from app.ml.decisions.design_request import DesignRequest
from app.ml.decisions.goal import Aims, Goal, demand_bounded, goal_faults
from app.ml.decisions.goal_search import Found, searched
from app.ml.decisions.solution import LimitPrice, Solution, front_volume, limit_prices, shown_value, solutions
from app.ml.decisions.training_distance import TrainingDistance
from app.ml.kinds.job import Checked, Inputs, JobContext, Kind, Needs, Outcome, Request, Result
from app.ml.tables.casting import kinds_wanted
from app.ml.training.versions.table_evaluation import column_faults

STARTS = 2000
"""Training rows where a search begins."""
MOST_GOALS = 4
"""Goals of a front."""


class OptimiseRequest(DesignRequest, Request):
    """Find the inputs that reach goals over the predictions of models."""

    goals: list[Goal] = Field(min_length=1, max_length=20, description="Goals over the predictions of model versions.")
    combine: Literal["pareto", "weighted_sum"] = Field(
        "pareto",
        description="Combination of several goals that are no limits. pareto: the front of solutions of which none is "
        "better in all goals. weighted_sum: the one with the largest sum of `weight` times the goal, negative for "
        "minimise, and for a target times the distance from it.",
    )
    n_solutions: int = Field(20, ge=2, le=200, description="Largest number of solutions of a front.")
    effort: Literal["quick", "normal", "thorough"] = Field(
        "normal", description="Size of the search: about 2,000, 6,000 or 25,000 predictions of each model, or more."
    )
    dataset: DatasetReference | None = Field(
        None,
        description="Training rows, from which the distance of a solution is measured, and where searches begin too: "
        "the id of a dataset, or its name. Null: no distance.",
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Same seed, same solutions.")


class OptimiseResult(Result):
    """The best inputs, and the price of the limits that they touch."""

    kind: Literal["optimise"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    feasible: bool = Field(description="True if the solutions keep all limits.")
    solutions: list[Solution] = Field(description="One solution, or those of a front by their first goal.")
    value: float | None = Field(
        None, description="Weighted sum, or the single goal as it counts, of one solution; null for a front."
    )
    hypervolume: float | None = Field(
        None,
        description="Volume of goals between a front and `reference`, in the units of the goals; larger is better.",
    )
    reference: list[float] | None = Field(
        None, description="Worst value of each goal on the front, from which the hypervolume is measured."
    )
    prices: list[LimitPrice] | None = Field(
        None, description="Prices of the limits that one solution touches; null where they are not known."
    )
    no_prices: str | None = Field(None, description="Reason why prices are not known.")
    step: float | None = Field(None, description="Step of the differences behind the prices, in widths of the inputs.")
    evaluated: int = Field(description="Points that the search predicted, those of its last steps aside.")


def needs(request: OptimiseRequest) -> Needs:
    own = () if request.dataset is None else (request.dataset,)
    return Needs(own, tuple(goal.wanted for goal in request.goals))


def check(request: OptimiseRequest, known: JobContext) -> Checked:
    headers = [version.header for version in known.models]
    faults = [*goal_faults(request.goals, headers), *model_faults([header.inputs for header in headers])]
    if sum(not goal.is_limit for goal in request.goals) > MOST_GOALS and request.combine == "pareto":
        detail = f"A front has at most {MOST_GOALS} goals that are no limits: make the others limits, or sum them."
        faults.append(Fault("/goals", detail))
    for sheet in known.datasets:
        for header in headers:
            faults += column_faults(header, None, sheet.columns, sheet.rows)
    faults += design_faults(request, common_inputs([header.inputs for header in headers]))
    if faults := list(dict.fromkeys(faults)):
        raise InvalidRequest(faults=faults)
    return Checked(algorithms=tuple(dict.fromkeys(header.algorithm for header in headers)))


def run(request: OptimiseRequest, inputs: Inputs, progress: Reporter) -> Outcome:
    stages, models = Stages(progress), inputs.models
    stages(0.0, "reading the models")
    design = Design.of(request, common_inputs([one.model.inputs for one in models]))
    aims = Aims.of(request.goals, models, design)
    distance, start = _training_rows(inputs, aims, design)
    demand_bounded(aims.reached(start), aims.goals)
    rng = np.random.Generator(np.random.PCG64(request.seed))
    single = request.combine == "weighted_sum" or sum(not goal.is_limit for goal in aims.goals) == 1
    within = stages.within(0.05, 0.95, "searching")
    found = searched(design.space, aims, start, request.effort, rng, within, front=0 if single else request.n_solutions)
    stages(0.95, "describing the solutions")
    volume, reference = front_volume(aims, found)
    prices, reason, step = limit_prices(design, aims, found)
    result = OptimiseResult(
        kind="optimise",
        feasible=found.feasible,
        solutions=[*solutions(design, aims, found, distance)],
        value=shown_value(aims, found),
        hypervolume=volume,
        reference=reference,
        prices=prices,
        no_prices=reason,
        step=step,
        evaluated=found.evaluated,
        warnings=[*_warnings(found)],
    )
    return Outcome(result=result)


def _training_rows(inputs: Inputs, aims: Aims, design: Design) -> tuple[TrainingDistance | None, Matrix]:
    """The rows of the dataset, by whose distance solutions are measured, and points where a search begins."""
    if not inputs.datasets:
        return None, design.start[None]
    (source,) = inputs.datasets
    sheet = source.sheet.columns
    kinds = {name: kind for rows in aims.rows for name, kind in kinds_wanted(rows.model, sheet).items()}
    columns = common_inputs([rows.model.inputs for rows in aims.rows])
    table = source.used_as(kinds).read([column.name for column in columns])
    return TrainingDistance.of(columns, table), np.concatenate([design.start[None], design.points(table)[:STARTS]])


def _warnings(found: Found) -> Iterator[str]:
    if not found.feasible:
        yield (
            "No inputs keep all limits by these predictions: the solution misses them by as little as the search "
            "found. Widen a bound, or loosen a limit."
        )


KIND = Kind(
    operation="optimise_inputs",
    dry_run="validate_optimisation",
    request=OptimiseRequest,
    result=OptimiseResult,
    needs=needs,
    check=check,
    run=run,
)
