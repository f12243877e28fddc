"""Routers, one file for each resource: adding a file with a `router` is all it takes."""

from collections.abc import Collection, Iterator
from importlib import import_module
from pkgutil import iter_modules

from app.api.edge.router import Router


def routers(files: Collection[str] | None = None) -> Iterator[Router]:
    """The router of every file in this folder, or of these, in alphabetical order of the files."""
    for module in iter_modules(__path__):
        if files is None or module.name in files:
            yield import_module(f"{__name__}.{module.name}").router
