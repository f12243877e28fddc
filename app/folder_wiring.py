"""Services for models of a folder: predictions alone, without a database, a cache or a broker."""

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector

from app.errors import NotOffered
from app.schemas.health import Check
from app.services.folder_models import FolderModels
from app.services.prediction_admission import Admission
from app.services.prediction_counts import Tally
from app.services.prediction_metrics import Served
from app.services.predictions import Predictions
from app.settings import Settings


class _NoReviews:
    def filing(self, _write: Any) -> Any:
        raise NotOffered("Models of a folder have no review queue.")


class _NoCensus:
    """There are no jobs and no workers to count."""

    workers = None

    async def refresh(self, _seconds: float) -> None:
        return


class _Loaded:
    """Ready once a model is served."""

    def __init__(self, models: FolderModels) -> None:
        self._models = models

    async def check(self) -> list[Check]:
        states = self._models.states()
        faults = [f"{model} {version}: {fault}" for model, version, fault in states if fault]
        served = len(states) - len(faults)
        detail = "; ".join([f"{served} served", *faults])
        return [Check(name="models", ok=served > 0, required=True, detail=detail)]


@dataclass(frozen=True)
class FolderServices:
    """The services that routes of predictions use."""

    settings: Settings
    models: FolderModels
    predictions: Predictions
    admission: Admission
    dependencies: _Loaded
    registry: CollectorRegistry
    census: _NoCensus
    reviews: _NoReviews

    def close(self) -> None:
        self.models.stop()
        self.admission.close()


def build_folder(settings: Settings, models: FolderModels) -> FolderServices:
    tally, registry = Tally(), CollectorRegistry()
    predictions = Predictions(models, models.load, settings, tally)
    models.keep = predictions.memory.put
    ProcessCollector(registry=registry)
    registry.register(Served(predictions))
    return FolderServices(
        settings, models, predictions, Admission(settings), _Loaded(models), registry, _NoCensus(), _NoReviews()
    )
