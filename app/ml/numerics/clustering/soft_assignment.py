"""Soft assignments of rows to centres: memberships that fall with the squared distance, and the centres that fit them.

References: Rose, Gurewitz & Fox (1990), Pattern Recogn. Lett. 11:589; MacKay (2003), Information Theory, Inference, and
Learning Algorithms, chs. 20, 22; Varadhan & Roland (2008), Scand. J. Stat. 35:335.
"""

from typing import NamedTuple

import numpy as np

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.numerics.clustering.compiled.online_steps import online_pass
from app.ml.numerics.neighbours.distances import norms, squared_distances
from app.ml.numerics.row_blocks import blocks

MAX_EXPANDED_EXPONENT = 0.1
"""Exponents below which the logarithm of a sum of exponentials near 1 would lose digits."""


class Run(NamedTuple):
    """The end of one start."""

    centres: Matrix
    objective: list[float]
    """Free energy of the first centres and after each pass."""
    converged: bool


def memberships(x: Matrix, centres: Matrix, stiffness: float) -> tuple[Matrix, Vector]:
    """(n, k) shares exp(−β‖x − c‖²) / Σ exp(−β‖x − c‖²), and the free energy of each row (n,).

    The free energy is −log(Σ exp(−β‖x − c‖²) / k) / β: the mean squared distance where β is small, the least where it
    is large.
    """
    exponents = squared_distances(x, centres)
    least = exponents.min(axis=1)
    exponents -= least[:, None]
    exponents *= -stiffness
    if exponents.min(initial=0.0) > -MAX_EXPANDED_EXPONENT:
        energy = least - np.log1p(np.expm1(exponents).mean(axis=1)) / stiffness
        shares = np.exp(exponents)
        total = shares.sum(axis=1)
    else:
        shares = np.exp(exponents, out=exponents)
        total = shares.sum(axis=1)
        energy = least - np.log(total / len(centres)) / stiffness
    shares /= total[:, None]
    return shares, energy


def masses(x: Matrix, weights: Vector, centres: Matrix, stiffness: float) -> Vector:
    """(k,) sum of the weighted memberships of each centre."""
    parts = blocks(len(x), len(centres) + x.shape[1])
    total: Vector = np.sum([weights[block] @ memberships(x[block], centres, stiffness)[0] for block in parts], axis=0)
    return total


class Problem(NamedTuple):
    x: Matrix
    weights: Vector
    stiffness: float
    tol: float
    """Distance within which a centre is at rest."""

    def energy(self, centres: Matrix) -> float:
        return free_energy(self.x, self.weights, centres, self.stiffness)

    def rests(self, before: Matrix, after: Matrix, rate: float = 1.0) -> bool:
        return bool(norms(after - before).max() <= (rate * self.tol) ** 2)


class _Step(NamedTuple):
    centres: Matrix
    """Means of the rows, weighted by their memberships of the centres before."""
    energy: float
    """Free energy of the centres before."""


def _step(problem: Problem, centres: Matrix) -> _Step:
    x, weights, stiffness, _ = problem
    sums, total, energy = np.zeros_like(centres), np.zeros(len(centres)), 0.0
    origin = centres.mean(axis=0)
    for block in blocks(len(x), len(centres) + x.shape[1]):
        shares, energies = memberships(x[block], centres, stiffness)
        shares *= weights[block, None]
        sums += shares.T @ (x[block] - origin)
        total += shares.sum(axis=0)
        energy += float(weights[block] @ energies)
    reached = total > 0
    moved = centres.copy()
    moved[reached] = origin + sums[reached] / total[reached, None]
    return _Step(moved, energy)


def free_energy(x: Matrix, weights: Vector, centres: Matrix, stiffness: float) -> float:
    """Weighted sum of the free energies of the rows."""
    parts = blocks(len(x), len(centres) + x.shape[1])
    return sum(float(weights[block] @ memberships(x[block], centres, stiffness)[1]) for block in parts)


def batch(problem: Problem, centres: Matrix, max_iter: int) -> Run:
    """Move all centres to the means of their members, until each is at rest, or so many times.

    Each move minimises an upper bound of the free energy, which therefore never rises. After every second one the
    centres are extrapolated, and stay so if that lowers the free energy.
    """
    step = _step(problem, centres)
    curve = [step.energy]
    while not (rests := problem.rests(centres, step.centres)) and len(curve) <= max_iter:
        further = _step(problem, step.centres)
        curve.append(min(further.energy, curve[-1]))
        jump = _extrapolated(centres, step.centres, further.centres)
        beyond = _step(problem, jump)
        if beyond.energy <= further.energy and len(curve) <= max_iter:
            centres, step = jump, beyond
            curve.append(min(beyond.energy, curve[-1]))
        else:
            centres, step = step.centres, further
    return Run(centres, curve, rests)


def _extrapolated(zero: Matrix, first_step: Matrix, two: Matrix) -> Matrix:
    """The place to which two moves in turn lead, if each is a share of the one before (Varadhan & Roland, SqS3)."""
    first, bend = first_step - zero, (two - first_step) - (first_step - zero)
    length = float(np.linalg.norm(bend))
    ratio = max(1.0, float(np.linalg.norm(first)) / length) if length else 1.0
    extrapolated: Matrix = zero + 2 * ratio * first + ratio**2 * bend
    return extrapolated


class Pace(NamedTuple):
    learning_rate: float
    epochs: int


def online(problem: Problem, centres: Matrix, pace: Pace, rng: np.random.Generator) -> Run:
    """Move the centres after each row, in a new order with each pass; the rate falls as 1 / passes."""
    x, weights, stiffness, _ = problem
    centres, room = np.array(centres, order="C"), np.empty(len(centres))
    curve, converged = [problem.energy(centres)], False
    while not converged and len(curve) <= pace.epochs:
        last, rate = centres.copy(), pace.learning_rate / len(curve)
        online_pass(x, weights, rng.permutation(len(x)), stiffness, rate, centres, room)
        curve.append(problem.energy(centres))
        converged = problem.rests(last, centres, rate)
    return Run(centres, curve, converged)
