"""Terms that a model knows of a column of text, learned from its training documents, and the numbers of documents.

References: tf-idf as scikit-learn's TfidfVectorizer has it; Salton & Buckley (1988), Inf. Process. Manag. 24:513.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from app.base.errors import InvalidData
from app.ml.contract.algorithm import Labels, Vector
from app.ml.contract.sparse_rows import SparseRows, stacked
from app.ml.preparation.text_request import TextColumn
from app.ml.preparation.text_terms import blocks, terms_of


@dataclass(frozen=True)
class Vocabulary:
    """Columns of the matrix that stand for a column of text, one for each term, ascending by the bytes of the term."""

    column: str
    how: TextColumn
    """With a weighting."""
    encoded: bytes
    """The terms in UTF-8, one after the other."""
    ends: Labels
    """(d,) where each of them ends there."""
    idf: Vector
    """(d,) factor of the counts of each term, 1 where there is none."""
    left_out: int = 0
    """Terms that were frequent enough but too many; not stored."""

    @classmethod
    def learn(cls, column: str, how: TextColumn, documents: pa.Array) -> Self:
        """Learned from these training documents (n,). Raises InvalidData where no term is left."""
        whole, n = pa.concat_tables(_frequencies(block, how) for block in blocks(documents)), len(documents)
        whole = whole.group_by("term", use_threads=False).aggregate([("having", "sum"), ("times", "sum")])
        whole = whole.sort_by("term")  # by bytes
        having = whole["having_sum"].to_numpy()
        least = how.min_df * n if how.min_df < 1 else how.min_df
        most = n if how.max_df is None else how.max_df * n if how.max_df < 1 else how.max_df
        used_terms = np.flatnonzero((having >= max(1, least)) & (having <= most))
        if not used_terms.size:
            raise InvalidData(
                f"The training documents of the column {column!r} have no terms, or none within min_df and max_df of "
                "preprocessing.text."
            )
        times = whole["times_sum"].to_numpy()[used_terms]
        most_frequent = used_terms[np.sort(np.argsort(-times, kind="stable")[: how.max_features])]
        idf = np.ones(most_frequent.size)
        if how.weighting == "tfidf":
            idf += np.log((1 + n) / (1 + having[most_frequent]))
        encoded = [term.encode() for term in whole["term"].take(pa.array(most_frequent)).to_pylist()]
        ends = np.cumsum([len(term) for term in encoded], dtype=np.intp)
        return cls(column, how, b"".join(encoded), ends, idf, used_terms.size - most_frequent.size)

    @cached_property
    def terms(self) -> list[str]:
        """The terms by their column."""
        starts = [0, *self.ends[:-1].tolist()]
        return [self.encoded[a:b].decode() for a, b in zip(starts, self.ends.tolist(), strict=True)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {term: place for place, term in enumerate(self.terms)}

    @property
    def names(self) -> tuple[str, ...]:
        """(d,) of the columns."""
        return tuple(f"{self.column}: {term}" for term in self.terms)

    def counts(self, documents: pa.Array) -> SparseRows:
        """(n, d) of documents; terms that the vocabulary does not have are left out."""
        return stacked([self._known(block) for block in blocks(documents)])

    def _known(self, documents: pa.Array) -> SparseRows:
        terms = terms_of(documents, self.how)
        places = np.array([self._places.get(name, -1) for name in terms.names.to_pylist()], np.intp)
        columns = places[terms.codes]
        is_known = columns >= 0
        rows, columns = terms.documents[is_known], columns[is_known]
        return SparseRows.of(np.ones(rows.size), rows, columns, (len(documents), len(self.terms)))

    def numbers(self, counts: SparseRows) -> SparseRows:
        """(n, d) the numbers of the matrix, from counts."""
        how = self.how
        if how.weighting != "tfidf":
            return counts
        matrix, rows = counts.csr, counts.row_numbers()
        values = (1 + np.log(matrix.data) if how.sublinear_tf else matrix.data) * self.idf[matrix.indices]
        if how.norm is not None:
            sizes = counts.row_sums(values * values if how.norm == "l2" else values)
            values = values / (np.sqrt(sizes) if how.norm == "l2" else sizes)[rows]
        return counts.map(lambda _: values)

    def is_sound(self) -> bool:
        """True if the parts fit together, as they may not in a stored one."""
        sizes = np.diff(self.ends, prepend=0)
        whole = self.ends.dtype == np.intp and self.ends.ndim == 1 and self.ends.size > 0 and bool((sizes > 0).all())
        if not whole or self.idf.shape != self.ends.shape or self.ends[-1] != len(self.encoded):
            return False
        return (
            self.idf.dtype == np.float64 and bool(np.isfinite(self.idf).all()) and self.terms == sorted(set(self.terms))
        )


def _frequencies(documents: pa.Array, how: TextColumn) -> pa.Table:
    """Each term with the number of documents that have it, and of its occurrences."""
    terms, n = terms_of(documents, how), len(documents)
    counts = SparseRows.of(np.ones(terms.codes.size), terms.documents, terms.codes, (n, len(terms.names))).csr
    having, times = (np.bincount(places, minlength=len(terms.names)) for places in (counts.indices, terms.codes))
    return pa.table({"term": terms.names, "having": having, "times": times})
