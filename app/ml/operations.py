"""Finds every file of `work/`: adding one there is all it takes."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, Union

from pydantic import Field
from typing_extensions import TypeAliasType

from app.ml import jobs
from app.ml.job import Kind, Request, Result


class Entry(NamedTuple):
    """A kind of work under its name."""

    name: str
    kind: Kind[Any]
    description: str
    """Its description, from its file's docstring."""


@cache
def kinds() -> Mapping[str, Entry]:
    """All kinds of work by name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(jobs.__path__))
    modules = {name: importlib.import_module(f"{jobs.__name__}.{name}") for name in names}
    return MappingProxyType(
        {name: Entry(name, module.KIND, inspect.cleandoc(module.__doc__ or "")) for name, module in modules.items()}
    )


def kind_of(request: Request) -> Entry:
    """The kind of work that a request asks for."""
    return next(entry for entry in kinds().values() if type(request) is entry.kind.request)


if TYPE_CHECKING:
    AnyResult: TypeAlias = Result
else:
    _results = tuple(entry.kind.result for entry in kinds().values() if entry.kind.result)
    # One member per file that has a result, distinguished by `kind`; a union of one is no union.
    AnyResult = TypeAliasType(
        "JobResult",
        Annotated[Union[_results], Field(discriminator="kind")]  # noqa: UP007 - made from a tuple
        if len(_results) > 1
        else Union[_results or (Result,)],  # noqa: UP007 - as above
    )
