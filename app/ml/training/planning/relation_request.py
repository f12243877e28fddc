"""Relations between rows, as a training request gives them."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypeAliasType

from app.base.references import DatasetReference
from app.base.wire import Body

MOST_SQUARE_ROWS = 10_000
"""Rows of a square table."""

MeaningName: TypeAlias = Annotated[
    Literal["dissimilarity", "similarity", "kernel"],
    Field(
        description="Meaning of the value of a pair. `dissimilarity`: 0 for equal rows and never negative; "
        "`similarity`: larger for rows that are more alike, never negative; `kernel`: an inner product."
    ),
]


RelatedDataset: TypeAlias = Annotated[
    DatasetReference,
    Field(description="The id of the dataset of pairs, or its name: the newest dataset of that name."),
]
First: TypeAlias = Annotated[str, Field(description="Column with the name of one row.")]
Second: TypeAlias = Annotated[str, Field(description="Column with the name of the other row.")]


class SquareRelations(Body):
    """The dataset is a square table, with a column for every row."""

    form: Literal["square"] = Field(
        description="`square`: the dataset itself has a value for every pair of rows, in as many numeric columns as it "
        f"has rows, in their order; at most {MOST_SQUARE_ROWS}. It is symmetric and used as it is, without "
        "preprocessing. A row to predict has its values beside the training rows."
    )
    meaning: MeaningName


class EdgeRelations(Body):
    """Another dataset lists pairs of rows, each with a value."""

    form: Literal["edges"] = Field(
        description="`edges`: another dataset lists pairs of rows, by their names in the column `item`, with a value "
        "each. Every pair stands there once, or more often with one value, unless `duplicates` averages several; pairs "
        "that are not there are unknown."
    )
    dataset: RelatedDataset
    first: First
    second: Second
    value: str = Field(description="Numeric column with the value of the pair; null: unknown.")
    weight: str | None = Field(
        None,
        description="Numeric column with the weight of the pair, at least 0, for algorithms that take one (`smacof`); "
        "a pair of weight 0 is as one that is unknown. Null: every pair has the weight 1.",
    )
    duplicates: Literal["error", "mean"] = Field(
        "error",
        description="Treatment of a pair with several values, such as the ratings of several people. `error`: it is "
        "refused; `mean`: its value is their mean, by their weights, and its weight the sum of these.",
    )
    meaning: MeaningName

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the other dataset by the field that names them."""
        named = {"first": self.first, "second": self.second, "value": self.value}
        return named if self.weight is None else named | {"weight": self.weight}


class PairRelations(Body):
    """Another dataset lists pairs of rows that must belong together, or cannot."""

    form: Literal["pairs"] = Field(
        description="`pairs`: another dataset lists pairs of rows, by their names in the column `item`, that must "
        "belong together or cannot. Rows that must be with the same row must be together; pairs that contradict each "
        "other are refused."
    )
    dataset: RelatedDataset
    first: First
    second: Second
    kind: str = Field(description="Column whose cells are `must` or `cannot`.")
    weight: str | None = Field(
        None, description="Numeric column with the weight of the pair, above 0; null: every pair has the weight 1."
    )

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the other dataset by the field that names them."""
        named = {"first": self.first, "second": self.second, "kind": self.kind}
        return named if self.weight is None else named | {"weight": self.weight}

    @property
    def meaning(self) -> Literal["constraint"]:
        return "constraint"


if TYPE_CHECKING:
    RelationRequest: TypeAlias = SquareRelations | EdgeRelations | PairRelations
else:
    RelationRequest = TypeAliasType(
        "Relations", Annotated[SquareRelations | EdgeRelations | PairRelations, Field(discriminator="form")]
    )
"""One member per form."""
