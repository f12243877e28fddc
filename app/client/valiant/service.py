"""The service: datasets, jobs, models, sessions, preferences, reviews and keys, each by one method."""

import re
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from . import frames
from .best_model import BestModel
from .dataset import Dataset
from .drift_report import DriftReport
from .failures import BY_STATE, JobFailed, Problem
from .model_monitor import MonitorMethods
from .model_version import Model, Version
from .online_session import OnlineSession
from .operation import M, operation
from .preference import Preference
from .record import items
from .review import Review
from .steps import Steps
from .submitted_job import Job, Progress
from .transfers import Transfers

if TYPE_CHECKING:
    from .drivers import Async, Sync

ALGORITHM = "gradient_boosting"
"""Algorithm of a training that names none: it takes categories, missing values and both kinds of target."""
TRAIN_FIELDS = frozenset({
    *("class_weight", "difficulty", "difficulty_stages", "exposure", "features", "initialise_from", "item", "kinds"),
    *("name", "offset", "preprocessing", "relations", "seed", "sigma", "task", "time_limit_seconds", "validation"),
    "weights",
})  # fmt: skip
"""Fields of a training; every other keyword is a parameter of the algorithm."""


class Service(MonitorMethods[M], Transfers[M]):
    """One service. Every method may raise Problem and ConnectionLost."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.driver.url}>"

    def _train(
        self, /, dataset: Any, target: str | None = None, *, model: str | None = None,
        algorithm: str | Mapping[str, Any] = ALGORITHM, wait: bool = True, timeout: float | None = None,
        progress: Progress = None, **fields: Any,
    ) -> Steps[Any]:  # fmt: skip
        """Train a model, and wait for the version; without `wait` the job is returned at once.

        dataset: a dataset, its id or name, or a path or a table of pandas, polars or pyarrow, which is uploaded first,
        and deleted again if the training is refused. model: None makes a name of that of the dataset, else of the
        target. progress: draw a line, None: on a terminal only; or a function of the share that is done and the present
        step. fields: those of the request, such as `features`, `validation` and `seed`; all others are parameters of
        the algorithm. Where a parameter has the name of a field, as `weights` of `knn`, give the algorithm as
        `{"name": "knn", "weights": "distance"}`.
        """
        used, is_new = yield from self._uploaded(dataset, model or target)
        try:
            job = yield from self._submit("train", training(used, target, model, algorithm, fields))
        except Problem:
            if is_new:
                yield from Dataset.delete.steps(used)
            raise
        return (yield from self._end(job, wait, timeout, progress))

    def _uploaded(self, dataset: Any, name: str | None) -> Steps[tuple[Any, bool]]:
        """The dataset, and whether it is new: a path or a table is uploaded."""
        is_file = isinstance(dataset, Path) or (isinstance(dataset, str) and Path(dataset).is_file())
        if not (is_file or frames.is_frame(dataset)):
            return dataset, False
        return (yield from Service.upload.steps(self, dataset, None if is_file else name)), True

    if TYPE_CHECKING:

        @overload
        def train(
            self: "Service[Sync]", /, dataset: Any, target: str | None = None, *, model: str | None = None,
            algorithm: str | Mapping[str, Any] = ALGORITHM, wait: Literal[True] = True, timeout: float | None = None,
            progress: Progress = None, **fields: Any,
        ) -> Version[Sync]: ...  # fmt: skip
        @overload
        def train(
            self: "Service[Sync]", /, dataset: Any, target: str | None = None, *, wait: Literal[False], **fields: Any
        ) -> Job[Sync]: ...
        @overload
        def train(
            self: "Service[Async]", /, dataset: Any, target: str | None = None, *, wait: Literal[True] = True,
            **fields: Any,
        ) -> Awaitable[Version[Async]]: ...  # fmt: skip
        @overload
        def train(
            self: "Service[Async]", /, dataset: Any, target: str | None = None, *, wait: Literal[False], **fields: Any
        ) -> Awaitable[Job[Async]]: ...
        def train(self, /, dataset: Any, target: str | None = None, **fields: Any) -> Any: ...

    else:
        train = operation(_train)

    @operation
    def run(
        self, kind: str, /, *, wait: bool = True, timeout: float | None = None, progress: Progress = None,
        **body: Any,
    ) -> Steps[Any]:  # fmt: skip
        """Run a job of any kind, such as `search`, `evaluate` or `predict`, and return what it made.

        That is a model version, a dataset, or the job's result; without `wait` the job. body: the fields of its
        request; datasets and versions stand for themselves.
        """
        return (yield from self._end((yield from self._submit(kind, body)), wait, timeout, progress))

    @operation
    def automl(
        self, /, dataset: Any, target: str, *, seconds: float = 300.0, model: str | None = None,
        progress: Progress = None, **fields: Any,
    ) -> Steps[BestModel[M]]:  # fmt: skip
        """Find the best model within a budget of seconds, and return the leaderboard with the version it made.

        dataset, model and progress are as of `train`. fields: those of the request, such as `preset`, `metric`,
        `include` and `units`. Ctrl-C ends the search, whose best model so far is kept; so is that of a job that reaches
        its time limit. Raises JobFailed where nothing is left of it.
        """
        used, is_new = yield from self._uploaded(dataset, model or target)
        body = {"dataset": used, "target": target, "seconds": seconds, "model": model or model_name(used), **fields}
        try:
            job = yield from self._submit("automl", body)
        except Problem:
            if is_new:
                yield from Dataset.delete.steps(used)
            raise
        try:
            yield from Job.follow.steps(job, progress)
        except KeyboardInterrupt:
            yield from Job.cancel.steps(job)
            yield from Job.follow.steps(job, progress)
        if job.result is None or (job.state == "failed" and job.version is None):
            raise BY_STATE.get(job.state, JobFailed)(job)
        made = {"model": job.model, "version": job.version, "state": job.state}
        return BestModel(self.driver, {**job.result, **made})

    @operation
    def drift(
        self, /, current: Any, reference: Any = None, *, model: Version[Any] | Mapping[str, Any] | None = None,
        timeout: float | None = None, progress: Progress = None, **fields: Any,
    ) -> Steps[DriftReport[M]]:  # fmt: skip
        """Compare the rows of a dataset with those of another, or with those that a version was trained on.

        fields: further fields of the request, such as `columns`, `tolerance_psi` and `significance`.
        """
        body = {"current": current, "reference": reference, "model": model, **fields}
        document = yield from self._end((yield from self._submit("drift", body)), True, timeout, progress)
        return DriftReport(self.driver, document)

    @operation
    def validate(self, kind: str, /, **body: Any) -> Steps[dict[str, Any]]:
        """Dry run of a job: its memory and time, or every problem at once. Raises InvalidRequest."""
        response: dict[str, Any] = yield from self._json("POST", "jobs", f"{kind}:validate", body=body)
        return response

    @operation
    def dataset(self, reference: str) -> Steps[Dataset[M]]:
        """A dataset by its id, or the newest of a name."""
        return Dataset(self.driver, (yield from self._json("GET", "datasets", reference)))

    @operation
    def datasets(self, limit: int | None = None, name: str | None = None) -> Steps[list[Dataset[M]]]:
        """Datasets, newest first."""
        return [
            Dataset(self.driver, each) for each in (yield from items(self.driver, "datasets", limit=limit, name=name))
        ]

    @operation
    def job(self, reference: str) -> Steps[Job[M]]:
        """A job by its id, or the newest of a name."""
        return Job(self.driver, (yield from self._json("GET", "jobs", reference)))

    @operation
    def jobs(
        self, limit: int | None = None, *, state: str | None = None, name: str | None = None
    ) -> Steps[list[Job[M]]]:
        """Jobs, newest first; without their results."""
        records = yield from items(self.driver, "jobs", limit=limit, state=state, name=name)
        return [Job(self.driver, each) for each in records]

    @operation
    def model(self, name: str) -> Steps[Model[M]]:
        """A model by its name."""
        return Model(self.driver, (yield from self._json("GET", "models", name)))

    @operation
    def models(self, limit: int | None = None) -> Steps[list[Model[M]]]:
        """Models, in alphabetical order."""
        return [Model(self.driver, each) for each in (yield from items(self.driver, "models", limit=limit))]

    @operation
    def versions(self, limit: int | None = None, *, model: str | None = None) -> Steps[list[dict[str, Any]]]:
        """Versions of all models, or of one, newest first: each with its parameters, its aliases and its metrics."""
        return (yield from items(self.driver, "versions", limit=limit, model=model))

    @operation
    def reproduce(self, version: Version[Any], *, wait: bool = True, timeout: float | None = None) -> Steps[Any]:
        """Make a version again from its receipt; succeeds only if the bytes are the same. Raises JobFailed."""
        made = yield from self._json("POST", "models", version.model, "versions", version.version, "reproduce")
        return (yield from self._end(Job(self.driver, made), wait, timeout))

    @operation
    def algorithms(self) -> Steps[list[dict[str, Any]]]:
        """The catalogue of algorithms, with the JSON Schema of their parameters."""
        return (yield from items(self.driver, "algorithms"))

    @operation
    def algorithm(self, name: str) -> Steps[dict[str, Any]]:
        """One algorithm of the catalogue, with its method in full."""
        record: dict[str, Any] = yield from self._json("GET", "algorithms", name)
        return record

    @operation
    def calculators(self) -> Steps[list[dict[str, Any]]]:
        """Calculators of learning theory."""
        return (yield from items(self.driver, "theory"))

    @operation
    def calculate(self, name: str, /, **body: Any) -> Steps[dict[str, Any]]:
        """A calculator of learning theory, such as `pac`."""
        result: dict[str, Any] = yield from self._json("POST", "theory", name, body=body)
        return result

    @operation
    def measure(self, name: str, /, **body: Any) -> Steps[dict[str, Any]]:
        """A query without a model: `metrics` of predictions, or `distances` of rows."""
        result: dict[str, Any] = yield from self._json("POST", name, body=body)
        return result

    @operation
    def open_session(self, /, **spec: Any) -> Steps[OnlineSession[M]]:
        """Open an online session: `learner`, `inputs`, `target` and further fields."""
        return OnlineSession(self.driver, (yield from self._json("POST", "sessions", body=spec)))

    @operation
    def session(self, session_id: str) -> Steps[OnlineSession[M]]:
        """An online session by its id."""
        return OnlineSession(self.driver, (yield from self._json("GET", "sessions", session_id)))

    @operation
    def sessions(self, limit: int | None = None) -> Steps[list[OnlineSession[M]]]:
        """Online sessions, newest first."""
        return [OnlineSession(self.driver, each) for each in (yield from items(self.driver, "sessions", limit=limit))]

    @operation
    def open_preference(self, /, **spec: Any) -> Steps[Preference[M]]:
        """Begin to learn the weights of goals: `goals` and `candidates`, or the `job` of a front."""
        return Preference(self.driver, (yield from self._json("POST", "preferences", body=spec)))

    @operation
    def preference(self, preference_id: str) -> Steps[Preference[M]]:
        """Preferences by their id."""
        return Preference(self.driver, (yield from self._json("GET", "preferences", preference_id)))

    @operation
    def preferences(self, limit: int | None = None) -> Steps[list[Preference[M]]]:
        """Preferences, newest first; those of a list have no weights until they are read again."""
        return [Preference(self.driver, each) for each in (yield from items(self.driver, "preferences", limit=limit))]

    @operation
    def reviews(
        self, model: str | None = None, *, state: str | None = None, limit: int | None = None
    ) -> Steps[list[Review[M]]]:
        """Rows that wait for a label, or have one, newest first."""
        records = yield from items(self.driver, "reviews", limit=limit, model=model, state=state)
        return [Review(self.driver, each) for each in records]

    @operation
    def export_reviews(self, model: str, name: str = "reviews", *, again: bool = False) -> Steps[Dataset[M]]:
        """Make a dataset of the labelled rows of a model. A request that is lost is not sent again."""
        body = {"model": model, "name": name, "again": again}
        return Dataset(self.driver, (yield from self._json("POST", "reviews", "export", body=body, repeatable=False)))


class Client(Service["Sync"]):
    """The service for threads: methods return their results. It closes as a context manager, or by `close`."""

    def close(self) -> None:
        self.driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Service["Async"]):
    """The service for asyncio: methods return awaitables."""

    async def close(self) -> None:
        await self.driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def training(
    dataset: Dataset[Any] | str, target: str | None, model: str | None, algorithm: str | Mapping[str, Any],
    fields: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """The body of a request to train."""
    chosen = dict(algorithm) if isinstance(algorithm, Mapping) else {"name": algorithm}
    chosen |= {name: value for name, value in fields.items() if name not in TRAIN_FIELDS}
    body = {"dataset": dataset, "target": target, "model": model or model_name(dataset), "algorithm": chosen}
    return body | {name: value for name, value in fields.items() if name in TRAIN_FIELDS}


def model_name(dataset: Dataset[Any] | str) -> str:
    """A valid name of a model from that of a dataset."""
    name = dataset.name or "" if isinstance(dataset, Dataset) else dataset
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:100] or "model"
