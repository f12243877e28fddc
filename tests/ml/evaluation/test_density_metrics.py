"""Information criteria of a Gaussian density, against scikit-learn's mixture of one component."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture

from app.ml.catalogue.algorithm_files import find
from app.ml.contract.algorithm import Context, Data, FittedLearner, Task
from app.ml.evaluation.evaluation import evaluate
from app.ml.evaluation.predictions import of_training_rows, predictions

IRIS = load_iris().data
FORMS = {"full": "full", "diagonal": "diag", "spherical": "spherical"}


def fitted(x, **params):
    algorithm, data = find("gaussian").algorithm, Data.of(Task.DENSITY, x)
    given = algorithm.params(**params)
    return FittedLearner(algorithm, given, algorithm.fit(given, data, Context.of(0)).state), data


def measured(learned, data, predicted):
    return {one.name: one for one in evaluate(data, predicted, (), np.random.default_rng(0)).metrics}


@pytest.mark.parametrize("covariance", FORMS)
def test_bic_and_aic_are_those_of_scikit_learn(covariance):
    learned, data = fitted(IRIS, covariance=covariance, shrinkage=0.0)
    found = measured(learned, data, of_training_rows(learned, data))
    peer = GaussianMixture(1, covariance_type=FORMS[covariance], reg_covar=0).fit(IRIS)
    assert found["bic"].value == pytest.approx(peer.bic(IRIS), rel=1e-12)
    assert found["aic"].value == pytest.approx(peer.aic(IRIS), rel=1e-12)
    assert found["bic"].lower < found["bic"].value < found["bic"].upper
    assert f"{peer._n_parameters()} free parameters" in found["bic"].note


@pytest.mark.parametrize(
    ("shrinkage", "covariance", "expected"),
    [
        (0.0, "full", 14),
        (1.0, "full", 5),
        (0.25, "full", 11.75),
        (1.0, "diagonal", 5),
        (0.5, "diagonal", 6.5),
    ],
)
def test_shrinkage_takes_free_parameters_away(shrinkage, covariance, expected):
    learned, data = fitted(IRIS, covariance=covariance, shrinkage=shrinkage)
    assert of_training_rows(learned, data).free_parameters == pytest.approx(expected)


def test_free_parameters_are_the_trace_of_the_map_from_rows_to_covariance():
    """Of a full covariance of three columns, whose shrunk entries are differentiated by those of the rows."""
    share, d = 0.3, 3
    places = [(i, j) for i in range(d) for j in range(i, d)]

    def shrunk(matrix):
        return (1 - share) * matrix + share * np.trace(matrix) / d * np.eye(d)

    trace = 0.0
    for i, j in places:
        unit = np.zeros((d, d))
        unit[i, j] = unit[j, i] = 1.0
        trace += shrunk(unit)[i, j]
    learned, data = fitted(IRIS[:, :d], shrinkage=share)
    assert of_training_rows(learned, data).free_parameters == pytest.approx(d + trace)


def test_other_rows_have_a_log_density_only():
    learned, data = fitted(IRIS)
    assert set(measured(learned, data, predictions(learned, data, data))) == {"log_density"}
