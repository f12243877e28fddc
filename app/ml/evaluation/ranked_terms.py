"""Terms of texts that matter most to a model, as a report names them."""

from pydantic import Field

from app.base.wire import Wire
from app.ml.contract.labels import Label


class TermWeight(Wire):
    """Term of a column of text with its weight."""

    column: str = Field(description="Name of the column of text.")
    term: str = Field(description="The term: a word, or a run of words or characters.")
    weight: float = Field(
        description="Its weight: the coefficient of its column of the matrix, or the logarithm of its share in the "
        "class or cluster, less the mean over all of them."
    )


class RankedTerms(Wire):
    """Terms with the largest and the smallest weights for one class, one cluster, or the target."""

    label: Label | None = Field(
        None,
        description="Class, of two the second one, or number of the cluster; null: of the target of a regression.",
    )
    largest: list[TermWeight] = Field(description="Terms with the largest weights above 0, in descending order.")
    smallest: list[TermWeight] = Field(description="Terms with the smallest weights below 0, in ascending order.")
