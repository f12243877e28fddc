"""Builds what the API and the workers share. Nothing is created at import time, nothing before a fork."""

from dataclasses import dataclass
from uuid import UUID

from celery import Celery
from prometheus_client import CollectorRegistry, ProcessCollector

from app.base.settings import Settings
from app.messaging.queue import make_celery, publish
from app.services.access.access import Access
from app.services.access.audit import Audit
from app.services.access.keys import Keys
from app.services.access.projects import Projects
from app.services.access.request_rates import RequestRates
from app.services.datasets.datasets import Datasets
from app.services.datasets.files import Files
from app.services.datasets.uploads import Uploads
from app.services.jobs.attempts import Attempts
from app.services.jobs.jobs import Jobs
from app.services.jobs.recovery import Recovery
from app.services.jobs.reproduction import Reproduction
from app.services.jobs.submission import Submission
from app.services.kernels.kernel_loading import Warming
from app.services.models.aliases import Aliases
from app.services.models.cluster_names import ClusterNaming
from app.services.models.exports import Exports
from app.services.models.models import Models
from app.services.models.plots import Plots
from app.services.monitoring.monitoring_metrics import Monitored
from app.services.monitoring.monitors import Monitors
from app.services.monitoring.prediction_log import PredictionLog
from app.services.observability.database_counts import Census
from app.services.observability.machine_metrics import Machine
from app.services.observability.prediction_metrics import Served
from app.services.observability.prometheus_metrics import Counted, Process
from app.services.observability.readiness import Dependencies
from app.services.predictions.model_loading import StoredModels
from app.services.predictions.pointer_cache import Pointers
from app.services.predictions.prediction_admission import Admission
from app.services.predictions.prediction_counts import Tally
from app.services.predictions.predictions import Predictions
from app.services.predictions.served_models import ServedModels
from app.services.preferences import Preferences
from app.services.reviews import Reviews
from app.services.sessions import Sessions
from app.store.engine import make_engine
from app.store.models.model_cache import Cache
from app.store.unit_of_work import WorkFactory


@dataclass(frozen=True)
class Services:
    """Every decision the service can take, with what they stand on."""

    settings: Settings
    work: WorkFactory
    access: Access
    audit: Audit
    keys: Keys
    projects: Projects
    cache: Cache
    celery: Celery
    datasets: Datasets
    files: Files
    uploads: Uploads
    submission: Submission
    jobs: Jobs
    attempts: Attempts
    recovery: Recovery
    reproduction: Reproduction
    reviews: Reviews
    warming: Warming
    models: Models
    monitors: Monitors
    prediction_log: PredictionLog
    aliases: Aliases
    cluster_names: ClusterNaming
    predictions: Predictions
    plots: Plots
    exports: Exports
    preferences: Preferences
    sessions: Sessions
    admission: Admission
    census: Census
    dependencies: Dependencies
    registry: CollectorRegistry
    """Metrics of this process for Prometheus."""

    def close(self) -> None:
        self.warming.stop()
        self.prediction_log.stop()
        self.access.close()
        self.datasets.close()
        self.plots.close()
        self.admission.close()
        self.cache.close()
        self.celery.close()
        self.work.engine.dispose()


def build(settings: Settings, *, role: str) -> Services:
    """`role` is "api" or "worker": it names the process to the database."""
    work = WorkFactory(make_engine(settings, role=role))
    cache = Cache(settings)
    celery = make_celery(settings)

    def announce(job_id: UUID) -> None:
        publish(celery, job_id)

    registry, census = CollectorRegistry(), Census(work, silent_seconds=settings.lease_seconds)
    attempts, tally = Attempts(work, announce, settings), Tally()
    pointers = Pointers(work, settings.pointer_seconds, settings.stale_seconds)
    prediction_log = PredictionLog(work)
    load = StoredModels(work, cache, tally).load
    predictions = Predictions(pointers, load, settings, tally, offer=prediction_log.offer)
    ProcessCollector(registry=registry)
    registry.register(Process(work.engine, attempts.counts))
    registry.register(Machine(settings))
    if role == "api":
        registry.register(Served(predictions))
        registry.register(Monitored(prediction_log))
        registry.register(Counted(census))
    datasets = Datasets(work, settings)
    return Services(
        settings=settings,
        work=work,
        access=Access(work, RequestRates(cache), settings),
        audit=Audit(work),
        keys=Keys(work),
        projects=Projects(work),
        cache=cache,
        celery=celery,
        datasets=datasets,
        files=Files(work, settings),
        uploads=Uploads(work, datasets, settings),
        submission=Submission(work, announce, settings),
        jobs=Jobs(work, pointers),
        attempts=attempts,
        recovery=Recovery(work, announce, settings, attempts.counts),
        reproduction=Reproduction(work),
        reviews=Reviews(work, datasets, settings),
        warming=Warming(ServedModels(work, predictions).loads),
        models=Models(work, pointers),
        monitors=Monitors(work),
        prediction_log=prediction_log,
        aliases=Aliases(work, pointers),
        cluster_names=ClusterNaming(work, pointers),
        predictions=predictions,
        plots=Plots(work, settings),
        exports=Exports(work),
        preferences=Preferences(work),
        sessions=Sessions(work),
        admission=Admission(settings),
        census=census,
        dependencies=Dependencies(work, cache, celery, pointers),
        registry=registry,
    )
