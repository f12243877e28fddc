"""The columns of a request as the players among whom a score is shared out: all that is made of a column is its own."""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Labels
from app.ml.preparation.functions import Function, Powers
from app.ml.preparation.preparation import Preparation
from app.ml.preparation.text_columns import WithTexts


class Players(NamedTuple):
    """The inputs, and after them functions of several inputs, which belong to none of these."""

    names: tuple[str, ...]
    of_columns: Labels
    """(d,) the player of each column of the matrix."""


def players_of(preparation: Preparation) -> Players:
    """Indicators of a category, parts of a date, terms of a text and functions of one input are the input's own."""
    front, texts = (preparation.front, preparation.texts) if isinstance(preparation, WithTexts) else (preparation, ())
    terms = [np.full(len(text.terms), len(front.inputs) + number, np.intp) for number, text in enumerate(texts)]
    places = np.concatenate([_sources(front), *terms])
    several = np.flatnonzero(places < 0)
    places[several] = len(preparation.inputs) + np.arange(several.size)
    names = (front.layout.plain_names[place] for place in several.tolist())
    return Players((*(column.name for column in preparation.inputs), *names), places)


def _sources(preparation: Preparation) -> Labels:
    """(d,) the input that each column is made of alone; -1 for a function of several."""
    layout, names = preparation.layout, preparation.basis.inputs
    functions = [place for function in preparation.functions for place in _single(function, names)]
    sources = layout.sources.copy()
    sources[: layout.direct.size] = np.array([*range(len(names)), *functions], np.intp)[layout.direct]
    return sources


def _single(function: Function, names: tuple[str, ...]) -> list[int]:
    """For each column of a function the only input that it reads, or -1."""
    places = [names.index(name) for name in function.columns]
    if isinstance(function, Powers):
        return [places[term[0]] if len(set(term)) == 1 else -1 for term in function.terms]
    return [places[0] if len(places) == 1 else -1] * len(function.names)
