"""`valiant health`: check that the API or the worker on this machine responds; containers run it again and again."""

import httpx

from app.base.errors import StartFailed
from app.base.settings import Settings
from app.processes.ports import address

PATIENCE_SECONDS = 4.0
"""Less than a container's HEALTHCHECK waits. Of the two only one listens; the other refuses at once."""


def check(settings: Settings) -> None:
    """Raise StartFailed unless one of them responds."""
    tried = [f"{address(settings)}/livez"]
    if settings.worker_metrics_port:
        tried.append(f"{address(settings.model_copy(update={'port': settings.worker_metrics_port}))}/metrics")
    if not any(responds(url) for url in tried):
        raise StartFailed(f"Nothing responds at {' or '.join(tried)}.")


def check_ready(settings: Settings) -> None:
    """Raise StartFailed, with the checks that fail, unless the API is ready for requests."""
    url = f"{address(settings)}/readyz"
    try:
        response = _get(url)
    except httpx.TransportError:
        raise StartFailed(f"Nothing responds at {url}.") from None
    if not response.is_success:
        raise StartFailed(f"The API is not ready: {' '.join(_failing(response)) or f'status {response.status_code}.'}")


def _failing(response: httpx.Response) -> list[str]:
    try:
        return [fault["detail"] for fault in response.json()["errors"]]
    except (ValueError, LookupError, TypeError):  # of what is not the API
        return []


def responds(url: str) -> bool:
    """True if the request succeeds."""
    try:
        return _get(url).is_success
    except httpx.TransportError:
        return False


def _get(url: str) -> httpx.Response:
    """A certificate is not verified: it names the service, and this is its machine."""
    return httpx.get(url, timeout=PATIENCE_SECONDS, trust_env=False, verify=False)  # noqa: S501
