"""The review queue: rows that a classifier rejected, for people to label, and the dataset that they become."""

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query, Response, status

from app.api.edge.openapi import declare
from app.api.edge.router import READ_WRITE, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.datasets import Dataset
from app.schemas.reviews import Review, ReviewExport, ReviewLabel, ReviewPage, ReviewState

router = Router(needs=READ_WRITE, prefix="/v1/reviews", tags=["reviews"])
ReviewPath = Annotated[UUID, Path(description="Id of the review.")]


@router.get("")
def list_reviews(
    services: ServicesDep,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    model: Annotated[
        str | None,
        Query(pattern=r"^[a-z0-9_-]{1,100}$", description="Model whose rows are listed; null: of all models."),
    ] = None,
    state: Annotated[
        ReviewState | None, Query(description="State of the reviews that are listed; null: any state.")
    ] = None,
) -> ReviewPage:
    """Rows that classifiers rejected in predictions with `review=true`, newest first."""
    return services.reviews.page(limit, cursor, model=model, state=state)


@router.post("/{review_id}/label")
def label_review(review_id: ReviewPath, body: ReviewLabel, services: ServicesDep) -> Review:
    """Give a row its class. A later label takes the place of an earlier one; then the row is in no dataset again."""
    return services.reviews.label(review_id, body.label)


@router.delete("/{review_id}", status_code=status.HTTP_204_NO_CONTENT)
def delete_review(review_id: ReviewPath, services: ServicesDep) -> None:
    """Remove a row from the queue, with its label. Datasets that it was exported to stay as they are."""
    services.reviews.delete(review_id)


@router.post(
    "/export",
    status_code=status.HTTP_201_CREATED,
    responses=declare(201, {"Location": "Where the dataset is described."}),
)
def export_reviews(body: ReviewExport, services: ServicesDep, response: Response) -> Dataset:
    """Make a dataset of the labelled rows of a model: its inputs and its target, at most 100,000 rows, oldest first.

    Rows of earlier versions have null in columns that these did not know. Each row is noted as exported in the same
    transaction, so that the next export has only those that were labelled since. Predictions with `review=true` send
    a selection of rows, those near the border between classes: train on them together with other rows.
    """
    dataset = services.reviews.export(body)
    response.headers["Location"] = f"/v1/datasets/{dataset.id}"
    return dataset
