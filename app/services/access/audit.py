"""The audit log: the entry of a change is part of its transaction, that of a refusal is stored before the response."""

from app.schemas.audit import AuditPage
from app.store.access.audit import PENDING, PendingEntry
from app.store.unit_of_work import WorkFactory


class Audit:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def begin(self, *, actor: str, action: str, target: str, outcome: int, request_id: str) -> PendingEntry:
        """Return the entry of this request, which the first transaction that changes rows takes up.

        outcome: the status of the response if all goes well. The context is that of the request.
        """
        entry = PendingEntry(actor, action, target, outcome, request_id)
        PENDING.set(entry)
        return entry

    def complete(self, entry: PendingEntry, *, outcome: int, created: str | None = None) -> None:
        """Store the entry of a request that has changed nothing: that of a refusal, of a repetition, of a dry run."""
        if not entry.stored:
            entry.outcome, entry.created = outcome, created
            PENDING.set(None)  # no further transaction takes it up
            self._work.retry(lambda w: w.audit.add(entry), seconds=2)
            entry.stored = True

    def page(self, limit: int, cursor: str | None) -> AuditPage:
        with self._work() as w:
            return w.audit.page(limit, cursor)
