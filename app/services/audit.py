"""The audit log: an entry is stored before the response to its request is sent."""

from app.schemas.audit import AuditPage
from app.store.unit_of_work import Work, WorkFactory


class Audit:
    def __init__(self, work: WorkFactory) -> None:
        self._work = work

    def add(self, *, actor: str, action: str, target: str, outcome: int, request_id: str) -> None:
        def add(w: Work) -> None:
            w.audit.add(actor=actor, action=action, target=target, outcome=outcome, request_id=request_id)

        self._work.retry(add, seconds=2)

    def page(self, limit: int, cursor: str | None) -> AuditPage:
        with self._work() as w:
            return w.audit.page(limit, cursor)
