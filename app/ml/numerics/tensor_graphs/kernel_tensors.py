"""Kernels of rows with stored points as tensors."""

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.contract.export_errors import ExportUnsupported
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.gaussian_processes.measured_function import MeasuredFunction
from app.ml.numerics.kernel_functions.anova_kernel import Anova
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.matern_kernel import Matern
from app.ml.numerics.kernel_functions.periodic_kernel import Periodic
from app.ml.numerics.kernel_functions.polynomial_kernel import Polynomial
from app.ml.numerics.kernel_functions.product_kernel import Product
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.scaled_kernel import Scaled
from app.ml.numerics.kernel_functions.sigmoid_kernel import Sigmoid
from app.ml.numerics.kernel_functions.sum_kernel import Sum
from app.ml.numerics.tensor_graphs.distance_tensors import squared_distances_to


def kernel_values(kernel: object, points: Matrix, x: Tensor) -> Tensor:
    """(n, m) values of the kernel of rows with points (m, d). Raises ExportUnsupported for one that has no formula."""
    match kernel:
        case Linear():
            return x @ points.T
        case Polynomial():
            return (kernel.gamma * (x @ points.T) + kernel.coef0).combine("Pow", float(kernel.degree))
        case Sigmoid():
            return (kernel.gamma * (x @ points.T) + kernel.coef0).apply("Tanh")
        case Rbf():
            root = np.sqrt(kernel.gamma)
            return (-squared_distances_to(points * root, x * root[None])).apply("Exp")
        case Anova():
            return _anova(kernel, points, x)
    return _process_values(kernel, points, x)


def _anova(kernel: Anova, points: Matrix, x: Tensor) -> Tensor:
    total = x.repeated(np.zeros(len(points)))
    for column in range(points.shape[1]):
        difference = x[[column]] - np.ascontiguousarray(points[:, column])[None]
        total = total + (-kernel.gamma * (difference * difference)).apply("Exp")
    return total.combine("Pow", float(kernel.degree))


def _process_values(kernel: object, points: Matrix, x: Tensor) -> Tensor:
    match kernel:
        case Scaled():
            return kernel.variance * kernel_values(kernel.kernel, points, x)
        case Sum():
            return kernel_values(kernel.first, points, x) + kernel_values(kernel.second, points, x)
        case Product():
            return kernel_values(kernel.first, points, x) * kernel_values(kernel.second, points, x)
        case Matern():
            return _matern(kernel, points, x)
        case Periodic():
            return _periodic(kernel, points, x)
    raise ExportUnsupported(f"A kernel of the kind {type(kernel).__name__} has no operators in ONNX.")


def _matern(kernel: Matern, points: Matrix, x: Tensor) -> Tensor:
    length = kernel.length_scale
    s = (float(kernel.order) * squared_distances_to(points / length, x / length[None])).apply("Sqrt")
    fall = (-s).apply("Exp")
    if kernel.order == 1:
        return fall
    return fall * (1.0 + s * (1.0 + s / 3.0)) if kernel.order == 5 else fall * (1.0 + s)


def _periodic(kernel: Periodic, points: Matrix, x: Tensor) -> Tensor:
    """By points on circles, as the kernel itself is computed."""
    angles, point_angles = x * (2 * np.pi / kernel.period)[None], 2 * np.pi * (points / kernel.period)
    gamma = 0.5 / np.broadcast_to(kernel.length_scale, points.shape[1:]) ** 2
    root = np.sqrt(np.tile(gamma, 2))
    circles = angles.apply("Sin").beside(angles.apply("Cos"))
    return (
        -squared_distances_to(np.hstack([np.sin(point_angles), np.cos(point_angles)]) * root, circles * root[None])
    ).apply("Exp")


def function_tensor(function: MeasuredFunction, x: Tensor) -> Tensor:
    """(n, 1) the mean of a Gaussian process."""
    rows = (x - function.centre) * function.scale
    values = kernel_values(function.kernel, function.posterior.points, rows)
    return function.middle + function.unit * (values @ function.posterior.coef)
