"""Ratio projections against the generalised eigenvalue problem, formed pair by pair."""

import itertools

import numpy as np
import pytest
import scipy
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from app.ml.algorithms import ratio_projection
from app.ml.contract.algorithm import Context, Data, Meaning, TargetKind, Task
from app.ml.contract.relations import Edges, Relations

IRIS = datasets.load_iris()


def fitted(x, y, weights=None, pairs=None, **params):
    relations = None if pairs is None else Relations(Meaning.CONSTRAINT, edges=pairs)
    data = Data.of(Task.PROJECTION, x, y, weights=weights, relations=relations, target=TargetKind.CLASSES)
    return ratio_projection.fit(ratio_projection.RatioProjection(**params), data, Context.of(0))


def forms(x, y, weights, extra=None):
    """Sums over pairs that belong apart, and together."""
    apart, together = np.zeros((2, x.shape[1], x.shape[1]))
    for i, j in itertools.combinations(range(len(x)), 2):
        outer = weights[i] * weights[j] * np.outer(x[i] - x[j], x[i] - x[j])
        given = (extra or {}).get((i, j), 0.0)
        together += ((y[i] == y[j]) + max(given, 0)) * outer
        apart += ((y[i] != y[j]) + max(-given, 0)) * outer
    return apart, together


def drawn(n=45, d=4):
    rng = np.random.default_rng(0)
    y = (np.arange(n) % 7).clip(0, 2)  # of unequal sizes
    return rng.normal(size=(n, d)) * [1, 10, 0.1, 1] + np.outer(y, [1, 0, 0.1, 1]), y, rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("given", [False, True])
def test_solves_the_generalised_eigenproblem(given):
    x, y, weights = drawn()
    extra = {(0, 1): 5.0, (2, 9): -40.0, (3, 30): -2.5} if given else None
    pairs = None
    if extra:
        first, second = (np.array(part, np.intp) for part in zip(*extra, strict=True))
        pairs = Edges(first, second, np.array(list(extra.values())))
    state = fitted(x, y, weights, pairs, n_components=4).state
    values, vectors = scipy.linalg.eigh(*forms(x, y, weights, extra))
    np.testing.assert_allclose(state.ratio, values[::-1], rtol=1e-9)
    for own, other in zip(state.loadings, vectors.T[::-1], strict=True):
        np.testing.assert_allclose(
            own / np.linalg.norm(own), other / np.linalg.norm(other) * np.sign(own @ other), atol=1e-7
        )


def test_classes_of_equal_size_have_the_directions_of_discriminant_analysis():
    state = fitted(IRIS.data, IRIS.target).state
    peer = LinearDiscriminantAnalysis(solver="eigen").fit(IRIS.data, IRIS.target).scalings_[:, :2].T
    unit = [part / np.linalg.norm(part, axis=1)[:, None] for part in (state.loadings, peer)]
    np.testing.assert_allclose(np.abs((unit[0] * unit[1]).sum(axis=1)), 1, rtol=1e-9)


def test_no_other_direction_has_a_higher_ratio():
    x, y, weights = drawn()
    apart, together = forms(x, y, weights)
    best = fitted(x, y, weights).state.ratio[0]
    for direction in np.random.default_rng(1).normal(size=(100, 4)) / x.std(axis=0):
        assert direction @ apart @ direction / (direction @ together @ direction) <= best


def test_a_pair_that_cannot_be_together_turns_the_direction():
    x = np.array([[0.0, 0], [1, 0.1], [0, 1], [1, 1.2], [0.5, 3], [0.6, -3]])
    y = np.array([0, 1, 0, 1, 0, 1])
    pairs = Edges(np.array([4]), np.array([5]), np.array([-1e4]))
    plain, turned = fitted(x, y, n_components=1).state, fitted(x, y, pairs=pairs, n_components=1).state
    gap = x[4] - x[5]

    def share(state):
        return (state.loadings[0] @ gap) ** 2 / (state.loadings[0] ** 2).sum()

    assert share(turned) > share(plain)
    ignored = fitted(x, y, pairs=pairs, n_components=1, relation_weight=0.0).state
    np.testing.assert_allclose(ignored.loadings, plain.loadings, rtol=1e-12)


def test_directions_without_scatter_are_left_out_unless_shrunk():
    x, y, _ = drawn()
    wide = np.column_stack([x, x[:, 0] + x[:, 1]])
    fit = fitted(wide, y, n_components=5)
    assert len(fit.state.ratio) == 4
    assert fit.warnings[-1] == "There are only 4 directions, not 5."
    assert len(fitted(wide, y, n_components=5, shrinkage=0.1).state.ratio) == 5


def test_one_class_has_nothing_apart():
    fit = fitted(IRIS.data[:20], np.zeros(20))
    np.testing.assert_allclose(fit.state.ratio, 0, atol=1e-14)
    assert np.isfinite(fit.state.loadings).all()
