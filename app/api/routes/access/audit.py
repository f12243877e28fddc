"""The audit log, which administrators read."""

from app.api.edge.router import ADMIN, Router
from app.api.params.common import PAGE, Cursor, Limit, ServicesDep
from app.schemas.audit import AuditPage

router = Router(needs=ADMIN, prefix="/v1/audit", tags=["keys"])


@router.get("")
def list_audit_entries(services: ServicesDep, limit: Limit = PAGE, cursor: Cursor = None) -> AuditPage:
    """List requests that changed something, or were refused to, newest first; a service without keys has none.

    An entry is stored before its response is sent, and nothing changes or deletes it.
    """
    return services.audit.page(limit, cursor)
