"""Linear discriminant analysis: scikit-learn's coordinates, Fisher's direction, the boundary of a shared covariance."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as Peer

from app.base.errors import InvalidData
from app.ml.algorithms import lda
from app.ml.algorithms.generative_bayes import GenerativeBayes
from app.ml.algorithms.generative_bayes import fit as fit_bayes
from app.ml.algorithms.generative_bayes import predict as predict_bayes
from app.ml.contract.algorithm import Context, Data, TargetKind, Task


def of(x, y, **more):
    return Data.of(Task.PROJECTION, x, y, target=TargetKind.CLASSES, **more)


def fitted(x, y, *, weights=None, **params):
    return lda.fit(lda.LDA(**params), of(x, y, weights=weights), Context.of(0))


def turned(coordinates, like):
    """With the signs of other coordinates."""
    return coordinates * np.sign((coordinates * like).sum(axis=0))


@pytest.mark.parametrize("load", [datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer])
def test_coordinates_are_scikit_learns(load):
    x, y = load(return_X_y=True)
    state, peer = fitted(x, y).state, Peer(tol=1e-14).fit(x, y)
    expected = peer.transform(x)
    ours = lda.predict(lda.LDA(), state, x)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(turned(ours, expected), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(state.ratio / state.total, peer.explained_variance_ratio_, rtol=1e-8)


def test_classes_vary_by_one_along_every_direction():
    x, y = datasets.load_wine(return_X_y=True)
    z = lda.predict(lda.LDA(), fitted(x, y).state, x)
    within = np.concatenate([z[y == c] - z[y == c].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(within.T @ within / len(x), np.eye(2), atol=1e-9)


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_two_classes_have_fishers_direction(shrinkage):
    """w is proportional to S_W⁻¹ (m₁ - m₂), with S_W in columns of unit deviation where it is shrunk."""
    x, y = datasets.load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    means = np.array([x[y == c].mean(axis=0) for c in range(2)])
    rest = x - means[y]
    within = rest.T @ rest / len(x)
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / 30 * np.eye(30)
    expected = np.linalg.solve(within, means[1] - means[0])
    found = fitted(x, y, shrinkage=shrinkage).state.loadings[0]
    cosine = expected @ found / np.linalg.norm(expected) / np.linalg.norm(found)
    assert abs(cosine) == pytest.approx(1, abs=1e-10)


def test_the_nearest_centre_is_the_class_of_a_shared_covariance():
    """With equal priors: in these coordinates the normal densities of `generative_bayes` are round."""
    x, y = datasets.load_wine(return_X_y=True)
    state = fitted(x, y).state
    z = lda.predict(lda.LDA(), state, x)
    centres = lda.predict(lda.LDA(), state, np.array([x[y == c].mean(axis=0) for c in range(3)]))
    np.testing.assert_allclose(centres, state.centres, atol=1e-9)
    nearest = np.square(z[:, None] - centres).sum(axis=2).argmin(axis=1)
    params = GenerativeBayes(density="shared_covariance", priors=[1 / 3] * 3)
    bayes = fit_bayes(params, Data.of(Task.CLASSIFICATION, x, y), Context.of(0)).state
    assert (predict_bayes(params, bayes, x).argmax(axis=1) == nearest).all()


def test_fewer_directions_are_the_first_of_all():
    x, y = datasets.load_iris(return_X_y=True)
    every, one = fitted(x, y).state, fitted(x, y, n_components=1)
    np.testing.assert_allclose(one.state.loadings, every.loadings[:1], rtol=1e-12)
    assert one.state.total == pytest.approx(every.total)
    assert one.warnings == []
    assert fitted(x, y, n_components=5).warnings == ["There are only 2 directions, not 5."]


def test_a_column_that_repeats_another_is_left_out_unless_shrunk():
    x, y = datasets.load_iris(return_X_y=True)
    double = np.column_stack([x, x[:, 0]])
    found = fitted(double, y)
    assert found.warnings == ["In 1 of 5 directions no class varies: they are left out. Set `shrinkage` to keep them."]
    z, alone = (lda.predict(lda.LDA(), fitted(part, y).state, part) for part in (double, x))
    np.testing.assert_allclose(z, turned(alone, z), atol=1e-8)
    assert fitted(double, y, shrinkage=0.1).warnings == []


def test_one_class_has_no_direction():
    state = fitted(np.arange(6.0).reshape(3, 2), [0, 0, 0]).state
    assert lda.predict(lda.LDA(), state, np.ones((4, 2))).tolist() == [[0.0]] * 4


def test_a_target_is_needed():
    with pytest.raises(InvalidData, match="0 values for 2 rows"):
        Data.of(Task.PROJECTION, np.zeros((2, 1)), target=TargetKind.CLASSES)


@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
@pytest.mark.parametrize("apart", [1.0, 1e5])
def test_one_pass_and_the_factor_agree(shrinkage, apart, monkeypatch):
    """Classes far apart leave the scatter within them in the last digits of that of all rows: the factor takes over."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=500)
    x = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + apart * rng.normal(size=(3, 6))[y] + 10
    weights = rng.uniform(0.5, 2, 500)
    passes = lda._in_one_pass(lda.LDA(shrinkage=shrinkage), of(x, y, weights=weights))
    assert (passes is None) == (apart > 1)
    state = fitted(x, y, weights=weights, shrinkage=shrinkage).state
    monkeypatch.setattr(lda, "_in_one_pass", lambda *_: None)
    factor = fitted(x, y, weights=weights, shrinkage=shrinkage).state
    np.testing.assert_allclose(state.ratio, factor.ratio, rtol=1e-7)
    np.testing.assert_allclose(state.loadings, factor.loadings, rtol=1e-6, atol=1e-9 * np.abs(factor.loadings).max())
    np.testing.assert_allclose(state.centres, factor.centres, rtol=1e-6)
