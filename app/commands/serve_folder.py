"""`valiant serve PATH`: models of a folder behind HTTP, in one process and nothing else."""

from pathlib import Path
from typing import NamedTuple

import structlog

from app.api import folder_routes, routes
from app.base import logs
from app.base.errors import StartFailed
from app.base.settings import Settings
from app.commands.serve import serve
from app.composition.folder_wiring import build_folder
from app.main import create_app
from app.processes.ports import is_loopback
from app.services.kernels.kernel_loading import COMPILE_SECONDS
from app.services.models.folder_models import FolderModels
from app.services.models.model_folder import NAME

ROOMS = ("health", "open_inference", "predictions", "prometheus", "queries")
"""Files of routes that need no database."""
USED = frozenset(
    {
        "host", "port", "hosts", "auth", "allow_anonymous", "cors_origins", "tls_cert", "tls_key", "log_level",
        "log_requests", "fast_path", "drain_seconds", "request_grace_seconds", "upload_timeout_seconds",
        "max_file_bytes", "max_body_bytes", "max_json_depth", "max_predict_rows", "max_predictions", "predict_threads",
        "max_waiting_predictions", "batch_rows", "batch_wait_seconds", "model_memory_bytes", "parse_memory_bytes",
        "database_pool", "processor", "kernels", "warm",
    }
)  # fmt: skip
"""Settings that count here; `database_pool` is the number of threads for other requests than predictions."""
log = structlog.get_logger(__name__)


class FolderOptions(NamedTuple):
    """Options of the command."""

    watch_seconds: float
    """Time between looks for changes; 0: none."""
    repository_api: bool
    strict_readiness: bool
    model_name: str | None
    """Name of the model of a folder that holds one."""


def check_settings(settings: Settings) -> None:
    """Raises StartFailed where a setting promises what needs a database."""
    if settings.auth == "keys":
        raise StartFailed(
            "VALIANT_AUTH=keys: keys are in a database, and `valiant serve` has none. Set VALIANT_AUTH=none; a process "
            "that other machines reach needs a proxy or a mesh that checks who calls, and --anonymous. `valiant api` "
            "checks keys."
        )
    if settings.oidc_issuer is not None:
        raise StartFailed(
            "VALIANT_OIDC_ISSUER: projects and roles of tokens are in a database, and `valiant serve` has none. Unset "
            "it, and let a proxy or a mesh check who calls; or use `valiant api`."
        )
    if settings.allow_anonymous != "network" and not is_loopback(settings.host):
        raise StartFailed(
            f"Listening on {settings.host or 'all addresses'} needs keys, which `valiant serve` cannot check. Where a "
            "proxy or a mesh checks who calls, give --anonymous; else listen on 127.0.0.1."
        )


def serve_folder(settings: Settings, root: Path, options: FolderOptions) -> None:
    """Until SIGTERM or SIGINT. Raises StartFailed if the address is taken, or the folder cannot be read."""
    check_settings(settings)
    if options.model_name is not None and not NAME.fullmatch(options.model_name):
        raise StartFailed(
            f"MODEL_NAME has to be 1 to 100 of the characters a-z, 0-9, _ and -, not {options.model_name!r}."
        )
    root.stat()  # a folder that is not there ends the start before anything has begun
    models = FolderModels(root, settings, options.model_name)
    logs.configure(settings.log_level, request_share=settings.log_requests)
    if unused := sorted(settings.model_fields_set - USED):
        log.warning("settings_without_effect", settings=[f"VALIANT_{name.upper()}" for name in unused])
    services = build_folder(settings, models, strict=options.strict_readiness)
    if settings.warm:
        services.warming.start()
        services.warming.wait(COMPILE_SECONDS)  # or the models would have it compiled one after the other
    try:
        models.refresh()
    except OSError as error:
        raise StartFailed(f"The folder {root} cannot be read: {error.strerror}.") from error
    if options.watch_seconds > 0:
        models.watch(options.watch_seconds)
    further = [folder_routes.kserve, *([folder_routes.repository] if options.repository_api else [])]
    try:
        serve(create_app(settings, services, [*routes.routers(ROOMS), *further]), settings)
    finally:
        services.close()
