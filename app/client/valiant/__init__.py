"""Client of Valiant, a service that trains, certifies and serves classical machine-learning models.

    m = valiant.train("churn.csv", target="churned", n_estimators=300)
    m.predict(frame, confidence=0.95)

`valiant.connect()` has all that the service does, for any address and key.

httpx is imported by `connect`, pyarrow by the first table.
"""

from functools import cache
from typing import Any

from .best_model import BestModel
from .configuration import Connection, configured
from .dataset import Dataset
from .drift_report import DriftReport
from .failures import (
    Conflict,
    ConnectionLost,
    InvalidRequest,
    JobCancelled,
    JobFailed,
    JobTimedOut,
    NotFound,
    Problem,
    ServiceFault,
    Unauthorised,
    Unavailable,
    ValiantError,
    WaitTimedOut,
)
from .fitted_estimator import write_estimator
from .model_monitor import Alarm, Monitor
from .model_version import Alias, Model, Version
from .online_session import OnlineSession
from .predicted_rows import Prediction
from .preference import Preference
from .release import RELEASE, check_installation
from .review import Review
from .service import AsyncClient, Client
from .submitted_job import Job
from .version_report import Metric, Report

__all__ = [
    "Alarm",
    "Alias",
    "AsyncClient",
    "BestModel",
    "Client",
    "Conflict",
    "ConnectionLost",
    "Dataset",
    "DriftReport",
    "InvalidRequest",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobTimedOut",
    "Metric",
    "Model",
    "Monitor",
    "NotFound",
    "OnlineSession",
    "Prediction",
    "Preference",
    "Problem",
    "Report",
    "Review",
    "ServiceFault",
    "Unauthorised",
    "Unavailable",
    "ValiantError",
    "Version",
    "WaitTimedOut",
    "connect",
    "connect_async",
    "train",
    "write_estimator",
]
__version__ = RELEASE
TIMEOUT = 60.0
check_installation()


def connect(url: str | None = None, key: str | None = None, *, timeout: float = TIMEOUT) -> Client:
    """A client for threads. Nothing is sent yet.

    url, key: None is that of VALIANT_URL and VALIANT_KEY, else of the configuration file. timeout: longest time in
    seconds without a byte of a response; no request is tried again after it.
    """
    from .drivers import Sync  # noqa: PLC0415  httpx is slow to import

    return Client(Sync(configured(url, key), timeout))


def connect_async(url: str | None = None, key: str | None = None, *, timeout: float = TIMEOUT) -> AsyncClient:
    """A client for asyncio, otherwise as `connect`."""
    from .drivers import Async  # noqa: PLC0415  as above

    return AsyncClient(Async(configured(url, key), timeout))


def train(dataset: Any, /, target: str | None = None, **options: Any) -> Version[Any]:
    """Train a model by `Client.train` on the service of VALIANT_URL, else of the configuration file.

    dataset: a path, a table of pandas, polars or pyarrow, or a dataset. options: as of `Client.train`.
    """
    made: Version[Any] = _shared(configured()).train(dataset, target, **options)
    return made


@cache
def _shared(connection: Connection) -> Client:
    """The client of `train`, which stays open for the versions that it returns."""
    return connect(*connection)
