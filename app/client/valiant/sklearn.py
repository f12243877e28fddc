"""Estimators of scikit-learn that train and predict on a service.

    cross_val_score(ValiantClassifier("random_forest", n_estimators=50), X, y)

A fit uploads the rows, trains a version of a model on all of them, and deletes the upload. The versions stay.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from . import connect
from .configuration import configured
from .failures import ConnectionLost, Problem
from .frames import is_frame, table_of
from .service import ALGORITHM, TRAIN_FIELDS, Client

TARGET, WEIGHTS = "target__", "weights__"
DESCRIPTION_SECONDS = 5.0
ALL_ROWS: Mapping[str, Any] = {"test_fraction": 0}
"""Validation of a fit: scikit-learn holds rows out itself."""


@cache
def _service(url: str) -> Client:
    """One connection of the process to each address, so that estimators hold none and can be pickled."""
    return connect(url)


@cache
def _defaults(url: str, algorithm: str) -> Mapping[str, Any]:
    """Parameters of an algorithm with their defaults, from the JSON Schema of the service."""
    with connect(url, timeout=DESCRIPTION_SECONDS) as service:
        schema = service.algorithm(algorithm)["parameters"]["properties"]
    return {name: field["default"] for name, field in schema.items() if "default" in field}


class _Estimator(BaseEstimator):
    """Everything that classification and regression share."""

    task: str

    def __init__(
        self, algorithm: str = ALGORITHM, *, model: str | None = None, url: str | None = None, **params: Any
    ) -> None:
        """Describe a fit.

        model: the model that gets the versions; None: `sklearn-` and the algorithm. url: of the service; None: as
        `valiant.connect` has it. params: parameters of the algorithm, and fields of the request such as `seed`.
        """
        self.algorithm = algorithm
        self.model = model
        self.url = url
        self._params = params

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  as scikit-learn has it
        """Those of the estimator, and every parameter of the algorithm, if the service is there to describe them."""
        settings = {"algorithm": self.algorithm, "model": self.model, "url": self.url}
        return {**settings, **self._described(), **self._params}

    def _described(self) -> Mapping[str, Any]:
        """Parameters of the algorithm; none where the service is away, since an estimator is printed without it."""
        try:
            return _defaults(self._address, str(self.algorithm))
        except (ConnectionLost, Problem):
            return {}

    def set_params(self, **params: Any) -> Self:
        """Raises ValueError for what is neither a parameter nor a field of the request."""
        for name, value in params.items():
            if name in {"algorithm", "model", "url"}:
                setattr(self, name, value)
            elif name in TRAIN_FIELDS or name in self.get_params():
                self._params[name] = value
            else:
                raise ValueError(f"Invalid parameter {name!r}; known are {', '.join(sorted(self.get_params()))}.")
        return self

    def __getattr__(self, name: str) -> Any:
        """A parameter is also an attribute, as in every estimator."""
        params = self.__dict__.get("_params", {})
        if name in params:
            return params[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def _address(self) -> str:
        return configured(self.url if isinstance(self.url, str) else None).url

    def _rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[pa.Table, NDArray[Any]]:
        """The rows of a positive weight as a table, with a column of weights if there are any, and their targets."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        assert_all_finite(y, input_name="y")
        table, target = self._table(X, reset=True), column_or_1d(y, warn=True)
        check_consistent_length(table, target)
        if sample_weight is None:
            return table, target
        weights = _check_sample_weight(sample_weight, table, ensure_non_negative=True)
        weighted = weights > 0
        return table.append_column(WEIGHTS, pa.array(weights)).filter(pa.array(weighted)), target[weighted]

    def _train(self, table: pa.Table, target: pa.Array) -> Self:
        columns: dict[str, Any] = {"features": [name for name in table.column_names if name != WEIGHTS]}
        if WEIGHTS in table.column_names:
            columns["weights"] = WEIGHTS
        described = self._described()
        algorithm = {name: value for name, value in self._params.items() if name in described}
        fields = {name: value for name, value in self._params.items() if name not in described}
        service, model = _service(self._address), self.model or f"sklearn-{self.algorithm}"
        dataset = service.upload(table.append_column(TARGET, target), name=f"{model}-rows")
        try:
            made = service.train(
                dataset,
                TARGET,
                algorithm={"name": self.algorithm, **algorithm},
                model=model,
                progress=False,
                **{"task": self.task, "validation": ALL_ROWS, **columns, **fields},
            )
        finally:
            dataset.delete()
        self.model_, self.version_ = made.model, made.version
        return self

    def _table(self, X: Any, *, reset: bool) -> pa.Table:
        """The rows as a table: columns of a frame keep names and kinds, those of an array are named by their place."""
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return table_of(X)
        values = validate_data(
            self, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan", ensure_min_samples=2 if reset else 1
        )
        return pa.table({f"x{place}": pa.array(column, from_pandas=True) for place, column in enumerate(values.T)})

    def _predicted(self, X: Any) -> pa.Table:
        check_is_fitted(self, "version_")
        table = self._table(X, reset=False)
        return _service(self._address).model(self.model_).version(self.version_).predict(table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.non_deterministic = False
        return tags


class ValiantClassifier(ClassifierMixin, _Estimator):
    """A classifier on a service. Labels of any kind go as text, and come back as they were."""

    task = "classification"

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        table, labels = self._rows(X, y, sample_weight)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError("A classifier needs rows of two classes; there is only one class.")
        return self._train(table, pa.array([str(label) for label in labels]))

    def predict(self, X: Any) -> NDArray[Any]:
        labels = self._predicted(X)["prediction"].to_pylist()
        places = {str(label): place for place, label in enumerate(self.classes_)}
        return self.classes_[[places[label] for label in labels]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, k), in the order of `classes_`."""
        predicted = self._predicted(X)
        return np.column_stack([predicted[f"probability_{label}"].to_numpy() for label in self.classes_])


class ValiantRegressor(RegressorMixin, _Estimator):
    """A regression on a service."""

    task = "regression"

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        table, target = self._rows(X, y, sample_weight)
        return self._train(table, pa.array(target.astype(np.float64)))

    def predict(self, X: Any) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self._predicted(X)["prediction"].to_numpy()
        return values
