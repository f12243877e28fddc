"""Models, their versions and aliases, and predictions with them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from . import frames
from .dataset import save
from .operation import M, attribute, operation
from .predicted_rows import Prediction
from .record import Record, items
from .steps import Reply, Steps
from .summary_table import SummaryTable, metrics_table
from .version_report import THEMES, Plot, Report, page

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .drivers import Async, Sync

F = TypeVar("F")
"""A table or an array."""
Objects: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Rows as JSON has them, or one of them."""
EXPORTS = {".onnx": "onnx", ".py": "script"}
PICTURES = {".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json"}


class _Predicting(Record[M]):
    """Predictions and queries with a model, or with one version of it."""

    @property
    def _model(self) -> str:
        raise NotImplementedError

    @property
    def _chosen(self) -> Mapping[str, Any]:
        """The version, in the query of an address."""
        return {}

    def _newest(self, _chosen: Mapping[str, Any]) -> dict[str, str]:
        """Headers that demand what is known to exist, whichever process of the service responds."""
        return {}

    def _predict(self, /, rows: Any, **options: Any) -> Steps[Any]:
        """Predict rows: a table of pandas, polars or pyarrow, an array of numpy, or objects, or one object.

        A table gives the same kind of table back, of pandas with the same index: `prediction`, probabilities and
        `flags`. An array gives an array of predictions. An object (a dict, or a series of pandas) and a list of them
        give a `Prediction`. Large tables go in several requests to one version. options: parameters of the request,
        such as `confidence`, `include` (with `top`, where contributions are included), `on_error`, `alias`.
        """
        query = {**self._chosen, **{name: _listed(value) for name, value in options.items()}}
        if frames.is_frame(rows):
            return (yield from self._predict_table(rows, query))
        body: dict[str, Any] = {"body": frames.rows_of(rows), "headers": self._newest(query)}
        if frames.is_array(rows):
            headers = {**self._newest(query), "Content-Type": frames.NPY}
            body = {"content": frames.npy(rows), "headers": headers}
        response = yield from self._json(*self._query("predict"), query=query, **body)
        return frames.array(response["predictions"]) if frames.is_array(rows) else Prediction(self.driver, response)

    if TYPE_CHECKING:

        @overload
        def predict(self: "_Predicting[Sync]", /, rows: Objects, **options: Any) -> "Prediction[Sync]": ...
        @overload
        def predict(self: "_Predicting[Sync]", /, rows: F, **options: Any) -> F: ...
        @overload
        def predict(self: "_Predicting[Async]", /, rows: Objects, **options: Any) -> "Awaitable[Prediction[Async]]": ...
        @overload
        def predict(self: "_Predicting[Async]", /, rows: F, **options: Any) -> Awaitable[F]: ...
        def predict(self, /, rows: Any, **options: Any) -> Any: ...

    else:
        predict = operation(_predict)

    def _predict_table(self, frame: Any, query: dict[str, Any]) -> Steps[Any]:
        parts = []
        for batch in frames.batches(frames.table_of(frame)):
            reply = yield from self._send(
                *self._query("predict"),
                query=query,
                content=b"".join(frames.packed(batch)),
                headers={**self._newest(query), "Content-Type": frames.ARROW, "Accept": frames.ARROW},
            )
            parts.append(frames.unpacked(reply.body))
            query = {name: value for name, value in query.items() if name != "alias"}
            query["version"] = reply.headers["x-model-version"]
        return frames.like(frame, frames.joined(parts))

    @operation
    def query(
        self, name: str, /, rows: Any = None, *, confidence: float | None = None, **body: Any
    ) -> Steps[dict[str, Any]]:
        """A query at once, by its name: `explain`, `intervals`, `sweep`, `linearise`, `neighbours`, `tree`, …

        rows: of those that take rows, a table or a list of objects; confidence: of `intervals`; body: the fields of its
        request.
        """
        whole = body if rows is None else {**frames.rows_of(rows), **body}
        chosen = {**self._chosen, "confidence": confidence}
        headers = self._newest(chosen)
        response: dict[str, Any] = yield from self._json(*self._query(name), query=chosen, body=whole, headers=headers)
        return response

    def _query(self, name: str) -> tuple[str, str, str, str]:
        return "POST", "models", self._model, name


class Version(_Predicting[M]):
    """One immutable version of a model."""

    model: str
    version: int
    created_at: str
    algorithm: str
    task: str
    parameters: dict[str, Any]
    target: str | None
    classes: list[Any] | None
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    metrics: list[dict[str, Any]]
    dataset: str | None
    dataset_digest: str
    job: str | None
    session: str | None
    receipt: dict[str, Any]
    digest: str
    size_bytes: int
    warnings: list[str]

    def as_reference(self) -> dict[str, Any]:
        return {"model": self.model, "version": self.version}

    def __repr__(self) -> str:
        return f"<Version {self.version} of {self.model}: {self.task} by {self.algorithm}>"

    def overview(self) -> SummaryTable:
        title = f"{self.model}, version {self.version}: {self.task} by {self.algorithm}"
        return metrics_table(title, self.metrics, self.warnings)

    @property
    def _model(self) -> str:
        return self.model

    @property
    def _chosen(self) -> Mapping[str, Any]:
        return {"version": self.version}

    @property
    def _path(self) -> tuple[object, ...]:
        return "models", self.model, "versions", self.version

    @attribute
    def report(self) -> Steps[Report[M]]:
        """The report, read once."""
        if "_report" not in self.__dict__:
            self._report: Report[M] = Report(self.driver, (yield from self._json("GET", *self._path, "report")))
        return self._report

    @operation
    def delete(self) -> Steps[None]:
        """Refused while an alias points at it."""
        yield from self._send("DELETE", *self._path)

    @operation
    def download(self, path: str | Path) -> Steps[Path]:
        """Write the stored bytes, in the safetensors format, to a file."""
        target = Path(path)
        yield from save(self, target, *self._path, "artifact", accept="application/octet-stream")
        return target

    @operation
    def export(self, path: str | Path) -> Steps[Path]:
        """Write the version as a file that other programs predict with: ONNX (`.onnx`), or a script of numpy (`.py`).

        Raises Refused with the code `export_unsupported` where the model has no such file.
        """
        target = Path(path)
        if target.suffix not in EXPORTS:
            raise ValueError(f"{target.name}: the name of an export ends with {' or '.join(EXPORTS)}.")
        query = {"as": EXPORTS[target.suffix]}
        yield from save(self, target, *self._path, "artifact", accept="application/octet-stream", query=query)
        return target

    @operation
    def plots(self) -> Steps[list[dict[str, Any]]]:
        """The plots of the version: `name`, `title` and `description`."""
        plots: list[dict[str, Any]] = (yield from self._json("GET", *self._path, "plots"))["items"]
        return plots

    @operation
    def plot(self, name: str, /, path: str | Path | None = None, theme: str = "light") -> Steps[Any]:
        """One plot: its Vega-Lite specification, or written to a file as SVG, PNG or JSON by the end of its name."""
        if path is None:
            return Plot((yield from self._plot(name, theme, "application/json")).json())
        target = Path(path)
        target.write_bytes((yield from self._plot(name, theme, PICTURES[target.suffix])).body)
        return target

    def _plot(self, name: str, theme: str, media_type: str) -> Steps[Reply]:
        headers = {"Accept": media_type}
        return self._send("GET", *self._path, "plots", name, query={"theme": theme}, headers=headers)

    @operation
    def save_report(self, path: str | Path) -> Steps[Path]:
        """Write metrics, warnings and all plots as one HTML page, which loads nothing from elsewhere."""
        report, drawn = (yield from Version.report.steps(self)), []
        for plot in (yield from Version.plots.steps(self)):
            pictures = {}
            for theme in THEMES:
                pictures[theme] = (yield from self._plot(plot["name"], theme, PICTURES[".svg"])).body
            drawn.append((plot, pictures))
        target = Path(path)
        target.write_text(page(self.overview().title, report, drawn), "utf-8")
        return target

    @operation
    def cluster_names(self) -> Steps[dict[str, Any]]:
        """Names that a person has given to the clusters, with their `revision`."""
        names: dict[str, Any] = yield from self._json("GET", *self._path, "names")
        return names

    @operation
    def name_clusters(
        self, names: Sequence[Mapping[str, Any]], if_revision: int | None = None
    ) -> Steps[dict[str, Any]]:
        """Give names to the clusters: these, and no others."""
        record: dict[str, Any] = yield from self._json(
            "PUT", *self._path, "names", body={"names": names}, headers=_condition(if_revision)
        )
        return record

    @operation
    def cluster_name_changes(self, limit: int | None = None) -> Steps[list[dict[str, Any]]]:
        """Every change of the names, newest first."""
        return (yield from items(self.driver, *self._path, "names", "history", limit=limit))


class Model(_Predicting[M]):
    """A model: a name with versions and aliases. It predicts with the alias `champion`, else with the newest."""

    name: str
    created_at: str
    latest_version: int | None
    versions: list[int]
    aliases: list[dict[str, Any]]

    def __repr__(self) -> str:
        aliases = f", {self.as_aliases()}" if self.aliases else ""
        return f"<Model {self.name}: {len(self.versions)} versions{aliases}>"

    def as_aliases(self) -> str:
        """Each alias with its version, as in `champion → 7`."""
        return ", ".join(f"{alias['alias']} → {alias['version']}" for alias in self.aliases)

    @property
    def _model(self) -> str:
        return self.name

    def _newest(self, chosen: Mapping[str, Any]) -> dict[str, str]:
        if "alias" in chosen or "version" in chosen:
            return {}
        for alias in self.aliases:
            if alias["alias"] == "champion":
                return {"X-Min-Revision": str(alias["revision"])}
        return {} if self.latest_version is None else {"X-Min-Version": str(self.latest_version)}

    @operation
    def version(self, number: int | None = None) -> Steps[Version[M]]:
        """A version by its number; None: the newest."""
        chosen = self.latest_version if number is None else number
        return Version(self.driver, (yield from self._json("GET", "models", self.name, "versions", chosen)))

    def alias(self, name: str) -> "Alias[M]":
        """An alias of the model, which need not exist yet."""
        return Alias(self.driver, {"model": self.name, "alias": name})

    @operation
    def delete(self) -> Steps[None]:
        """Delete all versions and aliases."""
        yield from self._send("DELETE", "models", self.name)


class Alias(Record[M]):
    """A name that points at a version of a model."""

    model: str
    alias: str

    def __repr__(self) -> str:
        return f"<Alias {self.alias} of {self.model}>"

    @operation
    def move(self, version: Version[Any] | int, if_revision: int | None = None) -> Steps[dict[str, Any]]:
        """Point at a version; with `if_revision` only if nobody has moved the alias since. Raises Conflict."""
        number = version.version if isinstance(version, Version) else version
        moved: dict[str, Any] = yield from self._json(
            "PUT", "models", self.model, "aliases", self.alias,
            body={"version": number}, headers=_condition(if_revision),
        )  # fmt: skip
        return moved

    @operation
    def history(self, limit: int | None = None) -> Steps[list[dict[str, Any]]]:
        """Every move, newest first."""
        return (yield from items(self.driver, "models", self.model, "aliases", self.alias, "history", limit=limit))


def _condition(revision: int | None) -> dict[str, str]:
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def _listed(value: Any) -> Any:
    """Several names are one text with commas."""
    return (",".join(value) or None) if isinstance(value, (list, tuple)) else value
