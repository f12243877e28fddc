"""Scores → class probabilities as tensors, with the formulas that the algorithms use for arrays."""

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix, Vector
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.class_probabilities.calibrator import MIN_PROBABILITY, Calibrator, mapped
from app.ml.numerics.class_probabilities.link_functions import LinkedSums
from app.ml.numerics.ensembles.agreement import ROUNDING
from app.ml.numerics.linear_models.softmax import MAX_EXPONENT


def softmax_shares(scores: Tensor) -> Tensor:
    """(n, k) probabilities of scores (n, k)."""
    return normalised((scores - scores.reduce("ReduceMax")).apply("Exp"))


def normalised(shares: Tensor) -> Tensor:
    """(n, k) divided by the sum of the row."""
    return shares / shares.reduce("ReduceSum")


def logistic_share(scores: Tensor) -> Tensor:
    """1/(1 + exp(-score)). ONNX's own Sigmoid is wrong by up to 5.5e-8 with 64 bits."""
    return 1.0 / (1.0 + (-scores).combine("Min", MAX_EXPONENT).apply("Exp"))


def two_shares(log_odds: Tensor) -> Tensor:
    """(n, 2) of the log odds (n, 1) of the second class, each with all its digits."""
    return logistic_share((-log_odds).beside(log_odds))


def with_first(second: Tensor) -> Tensor:
    """(n, 2) of the probability (n, 1) of the second class."""
    return (1.0 - second).beside(second)


def sign_shares(scores: Tensor) -> Tensor:
    """(n, k) as `sign_probabilities`: (1 + score)/2, cut off at 0; where nothing is left the largest takes all."""
    shares = ((1.0 + scores) / 2.0).combine("Max", 0.0)
    largest = scores.combine("Equal", scores.reduce("ReduceMax")).to_numbers()
    return normalised(largest.where(shares.reduce("ReduceSum").combine("Equal", 0.0), shares))


def score_shares(scores: Tensor, seen: NDArray[np.bool_], *, logistic: bool) -> Tensor:
    """(n, k) as `class_probabilities` of scores (n, s), one for each class or of two that of the second."""
    places = np.flatnonzero(seen)
    if places.size == 1:
        return scores.repeated(seen.astype(float))
    if scores.width == 1:
        shares = with_first(logistic_share(scores)) if logistic else sign_shares((-scores).beside(scores))
        return shares if seen.size == 2 else spread_columns(shares, places, seen.size)
    seen_scores = scores if places.size == scores.width else scores[places]
    return spread_columns(softmax_shares(seen_scores) if logistic else sign_shares(seen_scores), places, seen.size)


def spread_columns(shares: Tensor, places: NDArray[np.integer], width: int) -> Tensor:
    """(n, width) with these columns at their places, and 0 in others."""
    if shares.width == width and (places == np.arange(width)).all():
        return shares
    padded = shares.beside(shares.repeated(np.zeros(1)))
    sources = np.full(width, shares.width)
    sources[places] = np.arange(shares.width)
    return padded[sources]


def majority_votes(shares: Tensor) -> Tensor:
    """(n, k) 1 for the first of the most probable classes, 0 for others."""
    return with_gaps(shares.first_largest().combine("Equal", np.arange(shares.width)[None]).to_numbers(), shares)


def with_gaps(result: Tensor, source: Tensor) -> Tensor:
    """The result, which is NaN where the source has a NaN: comparisons would lose it."""
    return result + source.reduce("ReduceSum") * 0.0


def linked_values(params: LinkedSums, sums: Tensor, *, classifies: bool) -> Tensor:
    """The counterpart of `predicted`: (n, 1) numbers, or (n, k) probabilities of at least two classes."""
    match params.transform:
        case "sigmoid" | "one_against_rest":
            values = 1.0 / (1.0 + (-params.sigmoid * sums).apply("Exp"))
        case "softmax":
            values = softmax_shares(sums)
        case "step":
            values = sums.where(sums.apply("IsNaN"), (sums > 0.0).to_numbers())
        case "exponential":
            values = sums.apply("Exp")
        case "log_exponential":
            values = sums.combine("Max", 0.0) + log_one_more((-sums.apply("Abs")).apply("Exp"))
        case "signed_square":
            values = sums * sums.apply("Abs")
        case _:
            values = sums
    if not classifies:
        return values[[0]] if values.width > 1 else values
    return with_first(values) if values.width == 1 else values


def log_one_more(values: Tensor) -> Tensor:
    """log(1 + v) of v ≥ 0, to all digits: v log(u)/(u − 1) with the rounded u = 1 + v (Goldberg 1991, theorem 4)."""
    more = 1.0 + values
    is_one = more.combine("Equal", 1.0)
    return values.where(is_one, values * more.apply("Log") / (more - 1.0).where(~is_one, 1.0))


def sum_tensors(parts: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape, in their order."""
    return reduce(Tensor.__add__, parts)


def calibrated_votes(votes: Tensor, voters: int, powers: Vector) -> Tensor:
    """(n, k) as `app.ml.numerics.ensembles.calibration.probabilities`."""
    if votes.width == 1:
        return votes.repeated(np.ones(1))
    total = float(voters)
    scores = powers[0] * (votes / total) + powers[1] * ((votes + 0.5) / (total + votes.width / 2)).apply("Log")
    return softmax_shares(scores)


def accepted_tensor(shares: Tensor, min_probability: float, min_margin: float) -> Tensor:
    """(n, 1) truths as `accepted`, with one least probability for all classes."""
    best = shares.reduce("ReduceMax")
    enough = best >= min_probability - ROUNDING
    if shares.width == 1:
        return enough & (best >= min_margin - ROUNDING)
    (two, _) = (-shares).smallest(2)
    return enough & (best + two[[1]] >= min_margin - ROUNDING)


def calibrator_tensor(calibrator: Calibrator, shares: Tensor) -> Tensor:
    """(n, k) from (n, k) as `app.ml.numerics.class_probabilities.calibrator.calibrated`."""
    classes = mapped(shares.width)
    columns = [_calibrated_column(calibrator, place, shares[[c]]) for place, c in enumerate(classes)]
    if shares.width == 2:
        return with_gaps(with_first(columns[0]), shares)
    total = sum_tensors(columns)
    there = total > 0.0
    return with_gaps((columns[0].beside(*columns[1:]) / total.where(there, 1.0)).where(there, shares), shares)


def _calibrated_column(calibrator: Calibrator, place: int, p: Tensor) -> Tensor:
    if len(calibrator.coef):
        slope, intercept = calibrator.coef[place].tolist()
        held = p.combine("Max", MIN_PROBABILITY).combine("Min", 1 - MIN_PROBABILITY)
        return logistic_share(slope * (held.apply("Log") - (1.0 - held).apply("Log")) + intercept)
    return interpolated(p, *np.split(calibrator.knots, calibrator.ends[:-1])[place].T)


def interpolated(x: Tensor, knots: Vector, heights: Vector) -> Tensor:
    """(n, 1) as `np.interp`: straight lines between knots (m,), and the outermost heights beyond them."""
    if knots.size == 1:
        return x.repeated(heights[:1])
    last = float(knots.size - 2)
    place = (x >= knots[None]).to_numbers().reduce("ReduceSum") - 1.0
    lower = place.combine("Max", 0.0).combine("Min", last).to_integers()
    slopes = np.diff(heights) / np.diff(knots)
    between = lower.among(slopes) * (x - lower.among(knots)) + lower.among(heights)
    inside = between.where(x > float(knots[0]), float(heights[0]))
    return inside.where(x < float(knots[-1]), float(heights[-1]))


class LinearState(Protocol):
    @property
    def coef(self) -> Matrix: ...
    @property
    def intercept(self) -> Vector: ...
    @property
    def seen(self) -> NDArray[np.bool_]: ...


class LinearParams(Protocol):
    @property
    def class_loss(self) -> str: ...


def linear_shares(params: LinearParams, state: LinearState, x: Tensor) -> Tensor:
    """(n, 1) numbers, or (n, k) probabilities, of linear scores with coefficients (s, d)."""
    scores = x @ state.coef.T + state.intercept
    return score_shares(scores, state.seen, logistic=params.class_loss == "logistic") if state.seen.size else scores


class SharpState(Protocol):
    @property
    def seen(self) -> NDArray[np.bool_]: ...
    @property
    def sharpness(self) -> float: ...


def sharp_shares(weights: Matrix, state: SharpState, x: Tensor) -> Tensor:
    """(n, k) probabilities of planes (k, d + 1), the last column their constants; NaN as sharpness: shares of signs."""
    seen = np.flatnonzero(state.seen)
    scores = x @ weights[seen, :-1].T + weights[seen, -1]
    shares = sign_shares(scores) if np.isnan(state.sharpness) else softmax_shares(state.sharpness * scores)
    return spread_columns(shares, seen, state.seen.size)
