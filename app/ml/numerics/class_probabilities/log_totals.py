"""Logarithms of sums of exponentials, in a module without kernels: who takes a sum of scores compiles no trees."""

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector


def log_total(raw: Matrix) -> Vector:
    """Logarithm of the sum of e^raw over the classes, (n,)."""
    top = raw.max(axis=0)
    far = raw - top
    logs: Vector = top + np.log(np.exp(far, out=far).sum(axis=0))
    return logs
