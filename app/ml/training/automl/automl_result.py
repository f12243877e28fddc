"""Result of a search for the best model, as it is stored and sent."""

from typing import Literal

from pydantic import Field

from app.base.wire import Wire
from app.ml.kinds.job import Result
from app.ml.statistics.metric_value import Metric
from app.ml.training.automl.choice import WeightedEnsemble
from app.ml.training.automl.leaderboard import LeaderboardRow

EndedBy = Literal["budget", "units", "exhausted", "cancel", "limit", "crash"]


class LeftOut(Wire):
    """Algorithm that is no candidate."""

    algorithm: str = Field(description="Name of the algorithm.")
    reason: str = Field(description="Reason why it cannot learn from this table.")


class AutomlResult(Result):
    """Leaderboard of a search for the best model."""

    kind: Literal["automl"] = Field(description="Kind of the job; it identifies the variant of this schema.")
    task: str = Field(description="classification or regression.")
    metric: str = Field(description="Metric that ranks the candidates.")
    better: Literal["lower", "higher"] = Field(description="Direction of the metric: lower or higher is better.")
    chosen: int | None = Field(None, description="Id of the candidate that is served; null: an ensemble, or none.")
    candidates: list[LeaderboardRow] = Field(description="Candidates, in the order of admission.")
    ensemble: WeightedEnsemble | None = Field(
        None, description="Ensemble of candidates that was tried; null: there was none to try."
    )
    pareto: list[int] = Field(
        [], description="Ids of the candidates that no other beats in metric, time and size at once, the best first."
    )
    evaluation: Metric | None = Field(
        None,
        description="Metric of the served model on the test rows, which no choice has seen; without a model or test "
        "rows an estimate from the folds that the choice among candidates does not flatter. Null: not known.",
    )
    evidence: str = Field(description="Evidence behind the metrics: one sentence with rows, folds and seed.")
    left_out: list[LeftOut] = Field([], description="Algorithms that cannot learn from this table.")
    units_done: int = Field(description="Number of fits of the comparison.")
    ended_by: EndedBy = Field(
        description="budget: no further fit had time. units: all were done. exhausted: nothing was left to try. "
        "cancel, limit or crash: the job ended before, and this is what was stored."
    )
    search_seconds: float = Field(0.0, description="Seconds of the comparison of candidates, with checkpoints.")
    final_seconds: float = Field(0.0, description="Seconds of the choice, the final fit and its evaluation.")
    next_steps: list[str] = Field([], description="Sentences on what may improve the model.")
