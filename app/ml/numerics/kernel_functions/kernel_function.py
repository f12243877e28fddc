"""Kernels: their values for all that have one, and their parameters for those that learn them."""

from typing import NamedTuple, Protocol, Self

from app.ml.contract.algorithm import Matrix, Vector


class KernelFunction(Protocol):
    """A symmetric function k(x, y) of two rows."""

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values of k for rows (n, d) and (m, d)."""
        ...

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) values of k(x, x) for rows (n, d)."""
        ...


class WeightedSum(NamedTuple):
    """A sum of the values of a kernel."""

    value: float
    gradient: Vector
    """(p,) derivatives by the logarithms of the parameters."""


class CovarianceFunction(KernelFunction, Protocol):
    """A positive semidefinite kernel whose parameters are learned, by their logarithms."""

    def logarithms(self) -> Vector:
        """(p,) natural logarithms of the parameters."""
        ...

    def with_logarithms(self, values: Vector) -> Self:
        """The kernel with parameters of these logarithms (p,)."""
        ...

    def weighted_sum(self, rows: Matrix, weights: Matrix) -> WeightedSum:
        """Σᵢⱼ wᵢⱼ k(xᵢ, xⱼ) for rows (n, d) and symmetric weights (n, n).

        Needs a few (n, n) arrays at once, however many parameters there are.
        """
        ...
