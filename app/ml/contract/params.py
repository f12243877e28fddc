"""Hyperparameters of an algorithm, and parameters that are learners themselves."""

from typing import TYPE_CHECKING, Annotated, Any, ForwardRef, Literal, Self

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from app.base.wire import Body
from app.ml.contract.data import JSON
from app.ml.contract.task import Task


class Params(Body):
    """The hyperparameters of one algorithm: each with a default, bounds and a sentence."""


if TYPE_CHECKING:

    class Learner(Params):
        name: str
else:
    Learner = ForwardRef("Learner")
"""The type of a parameter that is itself an algorithm with its parameters: `{"name": "ridge", "l2": 2.0}`.
The catalogue names them, once all files are known."""


def _one_fault(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Not one for each type it is not."""
    try:
        return handler(value)
    except ValidationError:
        raise PydanticCustomError("max_features", NO_FEATURES) from None


OTHER_MEMBERS = "knn", "random_forest"
"""Members of an ensemble that names none, beside a linear one."""
NO_FEATURES = "Must be a number of columns from 1 on, or a share of them above 0 and up to 1.0."
MaxFeatures = TypeAliasType(
    "MaxFeatures",
    Annotated[
        Annotated[int, Field(ge=1, le=1_000_000)] | Annotated[float, Field(gt=0, le=1)], WrapValidator(_one_fault)
    ],
)
"""Type of `max_features`: an integer counts columns, a number with a decimal point is a share of all of them."""


Voting = Annotated[
    Literal["soft", "hard"],
    Field(
        description="Combination of members in classification. `soft`: the mean of their probabilities; `hard`: each "
        "has one vote. Regression always takes the mean."
    ),
]
MinProbability = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Smallest probability, or share of votes, of the best class; below it the committee abstains. "
        "Unused in regression.",
    ),
]
MinMargin = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Smallest lead of the best class over the second; below it the committee abstains. Unused in "
        "regression.",
    ),
]


def feature_count(wanted: float, columns: float) -> int:
    """Number of columns that a `MaxFeatures` stands for: at least one, at most all."""
    count = wanted if isinstance(wanted, int) else round(wanted * columns)
    return int(min(max(1, count), columns))


def learner(description: str, *names: str, **default: JSON) -> Any:
    """The field of a `Learner`, with its default; with names, of a list of learners."""
    if names:
        messages = f"{description} By default {', '.join(names)}."
        many = [{"name": name} for name in names]
        return Field(many, validate_default=True, min_length=1, max_length=50, description=messages)
    return Field(default, validate_default=True, description=f"{description} By default {default['name']}.")


class EnsembleParams(Params):
    """Parameters of members of different kinds, which are such as give probabilities where a task is of classes."""

    estimators: list[Learner] | None = Field(
        None,
        min_length=1,
        max_length=50,
        description="Members, whose predictions are combined. Null: ridge, knn and random_forest for numbers; "
        "logistic, knn and random_forest for classes.",
    )

    @property
    def learners(self) -> list[Learner]:
        """The members of parameters that are of a task, see `for_task`."""
        assert self.estimators is not None  # noqa: S101 - a plan states them
        return self.estimators

    def for_task(self, task: Task) -> Self:
        """The same parameters with the members of this task, where none are named."""
        if self.estimators is not None:
            return self
        names = ("logistic" if task.of_classes else "ridge", *OTHER_MEMBERS)
        named = {"estimators": [{"name": name} for name in names]} | self.model_dump(include={"name"})
        return self.model_copy(update={"estimators": self.model_validate(named).estimators})
