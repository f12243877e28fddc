"""Routers, one file for each resource: adding a file with a `router` is all it takes."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from app.api.edge.router import Router


def routers() -> Iterator[Router]:
    """The router of every file in this folder, in alphabetical order of the files."""
    for module in iter_modules(__path__):
        yield import_module(f"{__name__}.{module.name}").router
