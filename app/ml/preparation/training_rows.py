"""Rows read for training: their raw matrix in the codes of a preparation, from those of the whole table."""

from collections.abc import Mapping

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.preparation.arrow_columns import Raw, codes
from app.ml.preparation.level_codes import LevelCodes


def code_tables(level_codes: LevelCodes, raw: Raw) -> dict[int, Vector]:
    """By place, the own code of each value of a categorical input."""
    return {
        place: codes(words, level_codes.vocabularies[place], level_codes.absent[place])
        for place, words in enumerate(raw.vocabularies)
        if words is not None
    }


def coded(raw: Raw, rows: Labels, tables: Mapping[int, Vector]) -> Matrix:
    """The raw matrix of these rows. tables: from `code_tables`."""
    batch = raw.values[rows]
    for place, table in tables.items():
        present = ~np.isnan(batch[:, place])
        batch[present, place] = table[batch[present, place].astype(np.intp)]
    return batch
