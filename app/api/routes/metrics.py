"""Metrics of predictions, without a model or a job."""

from fastapi import APIRouter

from app.api.edge.strict_route import StrictRoute
from app.ml.queries.metrics import Metrics, MetricsRequest, measure

router = APIRouter(prefix="/v1/metrics", tags=["evaluation"], route_class=StrictRoute)


@router.post("")
def measure_predictions(body: MetricsRequest) -> Metrics:
    """Metrics of predictions that you have, each with its confidence interval and rounded to it.

    Classes may come with labels, with probabilities or with both. At most 100,000 pairs; for more, a job evaluates
    a model on a dataset.
    """
    return measure(body.root)
