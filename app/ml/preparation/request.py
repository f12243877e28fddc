"""Preparation options of a request: how columns become numbers."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import TypeAliasType

from app.base.wire import Body
from app.ml.contract.model_reference import ModelRef
from app.ml.preparation.formula import MAX_LENGTH
from app.ml.preparation.text_request import TextColumn

MAX_DEGREE = 20
MAX_LEVELS = 1024


class Polynomial(Body):
    """Powers of columns and, by default, their products: all terms up to a total degree.

    With scaling they are powers of (value - middle) / unit, about the middle of the training range: the same
    polynomials, and columns that a fit can distinguish. Without scaling they are powers of the values.
    """

    kind: Literal["polynomial"] = Field(description="`polynomial`.")
    degree: int = Field(2, ge=1, le=MAX_DEGREE, description="Highest sum of exponents in one term; 1 adds none.")
    interactions: bool = Field(True, description="Products of different columns too; else powers of single columns.")
    columns: list[str] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="Columns to take powers of, which stay inputs themselves; null: every numeric input.",
    )


class Expression(Body):
    """A formula of columns: numbers, + - * / **, ( ), log log10 exp sqrt sin cos tan tanh abs min max.

    A column whose name is not one word stands between backticks: log(`horse power`).
    """

    kind: Literal["expression"] = Field(description="`expression`.")
    expression: str = Field(
        min_length=1,
        max_length=MAX_LENGTH,
        description="Formula of columns, for instance tanh(x ** 3), or price / max(area, 1).",
    )


class Picture(Body):
    """Features of a small picture whose pixels are columns: where its ink is as seen from its barycentre, along
    rows and along columns, and its edges. Where, how large and how bright it is drawn does not matter.
    """

    kind: Literal["picture"] = Field(description="`picture`.")
    columns: list[str] = Field(
        min_length=4, max_length=10_000, description="Gray values, row by row from the top; more is more ink."
    )
    width: int = Field(ge=2, le=5000, description="Pixels in a row.")
    strips: int = Field(8, ge=1, le=64, description="Into which the ink is divided along either side.")

    @model_validator(mode="after")
    def _whole(self) -> "Picture":
        if len(self.columns) % self.width:
            whole = f"{len(self.columns)} columns are no whole number of rows of {self.width} pixels"
            raise ValueError(f"{whole}: the last row is cut off.")
        return self


BasisFunction = TypeAliasType(
    "BasisFunction", Annotated[Polynomial | Expression | Picture, Field(discriminator="kind")]
)
DatePart: TypeAlias = Literal[
    "year", "month", "weekday", "hour", "elapsed_days", "cyclic_month", "cyclic_weekday", "cyclic_hour"
]
Parts: TypeAlias = list[DatePart]
Dates: TypeAlias = Parts | dict[str, Annotated[Parts, Field(min_length=1)]]
Linearising: TypeAlias = Literal["none", "log", "log1p", "sqrt", "square", "reciprocal"]


Limit: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
ConstantValue = TypeAliasType("ConstantValue", bool | float | Annotated[str, Field(min_length=1, max_length=1000)])


class Constant(Body):
    """One value for all missing values of a column."""

    constant: ConstantValue = Field(
        description="Value of the column's kind: a number, true or false, a category, or a date in ISO 8601 (UTC "
        "without an offset). A category that no row has becomes one where training rows lack a value."
    )


Strategy: TypeAlias = Literal["mean", "median", "most_frequent", "level"] | Constant
Imputation: TypeAlias = Literal["mean", "median"] | dict[str, Strategy]


ScalingName: TypeAlias = Literal["standard", "minmax", "none"]


class Preprocessing(Body):
    """Preparation of columns as numbers. Learned on the training rows, kept with the model, and applied unchanged."""

    scaling: ScalingName | None = Field(
        None,
        description="Scaling of numeric inputs and functions of them: `standard` to mean 0 and standard deviation "
        "1, `minmax` to the range from 0 to 1, `none` not at all. For a model without an intercept no column is "
        "shifted: `standard` divides by the root mean square, `minmax` by the largest absolute value. Null: "
        "`standard`, but `none` for coordinates of a `projection`, whose distances have a meaning, and for counts.",
    )
    imputation: Imputation = Field(
        "mean",
        description="Value for missing numbers, `mean` or `median`; missing categories get a level of their own. Or an "
        "object of columns by name: `mean`, `median` or `most_frequent` (of equally frequent values the smallest) of "
        "the training rows, a `constant`, or for categories `level`, a level of their own. A column that is named is "
        "filled before functions and parts of dates are made of it, and for algorithms that take missing values too; "
        "columns that are not named are treated as by `mean`.",
    )
    max_levels: int = Field(
        64,
        ge=2,
        le=MAX_LEVELS,
        description="Maximum number of categories of a column that are kept apart; `categories` is the treatment of a "
        "column that has more.",
    )
    categories: Literal["levels", "target"] = Field(
        "levels",
        description="Treatment of a categorical column of more than `max_levels` categories. `levels`: the rarest "
        "categories count as one, other. `target`: every category is replaced by the mean of the target among its "
        "training rows (of classes, the share of each class), shrunk to the mean of all rows; training rows get means "
        "of other rows only (cross-fitting in 5 parts). Needs a target.",
    )
    basis: list[BasisFunction] = Field(
        [], max_length=100, description="Functions of numeric inputs, as further columns for the algorithm."
    )
    dates: Dates = Field(
        [],
        description="Parts of dates, as columns in place of the date itself: of every date, or by the name of a "
        "column. Times are UTC: `month` is 1 to 12, `weekday` 0 (Monday) to 6, `hour` 0 to 23, `elapsed_days` counts "
        "from 1970 with a fraction; `cyclic_month`, `cyclic_weekday` and `cyclic_hour` are the sine and cosine of "
        "their place in the year, week or day. Where no row has a time of day, hours are left out for every date, and "
        "refused for a named one. Empty: a date is one number, its seconds since 1970.",
    )
    keep_inputs: bool = Field(True, description="Keeps inputs that expressions and pictures read as columns too.")
    undefined: Literal["refuse", "impute"] = Field(
        "refuse",
        description="Training rows for which a function has no value, as the logarithm of 0: refuse them, or take the "
        "value for missing. In predictions it counts as missing, and is flagged.",
    )
    text: dict[str, TextColumn] = Field(
        {},
        max_length=100,
        description="Columns of text to learn from, by name, each with its terms: a word, or run of words or "
        "characters, becomes a column of counts or weighted counts; `{}` takes the defaults. The matrix is then "
        "sparse, which only some algorithms take. A missing text counts as an empty one, without terms.",
    )
    projection: ModelRef | None = Field(
        None,
        description="A version of a model that is a projection: its inputs are read, prepared as in its own training, "
        "and its coordinates become the inputs of the algorithm. It is not fitted again. Only in training. Null: none.",
    )
    target: Linearising = Field(
        "none",
        description="Function of a regression's target that is fitted, and turned back in predictions. What "
        "is least in the function's units, such as the squared error of the logarithm, is not so "
        "in the target's: predictions of log are medians, below the mean.",
    )
    target_minimum: Limit | None = Field(
        None,
        description="Regression only: smallest value that the target can take; prediction intervals do not go below "
        "it, though predictions may. Null: 0 if `detect_target_minimum` finds it, else no limit.",
    )
    detect_target_minimum: bool = Field(
        True,
        description="Regression only: whether a null `target_minimum` counts as 0 where there are at least 50 training "
        "rows and none has a target below 0.",
    )
    target_maximum: Limit | None = Field(
        None,
        description="Regression only: largest value that the target can take; prediction intervals do not go above "
        "it. Null: no limit.",
    )

    @property
    def scale(self) -> ScalingName:
        """The scaling, by default that of the columns: coordinates stay as the projection made them."""
        return self.scaling or ("standard" if self.projection is None else "none")

    @model_validator(mode="after")
    def _ascending(self) -> "Preprocessing":
        least, greatest = self.target_minimum, self.target_maximum
        if least is not None and greatest is not None and least >= greatest:
            raise ValueError("target_maximum is not above target_minimum.")
        return self
