"""Relations between rows, as a training request gives them."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypeAliasType

from app.references import DatasetReference
from app.wire import Body

MOST_SQUARE_ROWS = 10_000
"""Rows of a square table."""

MeaningName: TypeAlias = Annotated[
    Literal["dissimilarity", "similarity", "kernel"],
    Field(
        description="Meaning of the value of a pair. `dissimilarity`: 0 for equal rows and never negative; "
        "`similarity`: larger for rows that are more alike, never negative; `kernel`: an inner product."
    ),
]


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
        "each. Every pair stands there once, or twice with one value; pairs that are not there are unknown."
    )
    dataset: DatasetReference = Field(
        description="The id of the dataset of pairs, or its name: the newest dataset of that name."
    )
    first: str = Field(description="Column with the name of one row.")
    second: str = Field(description="Column with the name of the other row.")
    value: str = Field(description="Numeric column with the value of the pair.")
    meaning: MeaningName


if TYPE_CHECKING:
    RelationRequest: TypeAlias = SquareRelations | EdgeRelations
else:
    RelationRequest = TypeAliasType(
        "Relations", Annotated[SquareRelations | EdgeRelations, Field(discriminator="form")]
    )
"""One member per form."""
