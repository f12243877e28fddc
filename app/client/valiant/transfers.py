"""Uploads of tables, and of files of models, which become versions."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import frames, resumed_upload
from .api_key import AccessControl
from .dataset import Dataset
from .fitted_estimator import fitted
from .fitted_parts import SKLEARN, NotImportable
from .operation import M, operation
from .resumed_upload import BYTES, UploadProgress
from .steps import Steps
from .submitted_job import Job, Progress

CHUNK_BYTES = 1 << 20
PREDICTION = "prediction"
"""Column of a job `predict`; of classes, beside their probabilities."""
FILE_FORMATS = {
    ".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".onnx": "onnx", ".safetensors": "valiant",
    ".joblib": SKLEARN, ".pkl": SKLEARN, ".pickle": SKLEARN,
}  # fmt: skip
"""Formats of model files, by the suffixes under which they are saved."""
TABLE_FORMATS = {".arff": "arff", ".svm": "svmlight", ".libsvm": "svmlight", ".svmlight": "svmlight"}
"""Formats of tables that the end of a name chooses; the others are recognised by their content."""


def _table_format(path: Path) -> str | None:
    """The format by the end of the name, also of one that ends with the suffix of a compression."""
    suffixes = map(str.lower, path.suffixes[-2:])
    return next((TABLE_FORMATS[suffix] for suffix in suffixes if suffix in TABLE_FORMATS), None)


class Transfers(AccessControl[M]):
    """Uploads, and imports of models."""

    @operation
    def upload(
        self, /, table: Any, name: str | None = None, *, file_format: str | None = None,
        kinds: Mapping[str, str] | None = None, resume: str | None = None, progress: UploadProgress | None = None,
        **reading: Any,
    ) -> Steps[Dataset[M]]:  # fmt: skip
        """Upload a file, streamed, or a table of pandas, polars or pyarrow. An index of pandas is left out.

        The file may be compressed, or a zip archive with one table. name: None is that of the file. reading: `header`,
        `header_row`, `skip_rows`, `comment`, `delimiter`, `duplicate_names`, `encoding`, `missing`, `sheet`, `member`.
        A request that is lost after its last byte is sent again, and can leave a second dataset of the same rows.

        A file above 64 MiB is sent in parts: after a broken connection it goes on from there, and makes one dataset.
        resume: id of an upload of the same file that ended before; the note of the error that ended it has it.
        progress: called after each part with the upload: its `id`, `size_bytes` and `offset`, the bytes that arrived.
        """
        if frames.is_frame(table):
            packed, file_format = frames.table_of(table), "arrow"
            content: Callable[[], Iterator[bytes]] = lambda: frames.packed(packed)  # noqa: E731
        else:
            path = Path(table)
            name = name or path.name.partition(".")[0]
            file_format = file_format or _table_format(path)
            with path.open("rb"):
                content = lambda: _chunks(path)  # noqa: E731
        query = {"name": name, "file_format": file_format, "kinds": _packed(kinds), **reading}
        if not frames.is_frame(table) and (resume is not None or path.stat().st_size > resumed_upload.RESUMED_BYTES):
            upload = yield from resumed_upload.send_parts(self, path, resume, progress)
            return Dataset(self.driver, (yield from self._json("POST", "uploads", upload, "dataset", query=query)))
        made = yield from self._json("POST", "datasets", content=content, headers=BYTES, query=query)
        return Dataset(self.driver, made)

    @operation
    def upload_file(self, path: str | Path) -> Steps[dict[str, Any]]:
        """Upload the file of a model, for a job `import`; its `id` is what the job names."""
        source = Path(path)
        source.open("rb").close()  # what cannot be read is refused before the request
        stored: dict[str, Any] = yield from self._json("POST", "files", content=lambda: _chunks(source), headers=BYTES)
        return stored

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
        fitted_ = fitted(estimator, check)
        stored = yield from self._json("POST", "files", content=fitted_.content, headers=BYTES)
        body = {"model": model, "file": stored["id"], **fitted_.request, **fields}
        if fitted_.check is not None:
            rows = yield from self._json("POST", "datasets", content=fitted_.check.content, headers=BYTES)
            body["check"] = fitted_.check.described(rows["id"])
        return (yield from self._end((yield from self._submit("import", body)), wait, timeout))

    @operation
    def import_file(
        self, /, path: str | Path, model: str | None = None, *, file_format: str | None = None, check: Any = None,
        prediction_columns: Sequence[str] | None = None, wait: bool = True, timeout: float | None = None, **fields: Any,
    ) -> Steps[Any]:  # fmt: skip
        """Import the file of a model; its suffix names the format, if `file_format` does not.

        model: None takes the name of the file. check: rows with their predictions, as a file, a table or a dataset, or
        the field as the request has it. prediction_columns: None takes those of a job `predict`: `probability_…`, else
        `prediction…`. fields: those of the request. Raises NotImportable; JobFailed where the service would not
        predict alike.
        """
        source = Path(path)
        form = file_format or FILE_FORMATS.get(source.suffix)
        if form is None:
            raise NotImportable(f"The suffix of {source.name!r} names no format: give `file_format`.")
        if form == SKLEARN:
            raise NotImportable(f"{source.name!r} is a pickle: load it, and import the estimator.")
        stored = yield from Transfers.upload_file.steps(self, source)
        body = {"model": model or source.stem, "file": stored["id"], "file_format": form, **fields}
        if isinstance(check, Mapping):
            body["check"] = check
        elif check is not None:
            rows = check if isinstance(check, Dataset) else (yield from Transfers.upload.steps(self, check))
            columns = prediction_columns or _prediction_columns(rows)
            body["check"] = {"dataset": rows.id, "prediction_columns": list(columns)}
            if prediction_columns is None and PREDICTION not in columns and PREDICTION in _names(rows):
                body["check"]["label_column"] = PREDICTION
        return (yield from self._end((yield from self._submit("import", body)), wait, timeout))

    @operation
    def file(self, file_id: str) -> Steps[dict[str, Any]]:
        """Size, digest and expiry of an uploaded file of a model."""
        record: dict[str, Any] = yield from self._json("GET", "files", file_id)
        return record

    def _submit(self, kind: str, body: Mapping[str, Any]) -> Steps[Job[M]]:
        return Job(self.driver, (yield from self._json("POST", "jobs", kind, body=body)))

    def _end(self, job: Job[M], wait: bool, timeout: float | None, progress: Progress = None) -> Steps[Any]:
        if not wait:
            return job
        yield from Job.wait.steps(job, timeout, progress)
        return (yield from Job.outcome.steps(job))


def _prediction_columns(rows: Dataset[Any]) -> list[str]:
    """Columns named as a job `predict` names its own."""
    names = _names(rows)
    shares = [name for name in names if name.startswith("probability_")]
    return shares or [name for name in names if name.partition("_")[0] == PREDICTION]


def _names(rows: Dataset[Any]) -> list[str]:
    return [column["name"] for column in rows.columns]


def _packed(kinds: Mapping[str, str] | None) -> str | None:
    return None if kinds is None else json.dumps(kinds)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
