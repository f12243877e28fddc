"""Options of a request for columns of text: which terms a document has, and how they are counted."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.base.wire import Body

MOST_TERMS = 1 << 18
MAX_TERM_UNITS = 10
"""Units of a term at most."""


class TextColumn(Body):
    """A column of documents as counts, or weighted counts, of their terms: words, or runs of words or characters.

    With the same settings they are the terms and numbers of scikit-learn's CountVectorizer and TfidfVectorizer.
    """

    analyzer: Literal["word", "char", "char_wb"] = Field(
        "word",
        description="Units of the terms: `word` takes words of at least two letters, digits or underscores, `char` "
        "characters, `char_wb` characters within words, each with a space on either side.",
    )
    ngram_range: Annotated[list[Annotated[int, Field(ge=1, le=MAX_TERM_UNITS)]], Field(min_length=2, max_length=2)] = (
        Field(
            [1, 1],
            description="Smallest and largest number of consecutive units in a term: [1, 2] takes pairs as well.",
        )
    )
    lowercase: bool = Field(
        True, description="Take upper case for lower case. Texts are brought into Unicode's form NFC anyway."
    )
    stop_words: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        [], max_length=10_000, description="Words that are left out, before runs of words are made; of `word` only."
    )
    min_df: float = Field(
        1,
        gt=0,
        le=1e9,
        description="Smallest number of training documents that have a term of the vocabulary; below 1 a share of "
        "them.",
    )
    max_df: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="Largest number of training documents that have a term of the vocabulary; below 1 a share of "
        "them. Null: no limit.",
    )
    max_features: int = Field(
        20_000,
        ge=1,
        le=MOST_TERMS,
        description="Maximum number of terms of the vocabulary: those with the most occurrences in the training "
        "documents stay, of equally many the first by their bytes.",
    )
    weighting: Literal["counts", "tfidf"] | None = Field(
        None,
        description="Numbers of the matrix: `counts`, or `tfidf`, counts times log((1 + n)/(1 + d)) + 1 for a term "
        "that d of n training documents have. Null: `counts` for algorithms that learn from counts, else `tfidf`.",
    )
    sublinear_tf: bool = Field(False, description="Take 1 + log(count) in place of a count; of `tfidf` only.")
    norm: Literal["l1", "l2"] | None = Field(
        "l2",
        description="Length of each document that is 1: the sum of its numbers (`l1`), or the root of the sum of their "
        "squares (`l2`). Null: lengths stay. Of `tfidf` only.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.ngram_range[0] > self.ngram_range[1]:
            raise ValueError("the first number of ngram_range is above the second.")
        if self.stop_words and self.analyzer != "word":
            raise ValueError("stop_words are words: leave them out, or set analyzer to word.")
        for name, limit in (("min_df", self.min_df), ("max_df", self.max_df)):
            if limit is not None and limit > 1 and limit != int(limit):
                raise ValueError(f"{name} is a share below 1, or a whole number of documents.")
        if self.weighting == "counts" and (self.sublinear_tf or self.norm == "l1"):
            raise ValueError("sublinear_tf and norm are of tfidf: leave them out, or set weighting to tfidf.")
        return self
