"""Reviews: rows that a classifier rejected, and the labels that a person gave them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.base.errors import ReviewNotFound
from app.schemas.reviews import Review, ReviewPage, ReviewState
from app.store.base.database_clock import time_of
from app.store.base.new_ids import uuid7
from app.store.base.paging import id_in, page_conditions
from app.store.reviews.review_tables import ReviewRow


class RejectedRow(NamedTuple):
    """A row on its way into the queue."""

    digest: bytes
    """Hash of its values: the same row is filed once for each version."""
    data: list[Any]
    """In the order of the columns."""
    probabilities: list[float]


class Rejecting(NamedTuple):
    """The version that rejected rows."""

    model: str
    version: int
    target: str
    classes: list[Any]
    columns: list[str]


_STATES = {
    ReviewState.WAITING: (ReviewRow.labelled_at.is_(None),),
    ReviewState.LABELLED: (ReviewRow.labelled_at.is_not(None), ReviewRow.dataset_id.is_(None)),
    ReviewState.EXPORTED: (ReviewRow.dataset_id.is_not(None),),
}


class ReviewRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, by: Rejecting, rows: Sequence[RejectedRow]) -> int:
        """Number of rows that are new: those that were filed before keep their labels."""
        values = [{"id": uuid7(), **by._asdict(), **row._asdict()} for row in rows]
        filed = insert(ReviewRow).on_conflict_do_nothing(index_elements=["project_id", "model", "version", "digest"])
        return len(self.session.scalars(filed.returning(ReviewRow.id), values).all())

    def waiting(self) -> int:
        return self.session.scalars(select(func.count()).where(*_STATES[ReviewState.WAITING])).one()

    def get(self, review_id: UUID) -> Review:
        return _review(self._row(review_id))

    def page(self, limit: int, cursor: str | None, *, model: str | None, state: ReviewState | None) -> ReviewPage:
        """Newest first; the cursor is the last id of the page before."""
        conditions, order = page_conditions([] if model is None else [(ReviewRow.model, model)], ReviewRow.id)
        also: list[ColumnElement[bool]] = [*_STATES[state]] if state is not None else []
        if cursor is not None:
            also.append(ReviewRow.id < id_in(cursor))
        rows = self.session.scalars(select(ReviewRow).where(*conditions, *also).order_by(*order).limit(limit + 1)).all()
        items = [_review(row) for row in rows[:limit]]
        return ReviewPage(items=items, next_cursor=str(items[-1].id) if len(rows) > limit else None)

    def label(self, review_id: UUID, label: Any) -> Review:
        """Give the row this label; None takes it away. It is in no dataset then."""
        row = self._row(review_id, lock=True)
        now = None if label is None else time_of(self.session)
        row.label, row.labelled_at, row.dataset_id = label, now, None
        self.session.flush()
        return _review(row)

    def delete(self, review_id: UUID) -> None:
        self._row(review_id, lock=True)
        self.session.execute(delete(ReviewRow).where(ReviewRow.id == review_id))

    def labelled(self, model: str, limit: int, *, again: bool) -> list[Review]:
        """The oldest rows of a model with a label; with `again` those too that are in a dataset."""
        conditions = [ReviewRow.model == model, ReviewRow.labelled_at.is_not(None)]
        if not again:
            conditions.append(ReviewRow.dataset_id.is_(None))
        rows = self.session.scalars(select(ReviewRow).where(*conditions).order_by(ReviewRow.id).limit(limit))
        return [_review(row) for row in rows]

    def export(self, ids: Sequence[UUID], dataset_id: UUID, *, newest: datetime, again: bool) -> bool:
        """Note that these are in the dataset. False if one has changed since `newest`, the time of the last label."""
        as_read = [ReviewRow.id.in_(ids), ReviewRow.labelled_at <= newest]
        if not again:
            as_read.append(ReviewRow.dataset_id.is_(None))
        noted = update(ReviewRow).where(*as_read).values(dataset_id=dataset_id).returning(ReviewRow.id)
        return len(self.session.scalars(noted, execution_options={"synchronize_session": False}).all()) == len(ids)

    def _row(self, review_id: UUID, *, lock: bool = False) -> ReviewRow:
        query = select(ReviewRow).where(ReviewRow.id == review_id)
        row = self.session.scalars(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            raise ReviewNotFound
        return row


def _review(row: ReviewRow) -> Review:
    state = ReviewState.WAITING if row.labelled_at is None else ReviewState.LABELLED
    return Review(
        id=row.id,
        model=row.model,
        version=row.version,
        state=state if row.dataset_id is None else ReviewState.EXPORTED,
        created_at=row.at,
        row=dict(zip(row.columns, row.data, strict=True)),
        target=row.target,
        classes=row.classes,
        probabilities=row.probabilities,
        label=row.label,
        labelled_at=row.labelled_at,
        dataset=row.dataset_id,
    )
