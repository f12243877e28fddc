"""Models of a folder: loaded when they come or change, and served until a newer file of theirs has proved itself."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import structlog

from app.errors import AliasNotFound, CorruptModel, ModelNotFound, ValiantError, VersionNotFound
from app.ingest.model_file_parser import parse
from app.ml.contract.model_reference import VersionRef
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported
from app.ml.models.model import Model, decode
from app.schemas.models import Model as ModelCard
from app.services.lasting_threads import repeat
from app.services.model_folder import ModelFile, model_files
from app.services.model_loading import compiled_meanwhile
from app.services.pointer_cache import Found
from app.settings import Settings
from app.store.pointer import Pointer
from app.suggestions import no_such

log = structlog.get_logger(__name__)
FROM_FILE = Naming(None, None, None, "target")
"""Names and classes as the file has them."""


class _Version(NamedTuple):
    file: ModelFile
    pointer: Pointer


class FolderModels:
    """Pointers to what is served, by name and version; `refresh` follows the folder."""

    def __init__(self, root: Path, settings: Settings, single_name: str | None = None) -> None:
        self._root, self._settings, self._single_name = root, settings, single_name
        self.keep: Callable[[str, Model], None] = lambda _digest, _model: None
        """Called with each model as it is loaded: what is in memory serves on when its file is gone or broken."""
        self._served: dict[str, dict[int, _Version]] = {}
        self._unloaded: set[str] = set()
        self._faults: dict[tuple[str, int], tuple[ModelFile, str]] = {}
        """Versions whose present file is not served, and why."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def watch(self, seconds: float) -> None:
        """Look for changes for ever, in a thread."""
        repeat(self.refresh, seconds, self._stopped, name="folder")

    def stop(self) -> None:
        self._stopped.set()

    def refresh(self) -> None:
        """Load what is new or changed. A file that fails leaves the version as it was, and is tried when it changes."""
        with self._lock:
            files = {(file.model, file.version): file for file in model_files(self._root, self._single_name)}
            self._faults = {key: fault for key, fault in self._faults.items() if key in files}
            for key, file in files.items():
                if file.model not in self._unloaded and self._is_new(key, file):
                    self._take(key, file)
            for model, versions in list(self._served.items()):
                kept = {number: one for number, one in versions.items() if (model, number) in files}
                self._set(model, {} if model in self._unloaded else kept)

    def load(self, pointer: Pointer) -> Model:
        """A model that has left the memory, from its file. Raises CorruptModel if that has changed meanwhile."""
        version = self._served.get(pointer.model, {}).get(pointer.version)
        if version is None:
            raise VersionNotFound
        model, digest, _ = _read(version.file, self._settings)
        if digest != pointer.digest:
            raise CorruptModel("The file of the model has changed, and is not loaded yet.")
        return model

    def at_hand(self, reference: VersionRef, least: int = 0) -> Found | None:  # noqa: ARG002  nothing here has revisions
        versions = self._served.get(reference.model)
        if not versions or reference.alias is not None:
            return None
        version = versions.get(max(versions) if reference.version is None else reference.version)
        return None if version is None else Found(version.pointer)

    async def current(self, reference: VersionRef, least: int = 0) -> Found:
        """Raises ModelNotFound, VersionNotFound, AliasNotFound."""
        found = self.at_hand(reference, least)
        if found is not None:
            return found
        if not self._served.get(reference.model):
            raise ModelNotFound(no_such("There is no model", reference.model, list(self._served)))
        raise VersionNotFound if reference.alias is None else AliasNotFound

    async def demand_database(self, reference: VersionRef) -> None:
        """There is none to wait for."""

    def get(self, model: str) -> ModelCard:
        """Raises ModelNotFound."""
        versions = self._served.get(model)
        if not versions:
            raise ModelNotFound(no_such("There is no model", model, list(self._served)))
        first = min(one.file.stamp[0] for one in versions.values())
        numbers = sorted(versions)
        made = datetime.fromtimestamp(first / 1e9, UTC)
        return ModelCard(name=model, created_at=made, latest_version=numbers[-1], versions=numbers, aliases=[])

    def states(self) -> list[tuple[str, int, str]]:
        """Names, versions, and why the present file is not served; empty where it is."""
        served = {(model, number): "" for model, versions in self._served.items() for number in versions}
        faults = {key: fault for key, (_, fault) in self._faults.items()}
        return [(*key, fault) for key, fault in sorted((served | faults).items())]

    def set_loaded(self, model: str, *, loaded: bool) -> None:
        """Serve a model, or no more. Raises ModelNotFound for one that the folder does not have."""
        names = {file.model for file in model_files(self._root, self._single_name)}
        if model not in names:
            raise ModelNotFound(no_such("There is no model", model, list(names)))
        (self._unloaded.discard if loaded else self._unloaded.add)(model)
        self.refresh()

    def _is_new(self, key: tuple[str, int], file: ModelFile) -> bool:
        served, failed = self._served.get(key[0], {}).get(key[1]), self._faults.get(key)
        return file != (served and served.file) and file != (failed and failed[0])

    def _take(self, key: tuple[str, int], file: ModelFile) -> None:
        try:
            loaded, digest, size = _read(file, self._settings)
        except (ValiantError, OSError) as error:
            detail = error.detail if isinstance(error, ValiantError) else type(error).__name__
            self._faults[key] = file, detail
            log.warning("model_not_loaded", model=key[0], version=key[1], file=str(file.path), reason=detail)
            return
        self._faults.pop(key, None)
        self.keep(digest, loaded)
        versions = self._served.get(key[0], {})
        self._set(key[0], versions | {key[1]: _Version(file, Pointer(*key, digest, size))})
        log.info("model_loaded", model=key[0], version=key[1], file=str(file.path))

    def _set(self, model: str, versions: Mapping[int, _Version]) -> None:
        """At once: whoever reads has the versions of before or of after."""
        if versions:
            self._served[model] = dict(versions)
        else:
            self._served.pop(model, None)


def _read(file: ModelFile, settings: Settings) -> tuple[Model, str, int]:
    """The model with its digest and size, once it has predicted. Raises what parsers and checks raise."""
    content = file.path.read_bytes()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if file.file_format == "valiant":
        model = decode(content, f"The file {file.path.name}")
    else:
        known = "scikit-learn" if b'"valiant-trees"' in content[:200] else file.file_format
        parsed = parse(file.path, known, settings.parse_memory_bytes)
        check_probes(parsed)
        model = imported(parsed, FROM_FILE, {"data_digest": digest})
    with compiled_meanwhile():
        model.predict_raw(model.preparation.no_values)
    return model, digest, len(content)
