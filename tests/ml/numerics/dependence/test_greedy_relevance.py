"""Battiti's MIFS: relevance less redundancy."""

import numpy as np
import pytest

from app.ml.numerics.dependence.contingency import mutual_information
from app.ml.numerics.dependence.greedy_relevance import mifs, shared

RNG = np.random.default_rng(0)
A, B = RNG.integers(0, 4, (2, 2000))
COPY = np.where(RNG.random(2000) < 0.9, A, RNG.integers(0, 4, 2000))
NOISE = RNG.integers(0, 4, 2000)
TARGET = 4 * A + B // 2
COLUMNS = [A, COPY, B, NOISE]
RELEVANCE = np.array([mutual_information(column, TARGET).value for column in COLUMNS])


def unheard(_):
    pass


def test_without_redundancy_it_ranks_by_information():
    assert mifs(COLUMNS, RELEVANCE, 0.0, unheard).order == [0, 1, 2, 3]


def test_a_copy_comes_after_what_is_new():
    found = mifs(COLUMNS, RELEVANCE, 1.0, unheard)
    assert found.order[:2] == [0, 2]
    assert found.scores[0] == RELEVANCE[0]
    assert found.scores[1] == pytest.approx(RELEVANCE[2] - mutual_information(A, B).value)
    third = found.order[2]
    redundancy = shared(COLUMNS[third], A) + shared(COLUMNS[third], B)
    assert found.scores[2] == pytest.approx(RELEVANCE[third] - redundancy)


def test_every_column_is_taken_once_and_progress_ends_at_1():
    done = []
    found = mifs(COLUMNS, RELEVANCE, 0.5, done.append)
    assert sorted(found.order) == [0, 1, 2, 3]
    assert done == [0.25, 0.5, 0.75, 1]


def test_redundancy_of_few_rows_is_less_its_bias_only_on_request():
    a, b = A[:50], B[:50]
    assert shared(a, b, bias_correction=False) > shared(a, b)
    plain = mifs([a, b], np.array([1.0, 0.9]), 1.0, unheard, bias_correction=False)
    assert plain.scores[1] == pytest.approx(0.9 - mutual_information(a, b, bias_correction=False).value)


def test_rows_that_lack_a_value_do_not_count():
    a, b = A.copy(), B.copy()
    a[:500], b[400:900] = -1, -1
    assert shared(a, b) == mutual_information(A[900:], B[900:]).value
    assert shared(np.full(2000, -1), b) == 0
    assert shared(np.zeros(2000, int), b) == 0
