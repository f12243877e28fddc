"""Services for models of a folder: predictions alone, without a database, a cache or a broker."""

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector

from app.base.errors import NotOffered
from app.base.settings import Settings
from app.schemas.health import Check
from app.services.kernels.kernel_loading import Warming
from app.services.models.folder_models import UNLOADED, FolderModels
from app.services.observability.prediction_metrics import Served
from app.services.predictions.prediction_admission import Admission
from app.services.predictions.prediction_counts import Tally
from app.services.predictions.predictions import Predictions


class _NoReviews:
    def filing(self, _write: Any) -> Any:
        raise NotOffered("Models of a folder have no review queue.")


class _NoCensus:
    """There are no jobs and no workers to count."""

    workers = None

    async def refresh(self, _seconds: float) -> None:
        return


class _Loaded:
    """Ready once a model is served: that of MODEL_NAME if there is one, or with `strict` all."""

    def __init__(self, models: FolderModels, *, strict: bool) -> None:
        self._models, self._strict = models, strict

    async def check(self, _lag_seconds: float = 0.0) -> list[Check]:
        states = self._models.states()
        name = self._models.model_name
        needed = [state for state in states if name in {None, state.model} and state.reason != UNLOADED]
        ready = [state.ready for state in needed]
        unserved = [f"{state.model} {state.version}: {state.reason}" for state in states if state.reason]
        served = sum(state.ready for state in states)
        ok = all(ready) and bool(states) if self._strict else any(ready)
        return [Check(name="models", ok=ok, required=True, detail="; ".join([f"{served} served", *unserved]))]


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
    warming: Warming

    def close(self) -> None:
        self.warming.stop()
        self.models.stop()
        self.admission.close()


def build_folder(settings: Settings, models: FolderModels, *, strict: bool = False) -> FolderServices:
    """strict: ready only while all models are served."""
    tally, registry = Tally(), CollectorRegistry()
    predictions = Predictions(models, models.load, settings, tally)
    models.keep = predictions.memory.put
    ProcessCollector(registry=registry)
    registry.register(Served(predictions))
    return FolderServices(
        settings,
        models,
        predictions,
        Admission(settings),
        _Loaded(models, strict=strict),
        registry,
        _NoCensus(),
        _NoReviews(),
        Warming(tuple),
    )
