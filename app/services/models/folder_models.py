"""Models of a folder: loaded when they come or change, and served until a newer file of theirs has proved itself."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from app.base.errors import (
    AliasNotFound,
    CorruptModel,
    InvalidData,
    ModelNotFound,
    ValiantError,
    VersionNotFound,
)
from app.base.settings import Settings
from app.base.suggestions import no_such
from app.ingest.model_file_format import recognise_model
from app.ingest.model_file_parser import ModelFileParser
from app.ml.contract.file_formats import BOOSTED, NOT_BOOSTED
from app.ml.contract.model_file_options import ALL
from app.ml.contract.model_reference import VersionRef
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported
from app.ml.models.model import Model, decode
from app.schemas.models import Model as ModelCard
from app.services.models.model_folder import ModelFile, list_model_files, printable
from app.services.models.model_settings import MLSERVER
from app.services.models.unserved_files import explain_unserved
from app.services.predictions.model_loading import compiled_meanwhile
from app.services.predictions.pointer_cache import Found, ModelUnavailable
from app.services.threads.lasting_threads import repeat
from app.store.models.pointer import ANY, Freshness, Pointer

log = structlog.get_logger(__name__)
FROM_FILE = Naming(None, None, None, "target")
"""Names and classes as the file has them."""
MAX_REASON = 500
"""Characters of a reason."""
UNLOADED = "unloaded"
RETRY_SECONDS = "2"


class State(NamedTuple):
    """A version in the folder."""

    model: str
    version: str
    ready: bool
    """True where it predicts; by an earlier file if there is a reason."""
    reason: str = ""
    """Why its present file is not served."""


class _Read(NamedTuple):
    """Model with facts of its file."""

    model: Model
    digest: str
    """Digest of the file, and of the rounds that are chosen, if any."""
    size_bytes: int
    warnings: tuple[str, ...]


class _Version(NamedTuple):
    file: ModelFile
    pointer: Pointer


class FolderModels:
    """Pointers to what is served, by name and version; `refresh` follows the folder."""

    def __init__(self, root: Path, settings: Settings, model_name: str | None = None) -> None:
        """model_name: of the model of a folder that holds one."""
        self._root, self._settings, self.model_name = root, settings, model_name
        self.keep: Callable[[str, Model], None] = lambda _digest, _model: None
        """Called with each model as it is loaded: what is in memory serves on when its file is gone or broken."""
        self._served: dict[str, dict[int, _Version]] = {}
        self._unloaded: set[str] = set()
        self._faults: dict[ModelFile, str] = {}
        """Present files that are not served, and why."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def watch(self, seconds: float) -> None:
        """Look for changes for ever, in a thread."""
        repeat(self.refresh, seconds, self._stopped, name="folder")

    def stop(self) -> None:
        self._stopped.set()

    def refresh(self) -> None:
        """Load what is new or changed. A file that fails leaves the version as it was, and is tried when it changes.

        Raises OSError if the folder cannot be read.
        """
        with self._lock, ModelFileParser(self._settings.parse_memory_bytes) as parser:
            files = list_model_files(self._root, self.model_name)
            faults = {file: reason for file in files if (reason := self._taken(file, parser))}
            for file in faults.keys() - self._faults.keys():
                source, reason = printable(str(file.source)), faults[file]
                log.warning("model_not_served", model=file.model, version=file.label, file=source, reason=reason)
            self._faults = faults
            self._forget(files)

    def load(self, pointer: Pointer) -> Model:
        """A model that has left the memory, from its file. Raises CorruptModel if that has changed meanwhile."""
        version = self._served.get(pointer.model, {}).get(pointer.version)
        if version is None:
            raise VersionNotFound
        with ModelFileParser(self._settings.parse_memory_bytes) as parser:
            read = _read(version.file, self._settings, parser)
        if read.digest != pointer.digest:
            raise CorruptModel("The file of the model has changed, and is not loaded yet.")
        return read.model

    def at_hand(self, reference: VersionRef, demand: Freshness = ANY) -> Found | None:  # noqa: ARG002  nothing here has revisions
        versions = self._served.get(reference.model)
        if not versions or reference.alias is not None:
            return None
        version = versions.get(max(versions) if reference.version is None else reference.version)
        return None if version is None else Found(version.pointer)

    async def current(self, reference: VersionRef, demand: Freshness = ANY) -> Found:
        """Raises ModelNotFound, ModelUnavailable, VersionNotFound, AliasNotFound."""
        pointer = self.at_hand(reference, demand)
        if pointer is not None:
            return pointer
        if not self._served.get(reference.model):
            raise self._absence(reference.model)
        if reference.alias is not None:
            raise AliasNotFound
        raise self._unavailability(reference.model, reference.version) or VersionNotFound()

    async def demand_database(self, reference: VersionRef) -> None:
        """There is none to wait for."""

    def get(self, model: str) -> ModelCard:
        """Raises ModelNotFound, ModelUnavailable."""
        versions = self._served.get(model)
        if not versions:
            raise self._absence(model)
        first = min(version.file.stamp[0] for version in versions.values())
        numbers = sorted(versions)
        made = datetime.fromtimestamp(first / 1e9, UTC)
        return ModelCard(name=model, created_at=made, latest_version=numbers[-1], versions=numbers, aliases=[])

    def states(self) -> list[State]:
        """All versions in the folder, served or not."""
        reasons = {(file.model, file.version): (file, reason) for file, reason in self._faults.items()}
        served = {(model, number) for model, versions in self._served.items() for number in versions}
        ready = [State(model, str(number), ready=True) for model, number in served - reasons.keys()]
        failed = [
            State(file.model, str(file.version or file.label), key in served, reason)
            for key, (file, reason) in reasons.items()
        ]
        return sorted(ready + failed)

    def set_loaded(self, model: str, *, loaded: bool) -> None:
        """Serve a model, or no more. Raises ModelNotFound if the folder does not have it, and ModelUnavailable."""
        try:
            names = {file.model for file in list_model_files(self._root, self.model_name)}
            if model not in names:
                raise ModelNotFound(no_such("There is no model", model, list(names)))
            with self._lock:
                (self._unloaded.discard if loaded else self._unloaded.add)(model)
                self._faults = {file: reason for file, reason in self._faults.items() if file.model != model}
            self.refresh()
        except OSError as error:
            raise ModelUnavailable(f"The folder cannot be read: {error.strerror}.") from error
        if loaded and (unavailable := self._unavailability(model)):
            raise unavailable

    def _absence(self, model: str) -> ValiantError:
        if model in self._unloaded:
            return ModelNotFound(f"The model was unloaded: POST /v2/repository/models/{model}/load serves it again.")
        return self._unavailability(model) or ModelNotFound(
            no_such("There is no model", model, [state.model for state in self.states()])
        )

    def _unavailability(self, model: str, version: int | None = None) -> ModelUnavailable | None:
        reasons = [
            reason for file, reason in self._faults.items() if file.model == model and version in {None, file.version}
        ]
        if not reasons:
            return None
        return ModelUnavailable(" ".join(reasons)[:MAX_REASON], headers={"Retry-After": RETRY_SECONDS})

    def _taken(self, file: ModelFile, parser: ModelFileParser) -> str:
        """Load the file unless it is loaded. Returns the reason why it is not served, or nothing."""
        if file.model in self._unloaded:
            return UNLOADED
        served = self._served.get(file.model, {}).get(file.version)
        if served is not None and served.file == file:
            return ""
        reason = file.fault or self._faults.get(file) or self._load(file, parser)
        return reason[:MAX_REASON]

    def _load(self, file: ModelFile, parser: ModelFileParser) -> str:
        try:
            read = _read(file, self._settings, parser)
        except ValiantError as error:
            return error.detail
        except OSError as error:
            return f"The file cannot be read: {error.strerror or type(error).__name__}."
        except Exception:  # a file nobody thought of leaves the other models as they are
            log.exception("model_failed", model=file.model, file=printable(str(file.path)))
            return "The file is damaged: the model in it does not predict."
        self.keep(read.digest, read.model)
        facts: dict[str, Any] = {"version": file.label, "warnings": [*file.remarks, *read.warnings]}
        if file.options != ALL:
            facts["iterations"] = "best" if file.options.best else str(file.options.rounds)
        version = _Version(file, Pointer(file.model, file.version, read.digest, read.size_bytes, facts=facts))
        self._set(file.model, self._served.get(file.model, {}) | {file.version: version})
        log.info("model_loaded", model=file.model, version=file.label, file=printable(str(file.path)))
        return ""

    def _forget(self, files: Iterable[ModelFile]) -> None:
        """Serve no longer what is not in the folder, or unloaded; what has a fault there is served on."""
        present = {(file.model, file.version) for file in files}
        faulty = {file.source for file in files if file.fault}
        for model, versions in list(self._served.items()):
            left = {
                number: version
                for number, version in versions.items()
                if (model, number) in present or version.file.source in faulty
            }
            self._set(model, {} if model in self._unloaded else left)

    def _set(self, model: str, versions: Mapping[int, _Version]) -> None:
        """At once: whoever reads has the versions of before or of after."""
        if versions:
            self._served[model] = dict(versions)
        else:
            self._served.pop(model, None)


def _read(file: ModelFile, settings: Settings, parser: ModelFileParser) -> _Read:
    """The model, once it has predicted. Raises what parsers and checks raise."""
    assert file.path is not None  # noqa: S101  what has none has a fault
    _, size, _ = file.stamp
    if size > settings.max_file_bytes:
        raise InvalidData(f"The file is larger than VALIANT_MAX_FILE_BYTES, {settings.max_file_bytes} bytes.")
    content = file.path.read_bytes()
    data_digest = digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    file_format = recognise_model(content)
    if file_format is None:
        raise InvalidData(explain_unserved(file.path, content))
    if file.options != ALL:
        if file_format not in BOOSTED:
            raise InvalidData(f"{MLSERVER}, parameters.extra.iterations: {NOT_BOOSTED}")
        digest = f"sha256:{hashlib.sha256(content + repr(file.options).encode()).hexdigest()}"
    warnings: tuple[str, ...] = ()
    if file_format == "valiant":
        model = decode(content, f"The file {file.path.name}")
    else:
        parsed = parser.parse(file.path, file_format, file.options)
        check_probes(parsed)
        model, warnings = imported(parsed, FROM_FILE, {"data_digest": data_digest}), parsed.warnings
    with compiled_meanwhile():
        model.predict_raw(model.preparation.no_values)
    return _Read(model, digest, len(content), warnings)
