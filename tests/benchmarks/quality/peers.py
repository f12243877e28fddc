"""The peer of every supervised algorithm: what an experienced user of other libraries would write in its place."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import (
    base,
    compose,
    ensemble,
    gaussian_process,
    impute,
    kernel_ridge,
    linear_model,
    model_selection,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

from tests.benchmarks.paired import of_kind, optional

lightgbm = optional("lightgbm")
PENALTIES = np.logspace(-3, 4, 15)
MEASURES = frozenset({"log-loss", "error"})
ERROR = frozenset({"error"})


class Peer(NamedTuple):
    name: str
    make: Callable[[], Any]
    """An estimator that takes a data frame."""
    measures: frozenset[str] = MEASURES
    """Losses of classes that both mean; numbers have the RMSE."""


def framed(estimator: Any, *, categories: Any = None, numbers: Any = None) -> Any:
    """Means for gaps, standard units, an indicator for each category: then the estimator."""
    own = numbers or pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    words = categories or preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = compose.make_column_transformer(
        (own, compose.make_column_selector(dtype_include="number")),
        (words, compose.make_column_selector(dtype_exclude="number")),
    )
    return pipeline.make_pipeline(columns, estimator)


def coded(estimator: Any) -> Any:
    """Categories as codes that the estimator knows for such, gaps as they are."""
    return _Coded(estimator)


class _Coded:
    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, x: pd.DataFrame, y: Any) -> "_Coded":
        words = [name for name in x if not pd.api.types.is_numeric_dtype(x[name])]
        self.levels = {name: pd.CategoricalDtype(sorted(x[name].dropna().unique())) for name in words}
        self.estimator.fit(x.astype(self.levels), y)
        return self

    def predict(self, x: pd.DataFrame) -> Any:
        return self.estimator.predict(x.astype(self.levels))

    def predict_proba(self, x: pd.DataFrame) -> Any:
        return self.estimator.predict_proba(x.astype(self.levels))


class OfIndicators(base.BaseEstimator, base.ClassifierMixin):
    """Numbers fitted to the indicator of each class; the largest wins."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, x: Any, y: Any) -> "OfIndicators":
        self.classes_ = np.unique(y)
        self.estimator.fit(x, (np.asarray(y)[:, None] == self.classes_) * 1.0)
        return self

    def predict(self, x: Any) -> Any:
        return self.classes_[self.predict_proba(x).argmax(axis=1)]

    def predict_proba(self, x: Any) -> Any:
        return self.estimator.predict(x)


def splines() -> Any:
    """Cubic B-splines of every number; gaps at the mean; the ridge's penalty by leave-one-out."""
    curve = preprocessing.SplineTransformer(n_knots=10, knots="quantile", extrapolation="linear")
    numbers = pipeline.make_pipeline(impute.SimpleImputer(), curve)
    return framed(linear_model.RidgeCV(PENALTIES), numbers=numbers)


def smooth() -> Any:
    """Kernel ridge regression, its width and penalty by cross-validation."""
    search = {"gamma": [0.003, 0.01, 0.03, 0.1, 0.3], "alpha": [0.03, 0.1, 0.3, 1.0]}
    return framed(model_selection.GridSearchCV(kernel_ridge.KernelRidge(kernel="rbf"), search, cv=3))


def process() -> Any:
    """A Gaussian process with a length scale of each column and noise, all of the largest likelihood."""
    return framed(_Process())


class _Process(base.BaseEstimator, base.RegressorMixin):
    def fit(self, x: Any, y: Any) -> "_Process":
        kernels = gaussian_process.kernels
        scaled = kernels.ConstantKernel() * kernels.Matern(np.ones(x.shape[1]), nu=2.5)
        kernel = scaled + kernels.WhiteKernel(0.1)
        self.process_ = gaussian_process.GaussianProcessRegressor(kernel, normalize_y=True).fit(x, y)
        return self

    def predict(self, x: Any) -> Any:
        return self.process_.predict(x)


def _of(module: Any, prefix: str, *, classes: bool, **how: Any) -> Any:
    return framed(of_kind(module, prefix, classes=classes, **how)())


def _tree(*, classes: bool) -> Any:
    return of_kind(tree, "DecisionTree", classes=classes, min_samples_leaf=3, random_state=0)()


def _members(*, classes: bool) -> list[tuple[str, Any]]:
    plain = linear_model.LogisticRegression(max_iter=1000) if classes else linear_model.Ridge()
    near = of_kind(neighbors, "KNeighbors", classes=classes)()
    forest = of_kind(ensemble, "RandomForest", classes=classes, random_state=0)()
    return [("linear", plain), ("neighbours", near), ("forest", forest)]


def _bagging(*, classes: bool, **how: Any) -> Any:
    return _of(
        ensemble, "Bagging", classes=classes, estimator=_tree(classes=classes), n_estimators=25, random_state=0, **how
    )


def _boosting(*, classes: bool) -> Any:
    if lightgbm:
        return coded(of_kind(lightgbm, "LGBM", classes=classes, n_jobs=1, verbose=-1)())
    return _of(ensemble, "HistGradientBoosting", classes=classes, early_stopping=False)


def _stacking(*, classes: bool) -> Any:
    folds = model_selection.StratifiedKFold if classes else model_selection.KFold
    how = {"estimators": _members(classes=classes), "cv": folds(5, shuffle=True, random_state=0)}
    weights = {} if classes else {"final_estimator": linear_model.LinearRegression(positive=True)}
    return _of(ensemble, "Stacking", classes=classes, **how, **weights)


def _adaboost(depth: int) -> Any:
    return framed(ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=depth), random_state=0))


def _both(*, classes: bool) -> dict[str, Peer]:
    """Of algorithms for numbers and for classes."""
    forest = partial(_of, ensemble, "RandomForest", classes=classes, random_state=0)
    soft = {"voting": "soft"} if classes else {}
    voting = partial(_of, ensemble, "Voting", classes=classes, estimators=_members(classes=classes), **soft)
    return {
        "knn": Peer("KNeighbors", partial(_of, neighbors, "KNeighbors", classes=classes)),
        "decision_tree": Peer("DecisionTree, 3 a leaf", lambda: framed(_tree(classes=classes))),
        "random_forest": Peer("RandomForest", forest),
        "gradient_boosting": Peer(
            "LightGBM" if lightgbm else "HistGradientBoosting", partial(_boosting, classes=classes)
        ),
        "bagging": Peer("Bagging", partial(_bagging, classes=classes)),
        "random_subspace": Peer(
            "Bagging of columns", partial(_bagging, classes=classes, bootstrap=False, max_features=0.5)
        ),
        "committee": Peer("Voting", voting),
        "stacking": Peer("Stacking", partial(_stacking, classes=classes)),
    }


NUMBERS = _both(classes=False) | {
    "linear": Peer("LinearRegression", lambda: framed(linear_model.LinearRegression())),
    "ridge": Peer("RidgeCV", lambda: framed(linear_model.RidgeCV(PENALTIES))),
    "lasso": Peer("LassoCV", lambda: framed(linear_model.LassoCV(cv=5, max_iter=10_000))),
    "linear_sgd": Peer("SGDRegressor", lambda: framed(linear_model.SGDRegressor(random_state=0))),
    "mlp": Peer("MLPRegressor", lambda: framed(neural_network.MLPRegressor(random_state=0))),
    "svr": Peer("SVR", lambda: framed(svm.SVR())),
    "locally_weighted": Peer("KernelRidge by cv", smooth),
    "bayesian_locally_weighted": Peer("KernelRidge by cv", smooth),
    "gaussian_process": Peer("GaussianProcess, Matern", process),
    "additive": Peer("Splines + RidgeCV", splines),
    "feature_weighted_stacking": Peer("Stacking", partial(_stacking, classes=False)),
}
CLASSES = _both(classes=True) | {
    "linear": Peer("LinearRegression", lambda: framed(OfIndicators(linear_model.LinearRegression())), ERROR),
    "ridge": Peer("RidgeCV", lambda: framed(OfIndicators(linear_model.RidgeCV(PENALTIES))), ERROR),
    "linear_sgd": Peer("SGDClassifier", lambda: framed(linear_model.SGDClassifier(loss="log_loss", random_state=0))),
    "mlp": Peer("MLPClassifier", lambda: framed(neural_network.MLPClassifier(random_state=0))),
    "svm": Peer("SVC", lambda: framed(svm.SVC(probability=True, random_state=0))),
    "logistic": Peer("LogisticRegression", lambda: framed(linear_model.LogisticRegression(max_iter=1000))),
    "perceptron": Peer("Perceptron", lambda: framed(linear_model.Perceptron(random_state=0)), ERROR),
    "generative_bayes": Peer("GaussianNB", lambda: framed(naive_bayes.GaussianNB())),
    "rules": Peer("DecisionTree, 32 leaves", lambda: framed(_tree(classes=True).set_params(max_leaf_nodes=32))),
    "adaboost": Peer("AdaBoost", partial(_adaboost, 1)),
    "boost_majority": Peer("AdaBoost, depth 2", partial(_adaboost, 2), ERROR),
    "logitboost": Peer(
        "GradientBoosting of stumps", lambda: framed(ensemble.GradientBoostingClassifier(max_depth=1, random_state=0))
    ),
    "ecoc": Peer(
        "OutputCode",
        lambda: framed(multiclass.OutputCodeClassifier(_tree(classes=True), code_size=3, random_state=0)),
        ERROR,
    ),
}
