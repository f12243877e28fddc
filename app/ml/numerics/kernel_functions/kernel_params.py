"""Parameters of every algorithm that stands on a kernel of two rows."""

import math
from typing import Literal, TypeAlias

import numpy as np
from pydantic import Field

from app.ml.contract.algorithm import Data, Params
from app.ml.numerics.kernel_functions.anova_kernel import Anova
from app.ml.numerics.kernel_functions.linear_kernel import Linear
from app.ml.numerics.kernel_functions.polynomial_kernel import Polynomial
from app.ml.numerics.kernel_functions.rbf_kernel import Rbf
from app.ml.numerics.kernel_functions.sigmoid_kernel import Sigmoid

Kernel: TypeAlias = Linear | Polynomial | Rbf | Sigmoid | Anova
"""Kernels that have a compiled form; an Rbf has one γ."""


class KernelParams(Params):
    """The kernel and its parameters."""

    kernel: Literal["linear", "poly", "rbf", "sigmoid", "anova"] = Field(
        "rbf",
        description="Kernel of two rows. `linear`: x·y; `poly`: (gamma x·y + coef0)^degree; `rbf`: "
        "exp(-gamma ‖x - y‖²); `sigmoid`: tanh(gamma x·y + coef0), which is rarely positive semidefinite; `anova`: "
        "(sum over columns of exp(-gamma (x - y)²))^degree. Unused where the kernel of all pairs is given.",
    )
    gamma: float | None = Field(
        None,
        gt=0,
        le=1e12,
        description="Factor in the kernel; null: 1/(columns · variance of all numbers). Unused by the linear kernel.",
    )
    degree: int = Field(3, ge=1, le=20, description="Degree of the kernels poly and anova; unused by others.")
    coef0: float = Field(
        0.0, ge=-1e12, le=1e12, description="Constant in the kernels poly and sigmoid; unused by others."
    )

    @property
    def definite(self) -> bool:
        """True if the kernel is positive semidefinite for any rows."""
        return self.kernel in {"linear", "rbf", "anova"} or (self.kernel == "poly" and self.coef0 >= 0)

    def function(self, gamma: float) -> Kernel:
        """The kernel of two rows."""
        match self.kernel:
            case "linear":
                return Linear()
            case "poly":
                return Polynomial(gamma, self.degree, self.coef0)
            case "rbf":
                return Rbf(np.array([gamma]))
            case "sigmoid":
                return Sigmoid(gamma, self.coef0)
            case "anova":
                return Anova(gamma, self.degree)

    def dimensions(self, columns: int) -> float:
        """Dimension of the space of features."""
        sizes = {"linear": columns, "poly": math.comb(columns + self.degree, self.degree)}
        return float(sizes.get(self.kernel, math.inf))


def gamma_of(params: KernelParams, data: Data) -> float:
    """The factor in the kernel: that of the parameters, or of the data; 1 where the kernel has none."""
    if params.gamma is not None or data.square is not None or params.kernel == "linear":
        return params.gamma or 1.0
    share = data.weights / data.weights.sum()
    centred = data.x - share @ data.x.mean(axis=1) if data.x.size else data.x
    variance = float(share @ np.square(centred).mean(axis=1)) if data.x.size else 0.0
    return 1.0 / (data.x.shape[1] * variance) if variance > 0 else 1.0
