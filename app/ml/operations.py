"""Finds every kind of job, query, plot and calculator: adding a file to its folder is all it takes."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from pydantic import BaseModel

from app.base.wire import Wire
from app.ml import jobs, plots, queries, theory
from app.ml.kinds.job import Kind, Request
from app.ml.kinds.plot import Plot
from app.ml.kinds.query import Query, Subject
from app.ml.models.model import Model


class Entry(NamedTuple):
    """A kind of job under its name."""

    name: str
    kind: Kind[Any]
    description: str
    """Its description, from its file's docstring."""


class QueryEntry(NamedTuple):
    """A query under its name."""

    name: str
    query: Query[Any]
    description: str
    """Its description, from its file's docstring."""

    def run(self, subject: Subject, request: BaseModel, options: Mapping[str, Any]) -> Wire:
        """Raises the query's refusal for a model that does not offer it."""
        if not self.query.offered(subject.model):
            others = ", ".join(offers(subject.model))
            raise self.query.refusal(f"{subject.model.name} does not offer the query {self.name}. It offers: {others}.")
        return self.query.run(subject, request, **options)


class PlotEntry(NamedTuple):
    """A plot under its name."""

    name: str
    plot: Plot
    description: str
    """Its description, from its file's docstring."""


@cache
def kinds() -> Mapping[str, Entry]:
    """All kinds of job by name, in alphabetical order."""
    entries = (Entry(file.KIND.name or name, file.KIND, text) for name, file, text in _files(jobs))
    return MappingProxyType({entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name)})


@cache
def kind_records() -> Mapping[str, Kind[Any]]:
    """The records of all kinds of job by name."""
    return MappingProxyType({name: entry.kind for name, entry in kinds().items()})


@cache
def query_entries() -> Mapping[str, QueryEntry]:
    """All queries by name, in alphabetical order."""
    return MappingProxyType({name: QueryEntry(name, file.QUERY, text) for name, file, text in _files(queries)})


@cache
def calculator_entries() -> Mapping[str, QueryEntry]:
    """All calculators of learning theory by name, in alphabetical order."""
    return MappingProxyType({name: QueryEntry(name, file.QUERY, text) for name, file, text in _files(theory)})


@cache
def plot_entries() -> Mapping[str, PlotEntry]:
    """All plots by name, in alphabetical order."""
    return MappingProxyType({name: PlotEntry(name, file.PLOT, text) for name, file, text in _files(plots)})


def offers(model: Model) -> list[str]:
    """Names of the queries that a model offers."""
    entries = query_entries().values()
    return [entry.name for entry in entries if entry.query.path is None and entry.query.offered(model)]


def _files(folder: ModuleType) -> Iterator[tuple[str, Any, str]]:
    """Name, module and docstring of every file, in alphabetical order."""
    for name in sorted(module.name for module in pkgutil.iter_modules(folder.__path__)):
        file = importlib.import_module(f"{folder.__name__}.{name}")
        yield name, file, inspect.cleandoc(file.__doc__ or "")


def kind_of(request: Request) -> Entry:
    """The kind of job that a request is for."""
    return next(entry for entry in kinds().values() if type(request) is entry.kind.request)
