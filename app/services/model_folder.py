"""Files of models in a folder: the layouts of Triton and MLServer, and single files.

PATH/<model>/<version>/model.*            as Triton has it
PATH/<model>/model-settings.json          as MLServer has it; or PATH/model-settings.json
PATH/<model>.*, or PATH itself a file     version 1
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import structlog

FORMATS = {".safetensors": "valiant", ".txt": "lightgbm", ".json": "xgboost", ".ubj": "xgboost", ".onnx": "onnx"}
"""Formats by the suffixes of files; a JSON of `valiant import` is one of scikit-learn."""
NAME = re.compile(r"[a-z0-9_-]{1,100}")
SETTINGS = "model-settings.json"
log = structlog.get_logger(__name__)


class ModelFile(NamedTuple):
    """A version of a model, as a file."""

    model: str
    version: int
    path: Path
    file_format: str
    stamp: tuple[int, int]
    """Time of its last change in nanoseconds, and its size."""


def model_files(root: Path, single_name: str | None = None) -> Iterator[ModelFile]:
    """single_name: of the model where the folder is one file. What fits no layout is left out, and logged once."""
    if root.is_file():
        yield from _file(single_name or root.stem, 1, root)
        return
    if (root / SETTINGS).is_file():
        yield from _described(root)
        return
    for place in sorted(root.iterdir()):
        if place.name.startswith("."):
            continue
        if place.is_file():
            yield from _file(place.stem, 1, place)
        elif (place / SETTINGS).is_file():
            yield from _described(place)
        else:
            yield from _versions(place)


def _versions(folder: Path) -> Iterator[ModelFile]:
    for place in sorted(folder.iterdir()):
        if place.is_dir() and place.name.isdigit() and 0 < int(place.name) < 2**31:
            files = [path for path in sorted(place.glob("model.*")) if path.suffix in FORMATS]
            if len(files) == 1:
                yield from _file(folder.name, int(place.name), files[0])
            else:
                log.warning("no_model_file", folder=str(place), found=len(files))


def _described(folder: Path) -> Iterator[ModelFile]:
    """`implementation` is a class of MLServer: it is not imported."""
    try:
        settings = json.loads((folder / SETTINGS).read_bytes())
        parameters = settings.get("parameters") or {}
        path, version = folder / str(parameters["uri"]), int(parameters.get("version") or 1)
        name = str(settings.get("name") or folder.name)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        log.warning("settings_not_read", file=str(folder / SETTINGS), error=type(error).__name__)
        return
    yield from _file(name, version, path)


def _file(name: str, version: int, path: Path) -> Iterator[ModelFile]:
    file_format = FORMATS.get(path.suffix)
    if file_format is None or path.name == SETTINGS:
        return
    if not NAME.fullmatch(name):
        log.warning("name_not_served", name=name, allowed=NAME.pattern)
        return
    try:
        found = path.stat()
    except OSError as error:
        log.warning("file_not_read", file=str(path), error=type(error).__name__)
        return
    yield ModelFile(name, version, path, file_format, (found.st_mtime_ns, found.st_size))
