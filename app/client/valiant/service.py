"""The service: datasets, jobs, models, sessions, preferences, reviews and keys, each by one method."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import frames
from .api_key import AccessControl
from .dataset import Dataset
from .fitted_estimator import fitted
from .model_version import Model, Version
from .online_session import OnlineSession
from .operation import M, operation
from .preference import Preference
from .record import items
from .review import Review
from .steps import Steps
from .submitted_job import Job, Progress

if TYPE_CHECKING:
    from .drivers import Async, Sync  # noqa: F401  in the bases of classes

CHUNK_BYTES = 1 << 20
ALGORITHM = "gradient_boosting"
"""Algorithm of a training that names none: it takes categories, missing values and both kinds of target."""
TRAIN_FIELDS = frozenset({
    *("class_weight", "difficulty", "difficulty_stages", "features", "initialise_from", "item", "kinds", "name"),
    *("preprocessing", "relations", "seed", "sigma", "task", "time_limit_seconds", "validation", "weights"),
})  # fmt: skip
"""Fields of a training; every other keyword is a parameter of the algorithm."""


class Service(AccessControl[M]):
    """One service. Every method may raise Problem and ConnectionLost."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.driver.url}>"

    @operation
    def upload(
        self, /, table: Any, name: str | None = None, *, file_format: str | None = None,
        kinds: Mapping[str, str] | None = None, **reading: Any,
    ) -> Steps[Dataset[M]]:  # fmt: skip
        """Upload a file, streamed, or a table of pandas, polars or pyarrow. An index of pandas is left out.

        name: None is that of the file. reading: `header`, `encoding`, `missing`, `sheet`. A request that is lost after
        its last byte is sent again, and can leave a second dataset of the same rows.
        """
        if frames.is_frame(table):
            packed, file_format = frames.table_of(table), "arrow"
            content: Callable[[], Iterator[bytes]] = lambda: frames.packed(packed)  # noqa: E731
        else:
            path = Path(table)
            name = name or path.name.partition(".")[0]
            with path.open("rb"):
                content = lambda: _chunks(path)  # noqa: E731
        query = {"name": name, "file_format": file_format, "kinds": _packed(kinds), **reading}
        headers = {"Content-Type": "application/octet-stream"}
        made = yield from self._json("POST", "datasets", content=content, headers=headers, query=query)
        return Dataset(self.driver, made)

    @operation
    def train(
        self, /, dataset: Dataset[Any] | str, target: str | None = None, *, model: str | None = None,
        algorithm: str | Mapping[str, Any] = ALGORITHM, wait: bool = True, timeout: float | None = None,
        progress: Progress = None, **fields: Any,
    ) -> Steps[Any]:  # fmt: skip
        """Train a model, and wait for the version; without `wait` the job is returned at once.

        model: None makes a name of that of the dataset. progress: draw a line, None: on a terminal only; or a function
        of the share that is done and the present step. fields: those of the request, such as `features`, `validation`
        and `seed`; all others are parameters of the algorithm. Where a parameter has the name of a field, as `weights`
        of `knn`, give the algorithm as `{"name": "knn", "weights": "distance"}`.
        """
        body = training(dataset, target, model, algorithm, fields)
        return (yield from self._end((yield from self._submit("train", body)), wait, timeout, progress))

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
    def validate(self, kind: str, /, **body: Any) -> Steps[dict[str, Any]]:
        """Dry run of a job: its memory and time, or every problem at once. Raises InvalidRequest."""
        found: dict[str, Any] = yield from self._json("POST", "jobs", f"{kind}:validate", body=body)
        return found

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
    def upload_file(self, path: str | Path) -> Steps[dict[str, Any]]:
        """Upload a file of a model of another library, for a job `import`; its `id` is what the job names."""
        source = Path(path)
        source.open("rb").close()  # what cannot be read is refused before the request
        headers = {"Content-Type": "application/octet-stream"}
        kept: dict[str, Any] = yield from self._json("POST", "files", content=lambda: _chunks(source), headers=headers)
        return kept

    @operation
    def import_estimator(
        self,
        /,
        estimator: Any,
        model: str,
        *,
        check: Any = None,
        wait: bool = True,
        timeout: float | None = None,
        **fields: Any,
    ) -> Steps[Any]:
        """Import a fitted estimator of scikit-learn; it stays here, its numbers are sent.

        Trees, forests, boosting and linear models are sent as such; others as a graph of ONNX, which skl2onnx makes,
        with `check`: rows (n, d) that the service has to predict as scikit-learn does. fields: those of the request,
        such as `target`. Raises NotImportable; JobFailed where the service would not predict alike.
        """
        found = fitted(estimator, check)
        headers = {"Content-Type": "application/octet-stream"}
        kept = yield from self._json("POST", "files", content=found.content, headers=headers)
        body = {"model": model, "file": kept["id"], **found.request, **fields}
        if found.check is not None:
            rows = yield from self._json("POST", "datasets", content=found.check.content, headers=headers)
            body["check"] = {"dataset": rows["id"], "prediction_columns": found.check.columns}
        return (yield from self._end((yield from self._submit("import", body)), wait, timeout))

    @operation
    def file(self, file_id: str) -> Steps[dict[str, Any]]:
        """Size, digest and expiry of an uploaded file of a model."""
        found: dict[str, Any] = yield from self._json("GET", "files", file_id)
        return found

    @operation
    def job(self, reference: str) -> Steps[Job[M]]:
        """A job by its id, or the newest of a name."""
        return Job(self.driver, (yield from self._json("GET", "jobs", reference)))

    @operation
    def jobs(
        self, limit: int | None = None, *, state: str | None = None, name: str | None = None
    ) -> Steps[list[Job[M]]]:
        """Jobs, newest first; without their results."""
        found = yield from items(self.driver, "jobs", limit=limit, state=state, name=name)
        return [Job(self.driver, each) for each in found]

    @operation
    def model(self, name: str) -> Steps[Model[M]]:
        """A model by its name."""
        return Model(self.driver, (yield from self._json("GET", "models", name)))

    @operation
    def models(self, limit: int | None = None) -> Steps[list[Model[M]]]:
        """Models, in alphabetical order."""
        return [Model(self.driver, each) for each in (yield from items(self.driver, "models", limit=limit))]

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
        found: dict[str, Any] = yield from self._json("GET", "algorithms", name)
        return found

    @operation
    def calculators(self) -> Steps[list[dict[str, Any]]]:
        """Calculators of learning theory."""
        return (yield from items(self.driver, "theory"))

    @operation
    def calculate(self, name: str, /, **body: Any) -> Steps[dict[str, Any]]:
        """A calculator of learning theory, such as `pac`."""
        found: dict[str, Any] = yield from self._json("POST", "theory", name, body=body)
        return found

    @operation
    def measure(self, name: str, /, **body: Any) -> Steps[dict[str, Any]]:
        """A query without a model: `metrics` of predictions, or `distances` of rows."""
        found: dict[str, Any] = yield from self._json("POST", name, body=body)
        return found

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
        found = yield from items(self.driver, "reviews", limit=limit, model=model, state=state)
        return [Review(self.driver, each) for each in found]

    @operation
    def export_reviews(self, model: str, name: str = "reviews", *, again: bool = False) -> Steps[Dataset[M]]:
        """Make a dataset of the labelled rows of a model. A request that is lost is not sent again."""
        body = {"model": model, "name": name, "again": again}
        return Dataset(self.driver, (yield from self._json("POST", "reviews", "export", body=body, repeatable=False)))

    def _submit(self, kind: str, body: Mapping[str, Any]) -> Steps[Job[M]]:
        return Job(self.driver, (yield from self._json("POST", "jobs", kind, body=body)))

    def _end(self, job: Job[M], wait: bool, timeout: float | None, progress: Progress = None) -> Steps[Any]:
        if not wait:
            return job
        yield from Job.wait.steps(job, timeout, progress)
        return (yield from Job.outcome.steps(job))


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
    name = dataset.name if isinstance(dataset, Dataset) else dataset
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:100] or "model"


def _packed(kinds: Mapping[str, str] | None) -> str | None:
    return None if kinds is None else json.dumps(kinds)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
