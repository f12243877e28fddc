"""Warnings about a training that has no fault, before any row is read."""

from collections.abc import Iterator, Mapping, Sequence

from app.ml.contract.columns import ColumnKind, TableColumn
from app.ml.preparation.request import MAX_LEVELS
from app.ml.training.planning.cost import closed_form
from app.ml.training.planning.groups import units_of
from app.ml.training.planning.train_spec import TrainSpec

MANY_FITS = 200
"""More are worth a warning."""


def plan_warnings(
    spec: TrainSpec,
    chosen: Sequence[TableColumn],
    columns_by_name: Mapping[str, TableColumn],
    usable: int,
    *,
    unlabelled: bool,
) -> Iterator[str]:
    limit = spec.preprocessing.max_levels
    for column in chosen:
        if column.kind == ColumnKind.CATEGORICAL and (column.distinct is None or column.distinct > limit):
            yield _many_categories(column, spec)
    if spec.target is not None and (missing := columns_by_name[spec.target].missing):
        use = "learned from as unlabelled rows" if unlabelled else "not used"
        yield f"{missing} rows without a target are {use}."
    fits = spec.validation.fits(units_of(spec.validation, columns_by_name, usable))
    if fits > MANY_FITS and not closed_form(spec, chosen):
        yield f"The model is fitted about {fits} times."
    if spec.validation.method == "kfold" and spec.validation.folds > usable:
        yield f"There are fewer rows than the {spec.validation.folds} requested folds."


def _many_categories(column: TableColumn, spec: TrainSpec) -> str:
    limit = spec.preprocessing.max_levels
    lead = f"Column {column.name!r} has more than {limit} categories"
    if spec.preprocessing.categories == "target":
        return f"{lead}: each is replaced by a mean of the target."
    more = "" if limit == MAX_LEVELS else f"raise preprocessing.max_levels (at most {MAX_LEVELS}), or "
    encode = 'set preprocessing.categories to "target", which encodes every category by the mean of the target'
    return f"{lead}: the rarest count as one, other. To keep them apart, {more}{encode}."


def batch_warnings(batch: int | None) -> Iterator[str]:
    if batch is not None:
        yield (
            f"Too large for the memory of a job: read in batches of about {batch} rows. Means, scales and ranges "
            "are those of all rows; medians, levels, metrics, any cross-validation and the starts of clusterings rest "
            "on random samples of about as many."
        )
