"""Solutions on the wire: the inputs, the goals they reach, where they lie, and the prices of their limits."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.algorithm import Vector
from app.ml.contract.columns import ColumnKind
from app.ml.decisions.design import Design, outside_inputs
from app.ml.decisions.goal import Aims, Goal, Reached
from app.ml.decisions.goal_search import KEPT, Found, functions
from app.ml.decisions.training_distance import NearestTrainingRow, TrainingDistance
from app.ml.numerics.designs.climb import STEP
from app.ml.numerics.designs.pareto_front import hypervolume
from app.ml.numerics.designs.shadow_prices import Price, shadow_prices

AT = 1e-6
"""Share of the width of an input within which it lies at a limit."""
REASONS = {
    "step_function": "The predictions are constant around the solution, as those of trees are: there is no slope.",
    "not_smooth": "Differences of two steps disagree: the predictions have no slope at the solution.",
    "not_a_maximum": "The slopes are no sum of those of the limits: the solution is not exact enough, or the "
    "predictions have an edge there.",
    "front": "Prices belong to one solution: combine the goals by weighted_sum, or make all but one limits.",
    "infeasible": "The solution does not keep all limits.",
}


class GoalReached(Wire):
    """A goal, as a solution reaches it."""

    prediction: float = Field(description="Prediction, or probability of the class.")
    lower: float | None = Field(None, description="Lower end of the interval; null without one, or where it has none.")
    upper: float | None = Field(None, description="Upper end of the interval; null without one, or where it has none.")
    kept: bool | None = Field(None, description="True if the limit is kept; null for goals that are no limits.")


class Solution(Wire):
    """Inputs, and the goals they reach by the predictions of the models."""

    row: dict[str, Any] = Field(description="Value of each input, as in a row to predict.")
    goals: list[GoalReached] = Field(description="Goals in the order of the request.")
    at_bound: list[str] = Field(description="Inputs at a bound of the search.")
    at_training_border: list[str] = Field(description="Inputs at the smallest or the largest training value.")
    outside_range: list[str] = Field(description="Inputs beyond the training range, or of a category that it lacks.")
    nearest: NearestTrainingRow | None = Field(None, description="Nearest row of the dataset; null without a dataset.")


class LimitPrice(Wire):
    """Price of a limit: the change of the best value if it moves up by one."""

    limit: Literal["bound", "constraint", "goal"] = Field(description="Kind of the limit: bound, constraint or goal.")
    column: str | None = Field(None, description="Input of a bound; null for other limits.")
    place: int | None = Field(None, description="Place of a constraint or a goal in its list; null for bounds.")
    end: Literal["at_least", "at_most"] = Field(description="End of the range that the limit is.")
    price: float = Field(
        description="Change of the value, in its unit, if the limit moves up by one unit: negative for an upper limit "
        "where the value is minimised."
    )


def solutions(design: Design, aims: Aims, search: Found, distance: TrainingDistance | None) -> Iterator[Solution]:
    reached = aims.reached(search.points)
    demands = reached.demands(aims.goals)
    flags = [flag for row in aims.rows for flag in row.model.predict_raw(row.raw(search.points)).flags]
    rows = [design.row(point) for point in search.points]
    near = [None] * len(rows) if distance is None else [*distance.nearest(rows)]
    for place, point in enumerate(search.points):
        yield Solution(
            row=rows[place],
            goals=[*_goals(aims.goals, reached, demands[place] >= -KEPT * search.scale.demands, place)],
            at_bound=[*_at(design, point, [(varied.lower, varied.upper) for varied in design.varied])],
            at_training_border=[
                *_at(design, point, [(varied.column.minimum, varied.column.maximum) for varied in design.varied])
            ],
            outside_range=outside_inputs(flags, place),
            nearest=near[place],
        )


def _goals(goals: Sequence[Goal], reached: Reached, limits_kept: Sequence[bool], place: int) -> Iterator[GoalReached]:
    limits = iter(limits_kept)
    for g, goal in enumerate(goals):
        ends = (reached.lower[place, g], reached.upper[place, g]) if goal.confidence is not None else (np.nan, np.nan)
        lower, upper = (float(end) if np.isfinite(end) else None for end in ends)
        yield GoalReached(
            prediction=float(reached.predicted[place, g]),
            lower=lower,
            upper=upper,
            kept=bool(next(limits)) if goal.is_limit else None,
        )


def _at(design: Design, point: Vector, ends: Sequence[tuple[float | None, float | None]]) -> Iterator[str]:
    """Names of the numbers at one of their ends."""
    for varied, x, bounds in zip(design.varied, point, ends, strict=True):
        if varied.values is not None or varied.column.kind != ColumnKind.NUMERIC:
            continue
        reach = AT * (varied.upper - varied.lower)
        if any(end is not None and abs(x - end) <= reach for end in bounds):
            yield varied.column.name


def front_volume(aims: Aims, search: Found) -> tuple[float | None, list[float] | None]:
    """Hypervolume of a front above its own worst values, and these, each in the sign of its goal."""
    if search.value is not None:
        return None, None
    gains = aims.reached(search.points).gains(aims.goals)
    worst = gains.min(axis=0)
    signs = [1.0 if goal.aim == "maximise" else -1.0 for goal in aims.goals if not goal.is_limit]
    return hypervolume(gains, worst), (worst * signs).tolist()


def shown_value(aims: Aims, search: Found) -> float | None:
    return None if search.value is None else _sign(aims) * search.value


def _sign(aims: Aims) -> float:
    """−1 where the value is what is minimised, not what it is worth: a prediction, or the distance from a target."""
    aim, *others = [goal.aim for goal in aims.goals if not goal.is_limit]
    return -1.0 if not others and aim != "maximise" else 1.0


def limit_prices(design: Design, aims: Aims, search: Found) -> tuple[list[LimitPrice] | None, str | None, float | None]:
    """Prices of one solution, else the reason why there are none; and the step of the differences."""
    if search.value is None or not search.feasible:
        return None, REASONS["front" if search.value is None else "infeasible"], None
    prices = shadow_prices(design.space, partial(functions, aims), search.points[0], search.scale.value)
    if prices.found is None:
        return None, REASONS[str(prices.reason)], STEP
    return [_price(design, aims.goals, price, _sign(aims)) for price in prices.found], None, STEP


def _price(design: Design, goals: Sequence[Goal], price: Price, sign: float) -> LimitPrice:
    """sign: −1 where the value on the wire is what is minimised."""
    limit = price.limit
    end: Literal["at_least", "at_most"] = "at_most" if limit.upper else "at_least"
    if limit.kind == "bound":
        column = design.varied[limit.place].column.name
        return LimitPrice(limit="bound", column=column, end=end, price=sign * price.value)
    if limit.kind == "constraint":
        return LimitPrice(limit="constraint", place=limit.place, end=end, price=sign * price.value)
    place = [place for place, goal in enumerate(goals) if goal.is_limit][limit.place]
    if goals[place].aim == "at_least":
        return LimitPrice(limit="goal", place=place, end="at_least", price=-sign * price.value)
    return LimitPrice(limit="goal", place=place, end="at_most", price=sign * price.value)
