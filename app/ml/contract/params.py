"""Hyperparameters of an algorithm, and parameters that are learners themselves."""

from typing import TYPE_CHECKING, Any, ForwardRef

from pydantic import Field

from app.ml.contract.data import JSON
from app.wire import Body


class Params(Body):
    """The hyperparameters of one algorithm: each with a default, bounds and a sentence."""


if TYPE_CHECKING:

    class Learner(Params):
        name: str
else:
    Learner = ForwardRef("Learner")
"""The type of a parameter that is itself an algorithm with its parameters: `{"name": "ridge", "l2": 2.0}`.
The catalogue says which there are, once all files are known."""


def learner(description: str, *names: str, **default: JSON) -> Any:
    """The field of a `Learner`, with its default; with names, of a list of learners."""
    if names:
        said = f"{description} By default {', '.join(names)}."
        many = [{"name": name} for name in names]
        return Field(many, validate_default=True, min_length=1, max_length=50, description=said)
    return Field(default, validate_default=True, description=f"{description} By default {default['name']}.")
