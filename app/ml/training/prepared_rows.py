"""Prepared rows beside memory: made once from the rows of a table, then read as often as a fit needs them."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from app.ml.contract.algorithm import Data, Matrix, StreamedRows
from app.ml.contract.streamed_rows import Block

Beside: TypeAlias = Callable[[Iterator[pa.Table]], pa.Table]
"""Puts tables where they take no memory: `Source.beside`."""


def prepared_rows(parts: Iterator[Data], sample: Data, start: Any, beside: Beside) -> StreamedRows:
    """Blocks with the rows of `parts`, in their order, without a copy of them in memory.

    sample, start: of `StreamedRows`, prepared alike.
    """
    table = beside(map(_written, parts))
    return StreamedRows(lambda: map(_read, table.to_batches()), table.num_rows, sample, start)


def _written(part: Data) -> pa.Table:
    numbers = pa.array(part.x.reshape(-1))
    rows = pa.FixedSizeListArray.from_arrays(numbers, part.x.shape[1])
    return pa.table({"x": rows, "weights": part.weights})


def _read(batch: pa.RecordBatch) -> Block:
    rows = batch.column("x")
    x: Matrix = rows.flatten().to_numpy(zero_copy_only=True).reshape(len(rows), -1)
    weights = batch.column("weights").to_numpy(zero_copy_only=True)
    return Block(np.ascontiguousarray(x), weights)
