"""Settings of a model in a folder, as MLServer and Triton write them beside its files."""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.base.validated_copy import ValidatedCopy
from app.ml.contract.model_file_options import ALL, ModelFileOptions

MLSERVER, TRITON = "model-settings.json", "config.pbtxt"
FILE_NAME = re.compile(r'^\s*default_model_filename\s*:\s*"([^"/]+)"', re.MULTILINE)
THRESHOLD = re.compile(r'key\s*:\s*"threshold"\s*,?\s*value\s*:?\s*\{\s*string_value\s*:\s*"([^"]*)"')
DEFAULT_THRESHOLD = 0.5
"""Probability from which Triton predicts the second of two classes, as this service does."""


class _Extra(ValidatedCopy, BaseModel):
    """Parameters that MLServer passes on to a runtime as they are. Those of other runtimes are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    iterations: str | None = Field(None, pattern=r"^(best|[1-9][0-9]{0,8})$")
    """Boosting rounds from the first, or `best`: up to the best one of early stopping."""

    @property
    def options(self) -> ModelFileOptions:
        if self.iterations is None:
            return ALL
        return ModelFileOptions(best=True) if self.iterations == "best" else ModelFileOptions(int(self.iterations))


class _Parameters(ValidatedCopy, BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    uri: str | None = None
    version: str | None = None
    extra: _Extra | None = None


class _Settings(ValidatedCopy, BaseModel):
    name: str | None = None
    parameters: _Parameters | None = None


class Described(NamedTuple):
    """The part of MLServer's settings that counts here. `implementation` is a class of MLServer: it is not imported."""

    name: str | None
    version: str
    path: Path
    """File of the model, or the folder that holds it."""
    options: ModelFileOptions


def read_mlserver(file: Path) -> Described:
    """Raises OSError, and ValueError with a sentence."""
    try:
        settings = _Settings.model_validate_json(file.read_bytes())
        parameters = settings.parameters or _Parameters()
        address = urlsplit(parameters.uri or "")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{file.name}{where and f', {where}'}: {first['msg']}.") from None
    if address.scheme not in {"", "file"}:
        raise ValueError(f"{file.name}, parameters.uri: Only files of this machine are served.")
    path = file.parent / unquote(address.path) if address.scheme else file.parent / (parameters.uri or "")
    return Described(settings.name, parameters.version or "1", path, (parameters.extra or _Extra()).options)


class TritonSettings(NamedTuple):
    """The part of Triton's settings that counts here."""

    file_name: str | None = None
    remarks: tuple[str, ...] = ()


def read_triton(folder: Path) -> TritonSettings:
    """Nothing where there are none."""
    text = ""
    with suppress(OSError):
        text = (folder / TRITON).read_text("utf-8", "replace")
    name, threshold = FILE_NAME.search(text), THRESHOLD.search(text)
    remarks: tuple[str, ...] = ()
    if threshold and threshold[1] != str(DEFAULT_THRESHOLD):
        remarks = (f"The threshold of {TRITON} is not used: of two classes the likelier is predicted.",)
    return TritonSettings(name and name[1], remarks)
