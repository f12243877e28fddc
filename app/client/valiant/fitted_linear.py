"""Weights of a fitted linear model of scikit-learn, alone or behind scalers and an imputer in a pipeline.

Scalers become part of the weights; what the imputer fills in is sent beside them. Probe rows go along with the
predictions of scikit-learn itself, which the service compares with its own.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .fitted_parts import Fitted, NotImportable, classes_of, columns_of, described, named, written

PIPELINE = "Pipeline"
LEAST_ROWS, MOST_ROWS, MOST_CELLS = 20, 1000, 1_000_000
ABSOLUTE_TOLERANCE = 1e-12
"""Relative difference up to which a function of the sums is that of the estimator."""


class _Inputs(NamedTuple):
    """Scaled inputs: (x - offset)/scale, after `fill` has replaced missing ones."""

    offset: Any
    scale: Any
    fill: Any
    """None: no input may be missing."""


def fitted_linear(estimator: Any) -> Fitted:
    """The weights of an estimator, its classes and its own predictions of probe rows. Raises NotImportable."""
    import numpy as np  # noqa: PLC0415  scikit-learn has it; the client itself does not need it

    piped = type(estimator).__name__ == PIPELINE
    *before, last = [step for _, step in estimator.steps] if piped else [estimator]
    kind = type(last).__name__
    if kind not in LINKS:
        raise NotImportable(f"A pipeline that ends with {kind} cannot be imported: only one with a linear model.")
    classes = classes_of(last)
    coef = np.atleast_2d(np.asarray(last.coef_, np.float64))
    if len(coef) > 1 and not classes:
        raise NotImportable(f"{kind} predicts several targets at once: fit one for each.")
    if len(classes) == 1:
        raise NotImportable("The estimator knows one class only.")
    inputs = _inputs(before, estimator.n_features_in_)
    base = np.broadcast_to(np.asarray(last.intercept_, np.float64).ravel(), len(coef))
    plain = coef / inputs.scale
    rows = _probe_rows(inputs)
    named_rows = named(rows, estimator)
    transform, sums, predicted = (_of_classes if classes else _of_numbers)(estimator, kind, named_rows)
    document = described(last, columns_of(estimator), rows) | {
        "format_name": "valiant-linear",
        "transform": transform,
        "base": (base - plain @ inputs.offset).tolist(),
        "coef": plain.tolist(),
        "fill": None if inputs.fill is None else inputs.fill.tolist(),
        "sums": sums.tolist(),
        "predictions": predicted.tolist(),
    }
    return written(document)


def _inputs(steps: list[Any], d: int) -> _Inputs:
    """Raises NotImportable for a step that is neither a scaler nor a `SimpleImputer` of NaN."""
    import numpy as np  # noqa: PLC0415

    offset, scale, fill = np.zeros(d), np.ones(d), None
    for step in steps:
        kind = type(step).__name__
        if step == "passthrough" or step is None:
            continue
        if kind == "SimpleImputer" and fill is None and (scale == 1).all() and not offset.any():
            fill = np.asarray(step.statistics_, np.float64)
            if step.add_indicator or not np.isfinite(fill).all():
                raise NotImportable("An imputer with indicators, or that leaves a column out, cannot be imported.")
            if not (isinstance(step.missing_values, float) and math.isnan(step.missing_values)):
                raise NotImportable("An imputer of other values than NaN cannot be imported.")
        elif kind in SCALERS:
            if getattr(step, "clip", False):
                raise NotImportable(f"{kind} with `clip` cannot be imported.")
            move, unit = SCALERS[kind](step)
            offset, scale = offset + move * scale, scale * unit
        else:
            raise NotImportable(
                f"A pipeline with {kind} cannot be imported: only SimpleImputer, and then {', '.join(SCALERS)}."
            )
    return _Inputs(offset, scale, fill)


SCALERS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "StandardScaler": lambda step: (step.mean_ if step.with_mean else 0.0, step.scale_ if step.with_std else 1.0),
    "RobustScaler": lambda step: (
        step.center_ if step.with_centering else 0.0,
        step.scale_ if step.with_scaling else 1.0,
    ),
    "MinMaxScaler": lambda step: (-step.min_ / step.scale_, 1 / step.scale_),
    "MaxAbsScaler": lambda step: (0.0, step.scale_),
}
"""By the name of the class: offset and scale, (d,) or the same for all columns."""


def _probe_rows(inputs: _Inputs) -> Any:
    """(n, d) around the offsets, in units of the scales, in which every column counts in every row."""
    import numpy as np  # noqa: PLC0415

    rng, d = np.random.default_rng(0), inputs.scale.size
    n = min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // d))
    rows = inputs.offset + inputs.scale * rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2, (n, 1))
    if inputs.fill is not None:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _of_numbers(estimator: Any, kind: str, rows: Any) -> tuple[str, Any, Any]:
    """The function of the sums of a regressor, the sums (n, 1), and its predictions (n, 1)."""
    import numpy as np  # noqa: PLC0415

    with np.errstate(over="ignore"):
        predicted = np.asarray(estimator.predict(rows), np.float64).reshape(len(rows), 1)
    return LINKS[kind], np.log(predicted) if LINKS[kind] == "exponential" else predicted, predicted


def _of_classes(estimator: Any, kind: str, rows: Any) -> tuple[str, Any, Any]:
    """The function of the sums of a classifier, the sums (n, k), and its probabilities (n, k); k is 1 for two classes.

    Raises NotImportable where the function is none of those that the service knows.
    """
    import numpy as np  # noqa: PLC0415

    sums = np.asarray(estimator.decision_function(rows), np.float64).reshape(len(rows), -1)
    single = sums.shape[1] == 1
    if not hasattr(estimator, "predict_proba"):
        if not single:
            raise NotImportable(f"{kind} gives no probabilities of more than two classes: calibrate it there first.")
        return "step", sums, (sums > 0).astype(np.float64)
    shares = np.asarray(estimator.predict_proba(rows), np.float64)
    if single:
        with np.errstate(over="ignore"):  # of a sum far below 0, whose probability is 0
            made, predicted = 1 / (1 + np.exp(-sums)), shares[:, 1:]
    else:
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        made, predicted = powers / powers.sum(axis=1, keepdims=True), shares
    if not np.allclose(made, predicted, rtol=1e-9, atol=ABSOLUTE_TOLERANCE):
        raise NotImportable(f"The probabilities of this {kind} are no logistic function, or softmax, of its sums.")
    return ("sigmoid" if single else "softmax"), sums, predicted


LINKS = dict.fromkeys(
    (
        "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars", "LarsCV",
        "LassoLars", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit", "BayesianRidge", "ARDRegression",
        "HuberRegressor", "QuantileRegressor", "TheilSenRegressor", "SGDRegressor", "LinearSVR",
        "LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "RidgeClassifier", "RidgeClassifierCV",
        "LinearSVC", "Perceptron", "PassiveAggressiveClassifier", "LinearDiscriminantAnalysis",
    ),
    "identity",
) | {"PoissonRegressor": "exponential", "GammaRegressor": "exponential"}  # fmt: skip
"""By the name of the estimator's class: the function of the sum that a regressor predicts; unused of a classifier."""
