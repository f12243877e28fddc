"""Solutions of a front as candidates that a person compares."""

from collections.abc import Sequence
from typing import NamedTuple

from app.ml.decisions.goal import Goal
from app.ml.decisions.preference_study import Candidate, PreferenceGoal
from app.ml.decisions.solution import GoalReached, Solution


class Front(NamedTuple):
    goals: list[PreferenceGoal]
    candidates: list[Candidate]


def front_candidates(goals: Sequence[Goal], solutions: Sequence[Solution]) -> Front:
    """Goals that are no limits, and each solution with what it reaches in them."""
    open_goals = {place: goal for place, goal in enumerate(goals) if not goal.is_limit}
    names = {place: goal.model + ("" if goal.label is None else f" {goal.label}") for place, goal in open_goals.items()}
    all_names = [*names.values()]
    names = {place: name if all_names.count(name) == 1 else f"{name} ({place})" for place, name in names.items()}
    candidates = [
        Candidate(
            values={names[place]: _counted(goal, solution.goals[place]) for place, goal in open_goals.items()},
            row=solution.row,
        )
        for solution in solutions
    ]
    front = [
        PreferenceGoal.model_validate({"name": names[place], "aim": goal.aim, "value": goal.value})
        for place, goal in open_goals.items()
    ]
    return Front(front, candidates)


def _counted(goal: Goal, reached: GoalReached) -> float:
    """The prediction, or the end of its interval that counts."""
    lower, upper = (reached.prediction if end is None else end for end in (reached.lower, reached.upper))
    if goal.aim == "target":
        return max(lower, upper, key=lambda end: abs(end - (goal.value or 0.0)))
    return lower if goal.aim == "maximise" else upper
