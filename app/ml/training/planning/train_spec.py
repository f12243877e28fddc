"""Request of a training: its columns, algorithm, preparation and validation."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from app.base.wire import Body
from app.ml.catalogue.algorithm_files import any_algorithm
from app.ml.contract.algorithm import Algorithm, Learner, Params, Task
from app.ml.contract.given_kinds import KindName
from app.ml.evaluation.validation import Validation
from app.ml.preparation.request import Preprocessing
from app.ml.training.planning.class_weights import ClassWeight
from app.ml.training.planning.relation_request import RelationRequest

if TYPE_CHECKING:
    AlgorithmSpec: TypeAlias = Learner
else:
    AlgorithmSpec = any_algorithm()


class TrainSpec(Body):
    """Columns, algorithm, preparation and validation of a training."""

    target: str | None = Field(
        None,
        description="Column to predict. For a clustering: a column of classes with which the clusters are compared, "
        "which the fit does not see. Null: the algorithm learns without a target.",
    )
    features: list[str] | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        description="Columns to learn from. Null: every column but the target, weights, sigma, exposure, offset, "
        "item, difficulty, the group and time of the validation, identifier-like ones, texts that "
        "`preprocessing.text` does not name, and, in a clustering without a target, those that look like a class.",
    )
    weights: str | None = Field(None, description="A numeric column of positive row weights.")
    sigma: str | None = Field(
        None,
        description="A numeric column with the error (standard deviation) of each row's target, in a regression: "
        "instead of weights, a row counts as 1/sigma². Algorithms with a test of goodness of fit (linear) take them "
        "as known.",
    )
    exposure: str | None = Field(
        None,
        description="A numeric column above 0 with the exposure of each row, such as the years of a policy or the "
        "population of a district, for losses of a logarithm (poisson, gamma, tweedie): predictions are proportional "
        "to it, and no feature is made of it. A prediction may leave it out; it is of exposure 1 then, a rate. "
        "Null: all rows are exposed alike.",
    )
    offset: str | None = Field(
        None,
        description="A numeric column that is added to the score of each row: to the number itself, or to its "
        "logarithm or log-odds, as the loss has it. No feature is made of it. A prediction may leave it out; it is 0 "
        "then. Null: nothing is added.",
    )
    item: str | None = Field(
        None,
        description="A column that names the rows, each by another value: neighbours and cuts of a dendrogram list "
        "these names beside row numbers. It is no feature unless `features` names it. Null: rows have numbers only.",
    )
    relations: RelationRequest | None = Field(
        None,
        description="Relations between the rows, for algorithms that learn from them. Null: rows are related by their "
        "columns only.",
    )
    difficulty: str | None = Field(
        None,
        description="A numeric column by which rows are learned in stages, the easiest (smallest) first: each stage "
        "starts from the model of the one before and has all easier rows. For algorithms that learn rows one after the "
        "other: `perceptron`, and `linear_sgd` with the solver online. It is no feature unless `features` names it, "
        "and no row that is learned from may lack it. Null: all rows are learned at once.",
    )
    difficulty_stages: int = Field(
        4,
        ge=1,
        le=1000,
        description="Number K of stages, where there is a column of `difficulty`: stage k has the k/K easiest rows, "
        "rounded up, and goes over them as often as the algorithm's `epochs`; 1 is a fit without stages.",
    )
    class_weight: ClassWeight | None = Field(
        None,
        description="Weights of classes in the fit, beside those of rows: `balanced`, by which every class counts as "
        'much as any other, or an object with the weight of each class by its label, such as {"yes": 5}; other classes '
        "have 1. Metrics are of the rows as they are; probabilities are those of rows that are so weighted. Null: all "
        "classes have 1.",
    )
    kinds: dict[str, KindName] = Field(
        {},
        description="Kinds of columns that are used as another kind than the dataset has them, by name: numbers as "
        "`categorical`, texts as `numeric` or `date` (`date:DMY` names the order, `numeric:comma` the decimal mark), "
        "categories as `text`, which is a feature only where `preprocessing.text` names it. Texts that cannot be read "
        "so are missing.",
    )
    task: Task | None = Field(
        None,
        description="Task. Null: of an algorithm that predicts a target, regression for a numeric one, else "
        "classification; the numbers 0 and 1 are classes too, unless the algorithm is one of least squares or predicts "
        "no classes. Of other algorithms their first task.",
    )
    algorithm: AlgorithmSpec = Field(description="Algorithm with its parameters.")
    preprocessing: Preprocessing = Field(
        Preprocessing(),
        description="Preparation of columns as numbers; by default each of its fields has its own default.",
    )
    validation: Validation = Field(
        Validation(), description="Validation of the model; by default each of its fields has its own default."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Same seed, same bytes.")

    @property
    def offset_role(self) -> Literal["exposure", "offset"] | None:
        """Role of the column that is part of the score; None: there is none."""
        return "exposure" if self.exposure is not None else None if self.offset is None else "offset"

    @property
    def offset_column(self) -> str | None:
        """Name of the column that is part of the score."""
        return self.offset if self.exposure is None else self.exposure

    def params_of(self, algorithm: Algorithm[Any, Any]) -> Params:
        """Those of the request; with a column of errors, by which rows weigh 1/σ², as the algorithm then takes them."""
        params: Params = algorithm.params.model_validate(self.algorithm.model_dump(exclude={"name"}))
        return params if self.sigma is None or algorithm.with_errors is None else algorithm.with_errors(params)
