"""`valiant serve PATH`: models of a folder behind HTTP, in one process and nothing else."""

import os
from pathlib import Path

from app import logs
from app.api import folder_routes, routes
from app.folder_wiring import build_folder
from app.main import create_app
from app.serve import serve
from app.services.folder_models import FolderModels
from app.settings import Settings

ROOMS = ("health", "open_inference", "predictions", "prometheus", "queries")
"""Files of routes that need no database."""


def serve_folder(settings: Settings, root: Path, *, watch_seconds: float, repository_api: bool) -> None:
    """Until SIGTERM or SIGINT. Raises StartFailed if the address is taken."""
    logs.configure(settings.log_level)
    models = FolderModels(root, settings, os.environ.get("MODEL_NAME"))
    services = build_folder(settings, models)
    models.refresh()
    if watch_seconds:
        models.watch(watch_seconds)
    further = [folder_routes.kserve, *([folder_routes.repository] if repository_api else [])]
    try:
        serve(create_app(settings, services, [*routes.routers(ROOMS), *further]), settings)
    finally:
        services.close()
