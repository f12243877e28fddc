"""Levels of categorical columns, as a fit gets them after preparation."""

from app.ml.preparation.preparation import Preparation


def indicated(preparation: Preparation) -> int:
    """Inputs that have an indicator for each level."""
    if preparation.keeps_categories:
        return 0
    return sum(column.levels is not None for column in preparation.inputs) - len(preparation.encodings)


def words_of(preparation: Preparation) -> tuple[tuple[str, ...], ...]:
    """(d,) names of the levels of each column that keeps its categories, by code; none where no column does."""
    if not preparation.keeps_categories:
        return ()
    levels = {column.name: tuple(column.levels or ()) for column in preparation.inputs}
    return tuple(levels.get(name, ()) for name in preparation.layout.names)
