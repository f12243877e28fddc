"""`valiant health`: check that the API or the worker on this machine responds; containers run it again and again."""

import httpx

from app.errors import StartFailed
from app.ports import address
from app.settings import Settings

PATIENCE_SECONDS = 4.0
"""Less than a container's HEALTHCHECK waits. Of the two only one listens; the other refuses at once."""


def check(settings: Settings) -> None:
    """Raise StartFailed unless one of them responds."""
    tried = [f"{address(settings)}/livez"]
    if settings.worker_metrics_port:
        tried.append(f"{address(settings.model_copy(update={'port': settings.worker_metrics_port}))}/metrics")
    if not any(responds(url) for url in tried):
        raise StartFailed(f"Nothing responds at {' or '.join(tried)}.")


def responds(url: str) -> bool:
    """A certificate is not verified: it names the service, and this is its machine."""
    try:
        return httpx.get(url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False).is_success  # noqa: S501
    except httpx.TransportError:
        return False
