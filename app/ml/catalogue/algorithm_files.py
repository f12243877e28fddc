"""Finds every file of `algorithms/`: adding one there is all it takes."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Annotated, Any, Literal, Union

from pydantic import Field, create_model
from typing_extensions import TypeAliasType

from app.base.errors import AlgorithmNotFound
from app.base.suggestions import did_you_mean
from app.ml import algorithms
from app.ml.contract.algorithm import Algorithm, Learner, Params
from app.ml.numerics.compiled_kernels import AnyKernel, kernels_reached_from, seconds_of

_EXAMPLES = re.compile(r"[.:]?(\s*>>>.*?(?=\n\s*\n|\Z))+", re.DOTALL)
"""Doctests, and the end of the sentence before them: who reads the catalogue has no use for them."""


@dataclass(frozen=True)
class Entry:
    """An algorithm under its name, with the parts of its file's docstring."""

    name: str
    algorithm: Algorithm[Any, Any]
    spec: type[Params]
    """The parameters with a required literal `name` beside them: a member of the request's union."""
    title: str
    gist: str
    """In three sentences at most."""
    method: str
    """Description of the method in full: paragraphs with an empty line between them."""
    use_when: str
    references: tuple[str, ...]

    def learner(self, params: Params) -> Params:
        """These parameters with the algorithm's name among them, as a learner inside another model has them."""
        return self.spec.model_validate({"name": self.name, **params.model_dump()})


def seconds_to_compile(names: Iterable[str]) -> float:
    """Rough time to compile all that algorithms of these names may use; others count nothing."""
    modules = [f"{algorithms.__name__}.{name}" for name in names if name in every_entry()]
    return sum(map(seconds_of, frozenset[AnyKernel]().union(*map(kernels_reached_from, modules))))


@cache
def every_entry() -> Mapping[str, Entry]:
    """All algorithms by name, in alphabetical order, with those whose models are only imported."""
    names = sorted(module.name for module in pkgutil.iter_modules(algorithms.__path__))
    modules = [importlib.import_module(f"{algorithms.__name__}.{name}") for name in names]
    entries = {entry.name: entry for entry in map(_entry, modules)}
    learner = _one_of("Learner", filter(_offered, entries.values()))
    several: Any = list
    meant: dict[Any, Any] = {
        Learner: learner,
        list[Learner]: several[learner],
        list[Learner] | None: several[learner] | None,
    }
    for entry in entries.values():
        for parameters in (entry.algorithm.params, entry.spec):
            parameters.model_rebuild(_types_namespace={"Learner": learner})
            for field in parameters.model_fields.values():  # pydantic leaves the forward reference there
                field.annotation = meant.get(field.annotation, field.annotation)
    return MappingProxyType(entries)


@cache
def catalogue() -> Mapping[str, Entry]:
    """The algorithms that a training can choose, by name, in alphabetical order."""
    return MappingProxyType({name: entry for name, entry in every_entry().items() if _offered(entry)})


def _offered(entry: Entry) -> bool:
    return entry.algorithm.offered


@cache
def any_algorithm() -> Any:
    """The type of any algorithm with its parameters: `Algorithm` in the OpenAPI document."""
    return _one_of("Algorithm", catalogue().values())


def _one_of(name: str, entries: Iterable[Entry]) -> Any:
    """The discriminated union of the entries by `name`; JSON schemas refer to it by the union's own name."""
    union: Any = Union[tuple(entry.spec for entry in entries)]  # noqa: UP007 - made from a tuple
    return TypeAliasType(name, Annotated[union, Field(discriminator="name")])


def find(name: str) -> Entry:
    """Raises AlgorithmNotFound, naming those there are."""
    try:
        return every_entry()[name]
    except KeyError:
        near = did_you_mean(name, catalogue())
        raise AlgorithmNotFound(f"No such algorithm{near} The algorithms are {', '.join(catalogue())}.") from None


def _entry(module: ModuleType) -> Entry:
    name = module.__name__.rpartition(".")[2]
    algorithm: Algorithm[Any, Any] = module.ALGORITHM
    title, *paragraphs = re.split(r"\n\s*\n", _EXAMPLES.sub(".", inspect.cleandoc(module.__doc__ or "")))
    sections = {"In short": "", "Use when": "", "References": ""}
    method = []
    for paragraph in paragraphs:
        head, colon, text = paragraph.partition(":")
        if colon and head in sections:
            sections[head] = _line(text)
        else:
            method.append(_line(paragraph))
    return Entry(
        name=name,
        algorithm=algorithm,
        spec=_spec(name, algorithm.params),
        title=_line(title),
        gist=sections["In short"],
        method="\n\n".join(method),
        use_when=sections["Use when"],
        references=tuple(part.strip(" .") for part in sections["References"].split(";") if part.strip(" .")),
    )


def _spec(name: str, params: type[Params]) -> type[Params]:
    members: dict[str, Any] = {"name": (Literal[name], Field(description="Name of the algorithm."))}
    return create_model(
        f"{params.__name__}Algorithm", __base__=params, __doc__=params.__doc__ or f"Parameters of `{name}`.", **members
    )


def _line(text: str) -> str:
    return " ".join(text.split())
