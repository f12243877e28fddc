"""Parameters that all support vector machines share: the kernel and the optimisation."""

from typing import Literal

from pydantic import Field

from app.ml.numerics.kernel_functions.kernel_params import KernelParams
from app.ml.numerics.support_vectors.smo import Settings


class MachineParams(KernelParams):
    """Kernel and optimisation of a support vector machine."""

    indefinite: Literal["reject", "project"] = Field(
        "reject",
        description="Treatment of a kernel that is not positive semidefinite: `reject` it, or `project` it onto the "
        "nearest kernel that is, by setting negative eigenvalues to 0 (up to 4,000 training rows).",
    )
    tol: float = Field(
        1e-3,
        gt=0,
        le=0.1,
        description="Stop when no pair of rows violates the conditions of the minimum by more, in units of the "
        "decision value, and the duality gap is at most this share of the objective.",
    )
    cache_size: float = Field(
        200.0, gt=0, le=100_000, description="Most memory that computed rows of the kernel take, in MiB."
    )
    max_iter: int = Field(
        10_000_000, ge=1, le=1_000_000_000, description="Maximum number of steps, each of two coefficients."
    )

    def settings(self) -> Settings:
        """Settings of the optimisation."""
        return Settings(self.tol, self.cache_size, self.max_iter)
