"""Reference of a training: distributions of its rows and predictions, that later rows are compared with."""

from app.ml.evaluation.splits import evenly
from app.ml.models.model import Model
from app.ml.monitoring.reference import Reference, prediction_reference, raw_reference
from app.ml.training.drawn_rows import DrawnRows
from app.ml.training.fitting.fit import Fitted

MAX_PREDICTED_ROWS = 5_000


def training_reference(drawn: DrawnRows, fitted: Fitted, model: Model) -> Reference | None:
    """Inputs of the rows to learn from, of a large table those of its sample, and predictions of those held out, or of
    the others where none is. model: without a projection before it. None for models of items.
    """
    training_set, split = drawn.training_set, drawn.split
    if training_set.by_item or training_set.is_square:
        return None
    held = split.test if split.test.size else split.train
    raw = training_set.raw_matrix(fitted.preparation, held[evenly(held.size, MAX_PREDICTED_ROWS)])
    return Reference(
        rows=split.train.size,
        columns=raw_reference(training_set.raw, training_set.target.rows[split.train]),
        predictions=prediction_reference(model, model.predict_raw(raw)),
    )
