"""The audit log: entries are added and read. No role of the service may change or delete one."""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.schemas.audit import AuditEntry, AuditPage
from app.store.access.access_tables import AuditRow
from app.store.base.paging import number

LONGEST_REQUEST = timedelta(hours=1)
CREATED = 201


@dataclass
class PendingEntry:
    """The entry of a request that is in progress."""

    actor: str
    action: str
    target: str
    outcome: int
    request_id: str
    created: str | None = None
    """Address of what the request has created, which takes the place of the target."""
    stored: bool = False
    uncertain: bool = False
    """True after a commit with the entry whose result was lost with the connection."""


PENDING: ContextVar[PendingEntry | None] = ContextVar("pending_audit_entry", default=None)


class AuditRepository:
    def __init__(self, session: Session) -> None:
        self.session = session

    def note_created(self, address: str) -> None:
        """State where what this transaction creates is described, in the entry of the request if it gets one."""
        entry = PENDING.get()
        if entry is not None:
            entry.created, entry.outcome = address, max(entry.outcome, CREATED)

    def add(self, entry: PendingEntry) -> None:
        """Store it, unless a lost commit has done so."""
        if entry.uncertain and self._is_stored(entry):
            return
        row = AuditRow(
            actor=entry.actor,
            action=entry.action,
            target=entry.created or entry.target,
            outcome=entry.outcome,
            request_id=entry.request_id,
        )
        self.session.add(row)
        self.session.flush()

    def _is_stored(self, entry: PendingEntry) -> bool:
        same = AuditRow.request_id == entry.request_id, AuditRow.action == entry.action, AuditRow.actor == entry.actor
        recent = AuditRow.at > func.clock_timestamp() - LONGEST_REQUEST
        return self.session.scalar(select(AuditRow.id).where(*same, recent).limit(1)) is not None

    def page(self, limit: int, cursor: str | None) -> AuditPage:
        """Newest first; the cursor is the last number of the page before."""
        before = [] if cursor is None else [AuditRow.id < number(cursor)]
        query = select(AuditRow).where(*before).order_by(AuditRow.id.desc()).limit(limit + 1)
        rows = self.session.scalars(query).all()
        items = [AuditEntry.model_validate(row, from_attributes=True) for row in rows[:limit]]
        return AuditPage(items=items, next_cursor=str(items[-1].id) if len(rows) > limit else None)
