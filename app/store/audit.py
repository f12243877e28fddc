"""The audit log: entries are added and read. No role of the service may change or delete one."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.schemas.audit import AuditEntry, AuditPage
from app.store.access_tables import AuditRow
from app.store.paging import number


class AuditRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def add(self, *, actor: str, action: str, target: str, outcome: int, request_id: str) -> None:
        self.session.add(AuditRow(actor=actor, action=action, target=target, outcome=outcome, request_id=request_id))

    def page(self, limit: int, cursor: str | None) -> AuditPage:
        """Newest first; the cursor is the last number of the page before."""
        before = [] if cursor is None else [AuditRow.id < number(cursor)]
        query = select(AuditRow).where(*before).order_by(AuditRow.id.desc()).limit(limit + 1)
        rows = self.session.scalars(query).all()
        items = [AuditEntry.model_validate(row, from_attributes=True) for row in rows[:limit]]
        return AuditPage(items=items, next_cursor=str(items[-1].id) if len(rows) > limit else None)
