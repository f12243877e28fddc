"""Versions of models in a folder, by the layouts of Triton, MLServer and KServe, and single files.

PATH/<model>/<version>/<file>       as Triton has it; or PATH/<version>/<file>
PATH/<model>/model-settings.json    as MLServer has it; or PATH/model-settings.json
PATH/<model>/<file>                 version 1
PATH/<model>.*, or PATH is a file   version 1
PATH/<folder>/…                     any of these

What fits none of them is a version that has a fault. Names that begin with a dot are left alone, as are the files of
`ACCOMPANYING`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from app.ingest.model_file_format import recognise_model
from app.ml.contract.model_file_options import ALL, ModelFileOptions
from app.services.models.model_settings import MLSERVER, TRITON, read_mlserver, read_triton

NAME = re.compile(r"[a-z0-9_-]{1,100}")
VERSION = re.compile(r"v?([0-9]{1,18})")
MAX_VERSION = 2**31 - 1
MAX_DEPTH = 8
"""Folders within folders that are looked through."""
STEMS = ("model", "xgboost", "checkpoint", "saved_model")
"""Names without suffix by which Triton, MLServer, KServe and BentoML know the file of a model among others."""
ACCOMPANYING = {
    "suffixes": frozenset({".cfg", ".csv", ".html", ".ini", ".ipynb", ".log", ".md", ".pbtxt", ".py", ".rst", ".sh",
                           ".toml", ".yaml", ".yml"}),
    "names": frozenset({"dockerfile", "license", "license.txt", "makefile", "mlmodel", "notice", "notice.txt", "readme",
                        "readme.txt", "requirements.txt", "settings.json", MLSERVER, TRITON}),
    "folders": frozenset({"__pycache__", "lost+found"}),
}  # fmt: skip
"""Names, in lower case, of what lies beside models and is none."""
NO_NUMBER = -1
"""Version of what is none."""
NO_FILE = "The folder {} holds no file of a model."


class ModelFile(NamedTuple):
    """A version of a model: its file, or why it has none."""

    model: str
    label: str
    """The version as the layout has it."""
    source: Path
    """Path to the file or folder by which it is a version."""
    path: Path | None = None
    stamp: tuple[int, int, int] = (0, 0, 0)
    """Time of the last change of its file in nanoseconds, its size, and its number on the disk."""
    remarks: tuple[str, ...] = ()
    fault: str = ""
    version: int = 0
    """Number by which requests name it; 0: it has none."""
    options: ModelFileOptions = ALL


def list_model_files(root: Path, model_name: str | None = None) -> list[ModelFile]:
    """All versions, each once. Raises OSError if the root cannot be read.

    model_name: of the model where the root is one file, or holds one model.
    """
    if root.is_file():
        return _numbered([_file(model_name or root.stem, "1", root)])
    name = root.resolve().name
    return _numbered(_models(root, name, 0) if model_name is None else _single_model(root, model_name))


class _Entries(NamedTuple):
    """Entries of a folder."""

    files: list[Path]
    """Those that may be models: all but folders, and what accompanies models."""
    folders: list[Path]
    described: bool
    """True where MLServer's settings are among them."""


def _entries(folder: Path) -> _Entries:
    """Raises OSError."""
    paths = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    folders = [path for path in paths if path.is_dir()]
    files = [path for path in paths if not path.is_dir() and not _accompanies(path)]
    return _Entries(
        files,
        [path for path in folders if path.name not in ACCOMPANYING["folders"]],
        folder / MLSERVER in paths,
    )


def _accompanies(path: Path) -> bool:
    return path.suffix.lower() in ACCOMPANYING["suffixes"] or path.name.lower() in ACCOMPANYING["names"]


def _models(folder: Path, name: str, depth: int) -> Iterator[ModelFile]:
    """name: of the model that the folder is, if it is one. Raises OSError at depth 0."""
    try:
        entries = _entries(folder)
    except OSError as error:
        if not depth:
            raise
        yield _no_file(name, "1", folder, f"The folder {folder.name} cannot be read: {_reason(error)}.")
        return
    if entries.described:
        yield _described(folder, name)
        for inner in entries.folders:
            if (inner / MLSERVER).is_file() and depth < MAX_DEPTH:
                yield from _models(inner, inner.name, depth + 1)
    elif _has_versions(entries, depth):
        yield from _versions(name, entries)
    elif depth and len(candidates := _candidates(entries.files)) and (not entries.folders or _recognised(candidates)):
        yield _picked(name, "1", folder)
    elif depth > MAX_DEPTH or not (entries.files or entries.folders):
        yield _no_file(name, "1", folder, NO_FILE.format(folder.name))
    else:
        yield from (_file(file.stem, "1", file) for file in entries.files)
        for inner in entries.folders:
            yield from _models(inner, inner.name, depth + 1)


def _single_model(root: Path, model_name: str) -> Iterable[ModelFile]:
    """Raises OSError."""
    entries = _entries(root)
    recognised = _recognised(_candidates(entries.files))
    if not entries.described and any(map(_is_version, entries.folders)):
        return _versions(model_name, entries)
    if not entries.described and (len(recognised) == 1 or (entries.files and not recognised and not entries.folders)):
        return [_picked(model_name, "1", root)]
    files = list(_models(root, model_name, 0))
    names = {file.model for file in files if not file.fault} or {file.model for file in files}
    if len(names) == 1:
        return [file._replace(model=model_name) if file.model in names else file for file in files]
    fault = f"MODEL_NAME names the model of a folder of one; this one holds {', '.join(sorted(names))}."
    return [*files, _no_file(model_name, "1", root, fault)]


def _has_versions(entries: _Entries, depth: int) -> bool:
    """True for the folder of a model with a folder for each version.

    The root is one only if it holds no other folder: a model there may have a number as its name.
    """
    if depth:
        described = any((folder / MLSERVER).is_file() for folder in entries.folders)
        return not described and any(VERSION.fullmatch(folder.name) for folder in entries.folders)
    return all(folder.name.isdigit() for folder in entries.folders) and any(map(_is_version, entries.folders))


def _is_version(folder: Path) -> bool:
    """True for a folder with the name of a version that holds files, and no settings that state another."""
    try:
        entries = _entries(folder)
    except OSError:
        return False
    return VERSION.fullmatch(folder.name) is not None and bool(entries.files) and not entries.described


def _versions(name: str, entries: _Entries) -> Iterator[ModelFile]:
    for inner in entries.folders:
        number = VERSION.fullmatch(inner.name)
        if number and 0 < int(number[1]) <= MAX_VERSION:
            yield _picked(name, inner.name, inner)
        else:
            fault = f"Folders of versions are named 1 to {MAX_VERSION}."
            yield _no_file(name, inner.name, inner, fault)._replace(version=NO_NUMBER)
    for file in _recognised(entries.files):
        fault = f"The file {file.name} lies beside folders of versions: move it into one, or remove it."
        yield _no_file(name, file.name, file, fault)._replace(version=NO_NUMBER)


def _described(folder: Path, name: str) -> ModelFile:
    source = folder / MLSERVER
    try:
        described = read_mlserver(source)
        is_folder = described.path.is_dir()
    except OSError as error:
        return _no_file(name, "1", source, f"{MLSERVER} cannot be read: {_reason(error)}.")
    except ValueError as error:
        return _no_file(name, "1", source, str(error))
    if described.name is None and name == described.version:  # the folder of a version within that of the model
        name = folder.parent.name
    name, version, path = described.name or name, described.version, described.path
    file = _picked(name, version, path) if is_folder else _file(name, version, path)
    return file._replace(source=source, options=described.options)


def _picked(name: str, label: str, folder: Path) -> ModelFile:
    """The model of a folder that holds the files of one version."""
    triton = read_triton(folder.parent)
    try:
        files = _candidates(_entries(folder).files, triton.file_name)
    except OSError as error:
        return _no_file(name, label, folder, f"The folder {folder.name} cannot be read: {_reason(error)}.")
    files = (_recognised(files) or files) if len(files) > 1 else files
    if not files:
        return _no_file(name, label, folder, NO_FILE.format(folder.name))
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        return _no_file(name, label, folder, f"The folder {folder.name} holds several files: {names}. Leave one.")
    return _file(name, label, files[0])._replace(source=folder, remarks=triton.remarks)


def _candidates(files: list[Path], file_name: str | None = None) -> list[Path]:
    """Those by which other servers know the model, if there are any."""
    if file_name is not None:
        return [file for file in files if file.name == file_name]
    for stem in STEMS:
        if named_files := [file for file in files if file.stem == stem]:
            return named_files
    return files


def _recognised(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if _is_model(file, _stamp(file))]


@lru_cache(4096)
def _is_model(file: Path, stamp: tuple[int, int, int] | None) -> bool:
    try:
        return stamp is not None and recognise_model(file.read_bytes()) is not None
    except OSError:
        return False


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """None for what is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # a path with U+0000 is none
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if S_ISREG(status.st_mode) else None


def _file(name: str, label: str, path: Path) -> ModelFile:
    stamp = _stamp(path)
    if stamp is not None:
        return ModelFile(name, label, path, path, stamp)
    fault = "is no file" if path.exists() else "leads nowhere" if path.is_symlink() else "does not exist"
    return _no_file(name, label, path, f"{path.name} {fault}.")


def _no_file(name: str, label: str, source: Path, fault: str) -> ModelFile:
    return ModelFile(name, printable(label), source, fault=fault)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _numbered(files: Iterable[ModelFile]) -> list[ModelFile]:
    """With the numbers of versions, and faults of names that no request can have, or that several files have."""
    versions: dict[str, list[ModelFile]] = defaultdict(list)
    for file in files:
        versions[file.model].append(file)
    return [_distinct(same) for model in versions.values() for same in _by_number(model)]


def _by_number(files: list[ModelFile]) -> Iterator[list[ModelFile]]:
    """Versions of one model that have the same number."""
    numbers = _numbers({file.label for file in files if file.version != NO_NUMBER})
    same: dict[int, list[ModelFile]] = defaultdict(list)
    for file in map(_named, files):
        if file.version == NO_NUMBER:
            yield [file._replace(version=0)]
        else:
            same[numbers[file.label]].append(file._replace(version=numbers[file.label]))
    yield from same.values()


def _numbers(labels: set[str]) -> dict[str, int]:
    """`3` and `v3` are version 3; other labels have the numbers that are left, in their order."""
    numbers = {label: int(match[1]) for label in labels if (match := VERSION.fullmatch(label))}
    numbers = {label: number for label, number in numbers.items() if 0 < number <= MAX_VERSION}
    free = (number for number in count(1) if number not in set(numbers.values()))
    return numbers | {label: next(free) for label in sorted(labels - set(numbers), key=_order)}


def _order(label: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"([0-9]{1,18})", label)]


def _distinct(files: list[ModelFile]) -> ModelFile:
    """The one, or a fault for several."""
    if len(files) == 1:
        return files[0]
    names = ", ".join(printable(f"{file.source.parent.name}/{file.source.name}") for file in files)
    fault = f"Several files are version {files[0].version} of this model: {names}. Leave one."
    return files[0]._replace(path=None, fault=fault)


def _named(file: ModelFile) -> ModelFile:
    fault = file.fault
    if not fault and not NAME.fullmatch(file.model):
        fault = (
            "Names of models have up to 100 of the characters a-z, 0-9, _ and -: rename it, or give it a name in "
            f"{MLSERVER}."
        )
    return file._replace(model=printable(file.model), fault=printable(fault))


def printable(text: str) -> str:
    """The text with ? for what JSON or a terminal cannot show, as bytes of a file name that are not UTF-8."""
    return "".join(character if character.isprintable() else "?" for character in text)
