"""Nearest neighbours and their votes as tensors."""

import numpy as np

from app.ml.contract.algorithm import Matrix
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.neighbours.metric_space import MetricSpace
from app.ml.numerics.neighbours.named_metrics import NamedMetric
from app.ml.numerics.neighbours.neighbour_votes import LEAD
from app.ml.numerics.scaling import MAX_SCALED
from app.ml.numerics.tensor_graphs.class_tensors import normalised
from app.ml.numerics.tensor_graphs.distance_tensors import minkowski_distances_to, standardised_columns


def neighbour_tensors(metric: NamedMetric, points: Matrix, count: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """(n, k) distances of the nearest of the points (m, r), nearest first, and their places."""
    distances = minkowski_distances_to(points, metric_points(metric, x), metric.p)
    far, places = distances.smallest(min(count, len(points)))
    return far * far / 2.0 if metric.name == "cosine" else far, places


def nearest_by_metric(metric: NamedMetric, points: Matrix, x: Tensor) -> Tensor:
    """(n, 1) whole numbers: the nearest of the points (m, r), the first of equally near ones."""
    return minkowski_distances_to(points, metric_points(metric, x), metric.p).first_smallest()


def metric_points(metric: NamedMetric, x: Tensor) -> Tensor:
    """(n, r) as `NamedMetric.points`."""
    if metric.name == "cosine":
        return _directions(x)
    return x if metric.space is None else _space_points(metric.space, x)


def _space_points(space: MetricSpace, x: Tensor) -> Tensor:
    u = standardised_columns(x, space.centre, space.scale, MAX_SCALED)
    return u if space.turn is None else u @ space.turn


def _directions(x: Tensor) -> Tensor:
    wide = x.beside(x.repeated(np.zeros(1)))
    largest = wide.apply("Abs").reduce("ReduceMax")
    is_zero = largest.combine("Equal", 0.0)
    last = np.append(np.zeros(x.width), 1.0)[None]
    u = wide / (largest + is_zero.to_numbers()) + is_zero.to_numbers() * last
    return u / u.reduce("ReduceSumSquare").apply("Sqrt")


def share_tensor(weights: Tensor, far: Tensor, offset: float | None) -> Tensor:
    """(n, k) as `shares` of neighbours."""
    if offset is not None:
        shifted = far + offset
        nearest = shifted[[0]]
        sole, there = nearest.combine("Equal", 0.0), shifted > 0.0
        inverse = nearest / shifted.where(there, 1.0)
        weights = weights * (~there).to_numbers().where(sole, inverse)
    return normalised(weights / weights.reduce("ReduceMax"))


def vote_tensor(codes: Tensor, counts: Tensor, classes: int) -> Tensor:
    """(n, classes) as `votes`: of classes with equal votes the one with the nearest row leads."""
    class_masks = [codes.combine("Equal", float(c)).to_numbers() for c in range(classes)]
    votes = [(mask * counts).sum_in_order() for mask in class_masks]
    tallies = votes[0].beside(*votes[1:])
    best = (tallies >= tallies.reduce("ReduceMax") * (1 - 1e-12)).to_numbers()
    is_tied = best.reduce("ReduceSum") > 1.5
    leads = class_masks[0] * best[[0]]
    for c in range(1, classes):
        leads = leads + class_masks[c] * best[[c]]
    first = leads.first_largest().combine("Equal", np.arange(codes.width)[None]).to_numbers()
    winner = (codes * first).reduce("ReduceSum").combine("Equal", np.arange(classes, dtype=float)[None])
    return normalised(tallies + LEAD * (winner & is_tied).to_numbers())
