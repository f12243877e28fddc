"""Weights of a fitted linear model of scikit-learn, alone or behind scalers and an imputer in a pipeline.

Scalers become part of the weights; what the imputer fills in is sent beside them. Probe rows go along with the
predictions of scikit-learn itself, which the service compares with its own.
"""

import math
from typing import Any, NamedTuple

from .fitted_parts import Fitted, NotImportable, classes_of, columns_of, described, named, written

PIPELINE = "Pipeline"
LEAST_ROWS, MOST_ROWS, MOST_CELLS = 20, 1000, 1_000_000
CLOSE = 1e-12
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

    last = estimator
    if type(estimator).__name__ == PIPELINE:
        last = estimator.steps[-1][1]
        if type(last).__name__ not in READERS:
            kind = type(last).__name__
            raise NotImportable(f"A pipeline that ends with {kind} cannot be imported: only one with a linear model.")
    classes = classes_of(last)
    coef = np.atleast_2d(np.asarray(last.coef_, np.float64))
    if len(coef) > 1 and not classes:
        raise NotImportable(f"{type(last).__name__} predicts several targets at once: fit one for each.")
    if len(classes) == 1:
        raise NotImportable("The estimator knows one class only.")
    inputs = _inputs(estimator)
    base = np.broadcast_to(np.asarray(last.intercept_, np.float64).ravel(), len(coef))
    plain = coef / inputs.scale
    rows = _probe_rows(inputs)
    own = named(rows, estimator)
    sums = np.asarray(_sums(estimator, last, own), np.float64).reshape(len(rows), -1)
    transform, predicted = _transform(estimator, last, own, sums)
    document = described(last, columns_of(estimator), rows) | {
        "format_name": "valiant-linear",
        "transform": transform,
        "base": (base - plain @ inputs.offset).tolist(),
        "coef": plain.tolist(),
        "fill": None if inputs.fill is None else inputs.fill.tolist(),
        "sums": sums.tolist(),
        "predictions": predicted.tolist(),
    }
    return written(document, classes)


def _inputs(estimator: Any) -> _Inputs:
    """Raises NotImportable for a step that is neither a scaler nor an imputer of numbers."""
    import numpy as np  # noqa: PLC0415

    d = estimator.n_features_in_
    offset, scale, fill = np.zeros(d), np.ones(d), None
    for _, step in estimator.steps[:-1] if type(estimator).__name__ == PIPELINE else ():
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
            move, unit = SCALERS[kind](step, d)
            offset, scale = offset + move * scale, scale * unit
        else:
            raise NotImportable(
                f"A pipeline with {kind} cannot be imported: only SimpleImputer, and then {', '.join(SCALERS)}."
            )
    return _Inputs(offset, scale, fill)


def _standard(step: Any, d: int) -> tuple[Any, Any]:
    import numpy as np  # noqa: PLC0415

    centre = getattr(step, "mean_", None) if hasattr(step, "with_mean") else getattr(step, "center_", None)
    moved = step.with_mean if hasattr(step, "with_mean") else step.with_centering
    scale = getattr(step, "scale_", None)
    return centre if moved and centre is not None else np.zeros(d), np.ones(d) if scale is None else scale


def _least_and_most(step: Any, _: int) -> tuple[Any, Any]:
    return -step.min_ / step.scale_, 1 / step.scale_


def _most(step: Any, d: int) -> tuple[Any, Any]:
    import numpy as np  # noqa: PLC0415

    return np.zeros(d), step.scale_


SCALERS = {
    "StandardScaler": _standard,
    "RobustScaler": _standard,
    "MinMaxScaler": _least_and_most,
    "MaxAbsScaler": _most,
}
"""By the name of the class: offset and scale (d,)."""


def _probe_rows(inputs: _Inputs) -> Any:
    """(n, d) around the offsets, in units of the scales, in which every column counts in every row."""
    import numpy as np  # noqa: PLC0415

    rng, d = np.random.default_rng(0), inputs.scale.size
    n = min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // d))
    rows = inputs.offset + inputs.scale * rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2, (n, 1))
    if inputs.fill is not None:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _sums(estimator: Any, last: Any, rows: Any) -> Any:
    """(n,) or (n, k), before the function of them."""
    import numpy as np  # noqa: PLC0415

    if classes_of(last):
        return estimator.decision_function(rows)
    with np.errstate(over="ignore"):
        values = estimator.predict(rows)
    return np.log(values) if READERS[type(last).__name__] == "exponential" else values


def _transform(estimator: Any, last: Any, rows: Any, sums: Any) -> tuple[str, Any]:
    """The function of the sums, and what it makes of them: (n, k) numbers, or probabilities."""
    import numpy as np  # noqa: PLC0415

    kind = type(last).__name__
    if not classes_of(last):
        return READERS[kind], np.asarray(estimator.predict(rows), np.float64).reshape(len(sums), -1)
    if not hasattr(estimator, "predict_proba"):
        if sums.shape[1] > 1:
            raise NotImportable(f"{kind} gives no probabilities of more than two classes: calibrate it there first.")
        return "step", (sums > 0).astype(np.float64)
    shares = np.asarray(estimator.predict_proba(rows), np.float64)
    if sums.shape[1] == 1:
        with np.errstate(over="ignore"):  # of a sum far below 0, whose probability is 0
            made, predicted = 1 / (1 + np.exp(-sums)), shares[:, 1:]
    else:
        powers = np.exp(sums - sums.max(axis=1, keepdims=True))
        made, predicted = powers / powers.sum(axis=1, keepdims=True), shares
    if not np.allclose(made, predicted, rtol=1e-9, atol=CLOSE):
        raise NotImportable(f"The probabilities of this {kind} are no logistic function, or softmax, of its sums.")
    return ("sigmoid" if sums.shape[1] == 1 else "softmax"), predicted


READERS = dict.fromkeys(
    (
        "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars", "LarsCV",
        "LassoLars", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit", "BayesianRidge", "ARDRegression",
        "HuberRegressor", "QuantileRegressor", "TheilSenRegressor", "SGDRegressor", "LinearSVR",
        "LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "RidgeClassifier", "RidgeClassifierCV",
        "LinearSVC", "Perceptron", "PassiveAggressiveClassifier", "LinearDiscriminantAnalysis",
    ),
    "identity",
) | {"PoissonRegressor": "exponential", "GammaRegressor": "exponential"}  # fmt: skip
"""By the name of the estimator's class: the function of the sums of numbers."""
