"""The audit log on the wire."""

from datetime import datetime

from pydantic import Field

from app.base.wire import Wire


class AuditEntry(Wire):
    """Request that changed something, or was refused to, with the key that sent it."""

    id: int = Field(description="Number of the entry; later ones have higher numbers.")
    at: datetime = Field(description="Time of the entry, in UTC.")
    actor: str = Field(description="Id of the key that sent the request.")
    action: str = Field(description="Operation, by its operationId.")
    target: str = Field(description="Address of what was changed or created.")
    outcome: int = Field(description="HTTP status of the response.")
    request_id: str = Field(description="Id of the request, as in the header X-Request-Id and in the log.")


class AuditPage(Wire):
    """Page of the audit log, newest first."""

    items: list[AuditEntry] = Field(description="Entries of the caller's project.")
    next_cursor: str | None = Field(None, description="Cursor of the next page; null on the last page.")
