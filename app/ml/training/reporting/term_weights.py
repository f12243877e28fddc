"""The terms of texts with the largest weights in a fit, for its report."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.evaluation.ranked_terms import RankedTerms, TermWeight
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.text_columns import WithTexts
from app.ml.training.fitting.score_labels import score_labels
from app.ml.training.rows.training_set import TrainingSet

SHOWN = 20
"""Terms of a list."""
MOST_LABELS = 50
"""Classes or clusters with terms in a report, the first ones."""


def ranked_terms(
    training_set: TrainingSet, rows: Labels, state: Any, preparation: Preparation
) -> list[RankedTerms] | None:
    """rows: learned from. None of a model without texts, and where the algorithm has no weights of columns."""
    weights = _weights(training_set, state)
    if not isinstance(preparation, WithTexts) or weights is None:
        return None
    scores = weights.shape[1]
    codes = training_set.target.codes
    labels: Any = range(scores) if codes is None else score_labels(training_set.classes, codes[rows], scores)
    if training_set.task.of_numbers or labels is None:
        labels = [None] * scores
    texts = preparation.texts
    owners = np.repeat(np.arange(len(texts)), [len(text.terms) for text in texts])
    terms = [term for text in texts for term in text.terms]
    of_terms = weights[len(weights) - len(terms) :]

    def named(values: Vector) -> Iterator[TermWeight]:
        for place in np.argsort(-values, kind="stable")[:SHOWN].tolist():
            if values[place] > 0:
                yield TermWeight(column=texts[owners[place]].column, term=terms[place], weight=float(values[place]))

    return [
        RankedTerms(
            label=label,
            largest=[*named(values)],
            smallest=[term.model_copy(update={"weight": -term.weight}) for term in named(-values)],
        )
        for label, values in zip(labels, of_terms.T[:MOST_LABELS], strict=False)
    ]


def vocabulary_warnings(preparation: Preparation) -> Iterator[str]:
    """Vocabularies that are cut."""
    for text in preparation.texts if isinstance(preparation, WithTexts) else ():
        if text.left_out:
            yield (
                f"Column {text.column!r} has {text.left_out + len(text.terms)} terms; the {len(text.terms)} most "
                "frequent ones are kept, by max_features of preprocessing.text."
            )


def _weights(training_set: TrainingSet, state: Any) -> Matrix | None:
    """(d, s) of the columns."""
    algorithm = training_set.algorithm
    if algorithm.terms is not None:
        return algorithm.terms(training_set.params, state)
    return None if algorithm.linear is None else algorithm.linear(state).coef
