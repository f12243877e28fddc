"""Finds every file of `online/`: adding one there is all it takes."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union

from pydantic import Field, create_model
from typing_extensions import TypeAliasType

from app.ml import online
from app.ml.contract.algorithm import Params
from app.ml.online_learner import OnlineLearner


class LearnerEntry(NamedTuple):
    """A learner under its name."""

    name: str
    learner: OnlineLearner[Any, Any]
    spec: type[Params]
    """The parameters with a required literal `name` beside them."""
    gist: str
    """In three sentences at most."""


@cache
def learner_entries() -> Mapping[str, LearnerEntry]:
    """All learners by name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(online.__path__))
    return MappingProxyType({name: _entry(name) for name in names})


def _entry(name: str) -> LearnerEntry:
    module = importlib.import_module(f"{online.__name__}.{name}")
    params = module.LEARNER.params
    members: dict[str, Any] = {"name": (Literal[name], Field(description="Name of the learner."))}
    made: Any = create_model
    spec: type[Params] = made(f"{params.__name__}Learner", __base__=params, __doc__=params.__doc__, **members)
    summary = re.search(r"In short: (.*?)\n\n", inspect.cleandoc(module.__doc__ or ""), re.DOTALL)
    return LearnerEntry(name, module.LEARNER, spec, " ".join(summary[1].split()) if summary else "")


if TYPE_CHECKING:

    class AnyLearner(Params):
        name: str
else:
    AnyLearner = TypeAliasType(
        "OnlineLearner",
        Annotated[
            Union[tuple(entry.spec for entry in learner_entries().values())],  # noqa: UP007 - made from a tuple
            Field(discriminator="name"),
        ],
    )
