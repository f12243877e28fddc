"""Densities of classes without a family: a histogram of each column, and a normal kernel about each row (Parzen).

Sources: Parzen (1962), Ann. Math. Statist. 33:1065; Scott (1992), Multivariate Density Estimation.
"""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.ml.contract.algorithm import Data, Labels, Matrix, Vector
from app.ml.numerics.density.normal import Normals
from app.ml.numerics.neighbours.distances import squared_distances
from app.ml.numerics.scaling import standardised

BLOCK = 2**18
"""Distances worked on at a time."""


class Histograms(NamedTuple):
    low: Vector
    """(d,) lowest value of each column."""
    width: Vector
    """(d,) of a bin; infinite for a constant column."""
    logs: NDArray[np.float64]
    """(k, d, bins) log densities: −inf where nothing was seen and nothing added."""


def histograms(data: Data, bins: int, smoothing: float) -> Histograms:
    """Bins of equal width over the range of all rows; `smoothing` rows are added to each bin of each class."""
    k, d = data.targets.shape[1], data.x.shape[1]
    low = data.x.min(axis=0)
    with np.errstate(over="ignore"):
        width = (data.x.max(axis=0) - low) / bins
    width = np.where(width > 0, width, np.inf)
    counts, rows = np.empty((k, d, bins)), data.codes * bins
    for j in range(d):
        cells = rows + _places(data.x[:, j], low[j], width[j], bins)
        counts[:, j] = np.bincount(cells, data.weights, k * bins).reshape(k, bins)
    counts += smoothing
    mass = counts.sum(axis=2, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.log(counts / np.where(mass > 0, mass, 1.0)) - np.log(width)[:, None]
    logs[:, np.isinf(width)] = 0.0
    return Histograms(low, width, logs)


def histogram_log_densities(histograms: Histograms, x: Matrix) -> Matrix:
    """(n, k). Beyond the range the outermost bins go on."""
    k, d, bins = histograms.logs.shape
    places = _places(x, histograms.low, histograms.width, bins)
    scores = np.zeros((len(x), k))
    for j in range(d):
        scores += histograms.logs[:, j].T[places[:, j]]
    return scores


def _places(x: NDArray[np.float64], low: NDArray[np.float64], width: NDArray[np.float64], bins: int) -> Labels:
    with np.errstate(over="ignore"):
        return np.clip((x - low) / width, 0, bins - 1).astype(np.intp)


class Kernels(NamedTuple):
    rows: Matrix
    """(m, d) in standard deviations of all rows, class by class."""
    ends: Labels
    """(k,) where each class ends."""
    logs: Vector
    """(m,) logarithms of the share of each row in its class."""
    centre: Vector
    scale: Vector
    """Scale of the columns, as in `Normals`."""
    inverse: Matrix
    """(k, d) one over the width of the kernel."""
    constants: Vector
    """(k,) log density of a kernel at its middle."""


def kernels(data: Data, normals: Normals, bandwidth: float) -> Kernels:
    """Kernels as wide as by Scott's rule for the normal densities of independent columns, times `bandwidth`.

    A row of weight w counts as w rows.
    """
    order = np.lexsort((*data.x.T[::-1], data.weights, data.codes))
    k, d = normals.means.shape
    mass = data.weights @ data.targets
    shrink = bandwidth * np.where(mass > 0, mass, 1.0) ** (-1 / (d + 4))
    inner = np.asarray(normals.inner) / shrink[:, None]
    varying = int(np.isfinite(normals.scale).sum())
    constants = normals.constants - varying * np.log(shrink)
    logs = np.log(data.weights / mass[data.codes])
    rows = standardised(data.x, normals.centre, normals.scale)
    ends = np.cumsum(np.bincount(data.codes, minlength=k))
    return Kernels(rows[order], ends, logs[order], normals.centre, normals.scale, inner, constants)


def kernel_log_densities(kernels: Kernels, x: Matrix) -> Matrix:
    """(n, k), by blocks; −inf for a class without rows."""
    scores = np.full((len(x), len(kernels.ends)), -np.inf)
    step = max(1, BLOCK // len(kernels.rows))
    for start in range(0, len(x), step):
        block = slice(start, start + step)
        u = standardised(x[block], kernels.centre, kernels.scale)
        for c, (begin, end) in enumerate(zip(np.append(0, kernels.ends[:-1]), kernels.ends, strict=True)):
            if end > begin:
                inverse = kernels.inverse[c]
                squares = squared_distances(u * inverse, kernels.rows[begin:end] * inverse)
                heights = kernels.logs[begin:end] - squares / 2
                scores[block, c] = kernels.constants[c] + scipy.special.logsumexp(heights, axis=1)
    return scores
