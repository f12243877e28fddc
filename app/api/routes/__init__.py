"""Routers, one file for each resource: adding a file with a `router` is all it takes."""

from collections.abc import Collection, Iterator
from importlib import import_module
from pkgutil import walk_packages

from app.api.edge.router import Router


def routers(files: Collection[str] | None = None) -> Iterator[Router]:
    """Yield the router of every file in these rooms, or of the named files, in alphabetical order of the files."""
    modules = {
        module.name.rpartition(".")[2]: module.name
        for module in walk_packages(__path__, f"{__name__}.")
        if not module.ispkg
    }
    for file in sorted(modules):
        if files is None or file in files:
            yield import_module(modules[file]).router
