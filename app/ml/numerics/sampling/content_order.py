"""An order of rows that their contents determine: what is drawn by place then does not depend on the order in the file.

The hash of a row is a sum over its numbers that are not 0, each mixed with a key of its column, which is such a sum
over the column. So neither the order of the columns nor the form of the rows, sparse or not, changes the order.
"""

import numpy as np

from app.ml.contract.algorithm import Data, Labels, Matrix
from app.ml.contract.sparse_rows import sparse
from app.ml.numerics.sampling.row_draws import Words, mixed, number_words, row_words


def in_content_order(data: Data) -> Data:
    """The same rows in the order of `content_order`; rows with given relations stay in their places."""
    return data if data.relations is not None else data.take(content_order(data))


def content_order(data: Data) -> Labels:
    """(n,) places of the rows in the order of a hash of their contents.

    Rows of the same hash are ordered by their target, then by their numbers from the first column on; equal rows are
    neighbours.
    """
    words = _sums(data.x) ^ mixed(row_words(data.weights[:, None]))
    if np.unique(words).size == words.size:
        return np.argsort(words)
    target = data.y if data.y.size else np.zeros(words.size)
    return np.lexsort((_in_turn(data.x), target, words))


def _sums(x: Matrix) -> Words:
    """(n,) a hash of each row."""
    if (rows := sparse(x)) is not None:
        csr = rows.csr
        words, keys = mixed(number_words(csr.data)), np.zeros(x.shape[1], np.uint64)
        np.add.at(keys, csr.indices, words)
        sums = np.zeros(len(rows), np.uint64)
        np.add.at(sums, rows.row_numbers(), mixed(words ^ mixed(keys)[csr.indices]))
        return sums
    sums = np.zeros(len(x), np.uint64)
    for column in x.T:
        words = np.where(column == 0, np.uint64(0), mixed(number_words(column)))
        sums += np.where(column == 0, np.uint64(0), mixed(words ^ mixed(words.sum(keepdims=True))))
    return sums


def _in_turn(x: Matrix) -> Words:
    """(n,) a hash of each row by its numbers from the first column on."""
    rows = sparse(x)
    return (
        row_words(x) if rows is None else number_words(np.asarray(rows.csr @ np.sqrt(np.arange(2.0, x.shape[1] + 2))))
    )
