"""Kernels: their values for all that have one, and their parameters for those that learn them."""

from typing import Protocol, Self

from app.ml.contract.algorithm import Matrix, Vector


class KernelFunction(Protocol):
    """A symmetric function k(x, y) of two rows."""

    def matrix(self, left: Matrix, right: Matrix) -> Matrix:
        """(n, m) values of k for rows (n, d) and (m, d)."""
        ...

    def diagonal(self, rows: Matrix) -> Vector:
        """(n,) values of k(x, x) for rows (n, d)."""
        ...


class CovarianceFunction(KernelFunction, Protocol):
    """A positive semidefinite kernel whose parameters are learned, by their logarithms."""

    def logarithms(self) -> Vector:
        """(p,) natural logarithms of the parameters."""
        ...

    def with_logarithms(self, values: Vector) -> Self:
        """The kernel with parameters of these logarithms (p,)."""
        ...

    def weighted_gradient(self, rows: Matrix, weights: Matrix) -> Vector:
        """(p,) derivatives of Σᵢⱼ wᵢⱼ k(xᵢ, xⱼ) by each logarithm, for rows (n, d) and symmetric weights (n, n).

        Needs a few (n, n) arrays at once, however many parameters there are.
        """
        ...
