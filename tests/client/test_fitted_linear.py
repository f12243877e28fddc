"""Linear models of scikit-learn, alone and in pipelines, predict in the service as where they were fitted."""

import json

import numpy as np
import pytest
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

from app.base.errors import ImportMismatch, ImportUnsupported, InvalidData
from app.ml.algorithms.imported_linear import ImportedLinear, State, predict
from app.ml.models.imported_model import table_of
from tests.client.test_fitted_trees import imported_from, predicted
from valiant.failures import InvalidRequest
from valiant.fitted_estimator import fitted
from valiant.fitted_parts import NotImportable

NUMBERS = [
    linear_model.LinearRegression(),
    linear_model.Ridge(fit_intercept=False),
    linear_model.RidgeCV(),
    linear_model.LassoCV(),
    linear_model.ElasticNet(),
    linear_model.BayesianRidge(),
    linear_model.HuberRegressor(max_iter=1000),
    linear_model.QuantileRegressor(),
    linear_model.SGDRegressor(random_state=0),
    linear_model.PoissonRegressor(),
    linear_model.GammaRegressor(),
    svm.LinearSVR(random_state=0, max_iter=100_000),
]
CLASSES = [
    linear_model.LogisticRegression(max_iter=5000),
    linear_model.SGDClassifier(loss="log_loss", random_state=0),
    LinearDiscriminantAnalysis(),
]
TWO_CLASSES = [
    linear_model.RidgeClassifier(),
    linear_model.Perceptron(),
    svm.LinearSVC(random_state=0),
    linear_model.SGDClassifier(loss="hinge", random_state=0),
]
BEFORE = {
    "alone": [],
    "standard": [StandardScaler()],
    "filled": [SimpleImputer(), StandardScaler()],
    "robust": [SimpleImputer(strategy="median"), RobustScaler(), MinMaxScaler()],
    "largest": [MaxAbsScaler(), StandardScaler(with_mean=False)],
}


def name(value):
    return type(value).__name__ if hasattr(value, "fit") else None


def of(estimator, before="standard"):
    return make_pipeline(*BEFORE[before], estimator) if BEFORE[before] else estimator


def same(estimator, x, tmp_path):
    """Compared on rows like those it learned from, and farther away."""
    made = fitted(estimator)
    model = imported_from(made.content, tmp_path)
    rng = np.random.default_rng(1)
    rows = np.concatenate([x, x[rng.integers(len(x), size=300)] * rng.normal(1, 0.3, (300, x.shape[1]))])
    ours = predicted(model, rows)
    if not hasattr(estimator, "classes_"):
        theirs = estimator.predict(rows)
    elif hasattr(estimator, "predict_proba"):
        theirs = estimator.predict_proba(rows)
    else:
        theirs = (estimator.predict(rows)[:, None] == estimator.classes_) * 1.0
    assert np.abs(ours - theirs).max() <= 1e-11 * max(1.0, np.abs(theirs).max())
    return model


@pytest.mark.parametrize("estimator", NUMBERS, ids=name)
@pytest.mark.parametrize("before", ["alone", "standard"])
def test_numbers(estimator, before, tmp_path):
    x, y = load_diabetes(return_X_y=True)
    same(of(estimator, before).fit(x, y), x, tmp_path)


@pytest.mark.parametrize("estimator", CLASSES, ids=name)
def test_probabilities_of_two_classes(estimator, tmp_path):
    x, y = load_breast_cancer(return_X_y=True)
    same(of(estimator).fit(x, y), x, tmp_path)


@pytest.mark.parametrize("estimator", [CLASSES[0], CLASSES[2]], ids=name)
def test_probabilities_of_three_classes(estimator, tmp_path):
    x, y = load_iris(return_X_y=True)
    model = same(of(estimator).fit(x, np.array(["a", "b", "c"])[y]), x, tmp_path)
    assert model.classes == ("a", "b", "c")


@pytest.mark.parametrize("estimator", TWO_CLASSES, ids=name)
def test_two_classes_without_probabilities(estimator, tmp_path):
    x, y = load_breast_cancer(return_X_y=True)
    same(of(estimator).fit(x, y), x, tmp_path)


@pytest.mark.parametrize("before", BEFORE)
def test_scalers_and_imputers(before, tmp_path):
    x, y = load_diabetes(return_X_y=True)
    x = x * np.geomspace(0.01, 1000, 10) + np.arange(10)
    if before in {"filled", "robust"}:
        x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    same(of(linear_model.Ridge(), before).fit(x, y), x, tmp_path)


def test_names_come_from_the_table_and_a_missing_number_is_refused(tmp_path):
    x, y = load_diabetes(return_X_y=True, as_frame=True)
    made = fitted(make_pipeline(StandardScaler(), linear_model.Ridge()).fit(x, y))
    model = imported_from(made.content, tmp_path)
    assert [(one.name, one.kind, one.nullable) for one in model.inputs] == [
        (column, "numeric", False) for column in x.columns
    ]


def test_no_class_where_a_sum_overflows(tmp_path):
    """scikit-learn has NaN for such a row, and then takes the first class."""
    x, y = load_iris(return_X_y=True)
    estimator = linear_model.LogisticRegression().fit(x, y)
    estimator.coef_ *= 1e6
    model = imported_from(fitted(estimator).content, tmp_path)
    signs = np.sign(estimator.coef_[0]) * [1, -1, 1, -1]
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.predict(table_of(model.inputs, np.stack([1.7e308 * signs, x[0]])))
        state = State(np.array([[np.inf], [-np.inf]]), np.zeros(1), 2)
        step = predict(ImportedLinear(transform="step"), state, np.ones((1, 2)))
    assert (found.predictions[0], found.predictions[1]) == (None, estimator.predict(x[:1]).item())
    assert np.isnan(step).all()


def test_what_would_be_predicted_otherwise_is_refused_by_name():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(NotImportable, match="PolynomialFeatures"):
        fitted(make_pipeline(PolynomialFeatures(), linear_model.Ridge()).fit(x, y))
    with pytest.raises(NotImportable, match="no logistic function, or softmax"):
        fitted(linear_model.SGDClassifier(loss="log_loss").fit(x, y))
    with pytest.raises(NotImportable, match="more than two classes"):
        fitted(svm.LinearSVC().fit(x, y))
    with pytest.raises(NotImportable, match="several targets"):
        fitted(linear_model.Ridge().fit(x, np.stack([y, y], axis=1)))
    with pytest.raises(NotImportable, match="clip"):
        fitted(make_pipeline(MinMaxScaler(clip=True), linear_model.Ridge()).fit(x, y))
    with pytest.raises(NotImportable, match="other values than NaN"):
        fitted(make_pipeline(SimpleImputer(missing_values=-1), linear_model.Ridge()).fit(x, y))
    with pytest.raises(NotImportable, match="indicators"):
        fitted(make_pipeline(SimpleImputer(add_indicator=True), linear_model.Ridge()).fit(x, y))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"coef": [[1.0]]}, InvalidData),
        ({"coef": [[0.1] * 10]}, ImportMismatch),
        ({"fill": [0.0]}, InvalidData),
        ({"base": [1.0, 2.0]}, ImportUnsupported),
        ({"transform": "exponential"}, ImportMismatch),
        ({"format_name": "valiant-trees"}, InvalidData),
    ],
    ids=str,
)
def test_other_weights_make_no_version(change, error, tmp_path):
    made = fitted(linear_model.Ridge().fit(*load_diabetes(return_X_y=True)))
    with pytest.raises(error):
        imported_from(json.dumps(json.loads(made.content) | change).encode(), tmp_path)


def test_a_pipeline_comes_from_a_notebook(service):
    x, y = load_iris(return_X_y=True, as_frame=True)
    estimator = make_pipeline(StandardScaler(), linear_model.LogisticRegression()).fit(x, np.array(["a", "b", "c"])[y])
    version = service.import_estimator(estimator, "linear-iris", target="species")
    assert (version.algorithm, version.report.summary["weights"]) == ("imported_linear", 12)
    assert version.predict(x)["prediction"].tolist() == estimator.predict(x).tolist()
    gap = x[:2].copy()
    gap.iloc[1, 2] = np.nan
    with pytest.raises(InvalidRequest, match=x.columns[2].replace("(", r"\(").replace(")", r"\)")):
        version.predict(gap)
