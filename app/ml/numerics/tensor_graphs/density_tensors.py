"""Densities of classes and of mixtures as tensors."""

from typing import Protocol

import numpy as np

from app.ml.contract.algorithm import Vector
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.density.categorical import Categoricals
from app.ml.numerics.density.gaussian_mixture import MIN_LOG_DENSITY, Components, component_constants
from app.ml.numerics.density.multinomial import Multinomials
from app.ml.numerics.density.nonparametric import Histograms, Kernels
from app.ml.numerics.density.normal import Normals
from app.ml.numerics.scaling import MAX_SCALED
from app.ml.numerics.tensor_graphs.class_tensors import softmax_shares, sum_tensors, two_shares
from app.ml.numerics.tensor_graphs.distance_tensors import squared_distances_to, standardised_columns


class BayesDensities(Protocol):
    @property
    def log_priors(self) -> Vector: ...
    @property
    def normals(self) -> Normals | None: ...
    @property
    def histograms(self) -> Histograms | None: ...
    @property
    def kernels(self) -> Kernels | None: ...
    @property
    def multinomials(self) -> Multinomials | None: ...
    @property
    def categories(self) -> Categoricals | None: ...


def bayes_densities(state: BayesDensities, x: Tensor) -> Tensor:
    """(n, k) log densities, less what all classes of a row have in common."""
    categories = state.categories
    if categories is None:
        return _measured_densities(state, x)
    measured = np.ones(x.width)
    measured[categories.columns] = 0.0
    densities = _measured_densities(state, x * measured)
    return densities + (x[categories.columns] @ categories.weights + categories.constants)


def _measured_densities(state: BayesDensities, x: Tensor) -> Tensor:
    if state.normals is not None:
        return normal_densities(state.normals, x)
    if state.histograms is not None:
        densities = _histogram_densities(state.histograms, x)
    elif state.multinomials is not None:
        densities = x.combine("Max", 0.0) @ state.multinomials.log_shares.T
    elif state.kernels is not None:
        densities = _kernel_densities(state.kernels, x)
    else:
        return x.repeated(np.zeros(len(state.log_priors)))
    likeliest = densities[np.flatnonzero(np.isfinite(state.log_priors))].reduce("ReduceMax")
    return x.repeated(np.zeros(densities.width)).where(likeliest.combine("Equal", -np.inf), densities)


def normal_densities(normals: Normals, x: Tensor) -> Tensor:
    """(n, k) as `relative_log_densities`."""
    u = standardised_columns(x, normals.centre, normals.scale, MAX_SCALED)
    if normals.inner is None:
        coef = np.asarray(normals.turn) @ normals.means.T
        shift: Vector = normals.constants - (normals.means**2).sum(axis=1) / 2
        return u @ coef + shift
    z = u if normals.turn is None else u @ normals.turn
    parts: list[Tensor] = []
    for mean, inner, constant in zip(normals.means, normals.inner, normals.constants.tolist(), strict=True):
        gaps = (z - mean) * inner if inner.ndim == 1 else (z - mean) @ inner
        parts.append(constant - 0.5 * gaps.reduce("ReduceSumSquare"))
    return parts[0].beside(*parts[1:])


def _histogram_densities(histograms: Histograms, x: Tensor) -> Tensor:
    bins = histograms.logs.shape[2]
    places = ((x - histograms.low) / histograms.width).combine("Max", 0.0).combine("Min", float(bins - 1)).to_integers()
    columns = [places[[j]] for j in range(x.width)]
    by_class = [
        sum_tensors([place.among(np.ascontiguousarray(logs[j])) for j, place in enumerate(columns)])
        for logs in histograms.logs
    ]
    return by_class[0].beside(*by_class[1:])


def _kernel_densities(kernels: Kernels, x: Tensor) -> Tensor:
    u = standardised_columns(x, kernels.centre, kernels.scale, MAX_SCALED)
    parts: list[Tensor] = []
    for c, (begin, end) in enumerate(zip(np.append(0, kernels.ends[:-1]), kernels.ends, strict=True)):
        if end == begin:
            parts.append(x.repeated(np.array([-np.inf])))
            continue
        inverse = kernels.inverse[c]
        heights = kernels.logs[begin:end] - squared_distances_to(kernels.rows[begin:end] * inverse, u * inverse) / 2.0
        parts.append(float(kernels.constants[c]) + log_sum_tensor(heights))
    return parts[0].beside(*parts[1:])


def log_sum_tensor(heights: Tensor) -> Tensor:
    """(n, 1) log Σ exp."""
    largest = heights.reduce("ReduceMax")
    return largest + (heights - largest).apply("Exp").reduce("ReduceSum").apply("Log")


def mixture_joint(components: Components, x: Tensor) -> Tensor:
    """(n, k) as `log_joint`."""
    parts: list[Tensor] = []
    constants = component_constants(components).tolist()
    for mean, whitening, constant in zip(components.means, components.whitening, constants, strict=True):
        gaps = (x - mean) @ whitening.T if components.full else (x - mean) * whitening[0]
        parts.append(constant - gaps.reduce("ReduceSumSquare") / 2.0)
    return parts[0].beside(*parts[1:]).combine("Max", MIN_LOG_DENSITY)


def bayes_shares(_: object, state: BayesDensities, x: Tensor) -> Tensor:
    """(n, k) probabilities by Bayes' rule."""
    joint = bayes_densities(state, x) + state.log_priors
    if len(state.log_priors) == 2 and np.isfinite(state.log_priors).all():
        return two_shares(joint[[1]] - joint[[0]])
    return softmax_shares(joint)
