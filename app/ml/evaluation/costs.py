"""Mistakes that do not cost the same (LION 3.3): the cheapest decision, and what decisions have cost.

The expected cost of assigning class j to a row of probabilities p is Σᵢ pᵢ Cᵢⱼ; the cheapest j is assigned, the first
on a tie. Where rejecting has a price, a row whose cheapest class is expected to cost more is rejected.

References: Chow (1970), IEEE Trans. Inf. Theory 16:41; Elkan (2001), IJCAI, The foundations of cost-sensitive learning.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import Field

from app.base.faults import Fault
from app.base.wire import Body, Wire
from app.ml.contract.algorithm import Labels, Matrix
from app.ml.contract.labels import Class, Label, codes_of
from app.ml.evaluation.confusion_matrix import ConfusionMatrix
from app.ml.evaluation.metrics import confusion
from app.ml.numerics.ensembles.agreement import reaches
from app.ml.statistics.metric_value import Metric, bootstrapped
from app.ml.statistics.resampling import Rows

REJECTED = -1


class Costs(Body):
    """Cost matrix."""

    classes: list[Label] = Field(min_length=2, max_length=1000, description="The order of rows and columns.")
    costs: list[list[float]] = Field(description="costs[i][j]: of assigning class j to a row of class i.")
    reject: float | None = Field(None, description="Cost of a rejected row; null: no row is rejected.")


class CostReport(Wire):
    """Mean cost of predictions."""

    cost: Metric = Field(description="Mean cost of the cheapest class by the probabilities, or of the given classes.")
    cost_of_most_probable: Metric | None = Field(
        None, description="Mean cost of the most probable class; null where classes were given."
    )
    rejected: Metric | None = Field(None, description="The share of rows that was cheaper to reject.")
    threshold: float | None = Field(
        None,
        description="Probability of the second of two classes above which it is the cheapest; null for more classes.",
    )
    confusion_matrix: ConfusionMatrix | None = Field(
        None, description="Confusion matrix of the cheapest classes, without rejected rows."
    )


def cost_faults(costs: Costs, labels: Sequence[Class], pointer: str) -> Iterator[Fault]:
    """known: the classes there are, in any order."""
    k = len(costs.classes)
    if sorted(codes_of(costs.classes, labels).tolist()) != list(range(len(labels))):
        yield Fault(f"{pointer}/classes", f"Each of the {len(labels)} classes has to be named, once.")
    if len(costs.costs) != k:
        yield Fault(f"{pointer}/costs", f"There are {len(costs.costs)} rows for {k} classes.")
    for place, row in enumerate(costs.costs):
        if len(row) != k:
            yield Fault(f"{pointer}/costs/{place}", f"There are {len(row)} costs for {k} classes.")


def cost_matrix(costs: Costs, labels: Sequence[Class]) -> Matrix:
    """(k, k) in the order of the known classes."""
    order = codes_of(labels, costs.classes)
    return np.array(costs.costs, np.float64)[np.ix_(order, order)]


def cheapest(probabilities: Matrix, cost: Matrix, reject: float | None = None) -> Labels:
    """The class (n,) that is expected to cost least, or `REJECTED`."""
    expected = probabilities @ cost
    chosen: Labels = expected.argmin(axis=1)
    if reject is None:
        return chosen
    size = float(np.abs(cost).max()) or 1.0
    chosen[~reaches(reject / size, expected.min(axis=1) / size)] = REJECTED
    return chosen


def threshold(cost: Matrix) -> float | None:
    """The probability of the second of two classes above which it is cheaper; None if none is."""
    if len(cost) != 2:
        return None
    false_alarm, miss = cost[0, 1] - cost[0, 0], cost[1, 0] - cost[1, 1]
    return float(false_alarm / (false_alarm + miss)) if false_alarm > 0 and miss > 0 else None


def cost_report(
    truth: Labels,
    assigned: Labels,
    probabilities: Matrix | None,
    rows: Rows,
    *,
    classes: Sequence[Class],
    costs: Costs,
) -> CostReport:
    """truth, assigned: codes (n,). probabilities: (n, k), if there are any."""
    matrix = cost_matrix(costs, classes)
    plain = _mean_cost("cost", matrix[truth, assigned], rows)
    if probabilities is None:
        return CostReport(cost=plain)
    chosen = cheapest(probabilities, matrix, costs.reject)
    accepted_rows = chosen != REJECTED
    price = np.where(accepted_rows, matrix[truth, chosen], 0.0 if costs.reject is None else costs.reject)
    whole = rows.tally(np.zeros(truth.size, np.intp), 1)
    return CostReport(
        cost=_mean_cost("cost", price, rows),
        cost_of_most_probable=plain,
        rejected=None if costs.reject is None else rows.share("rejected", rows.tally(-1 * accepted_rows, 1), whole),
        threshold=threshold(matrix),
        confusion_matrix=confusion(truth[accepted_rows], chosen[accepted_rows], classes),
    )


def _mean_cost(name: str, price: Matrix, rows: Rows) -> Metric:
    return bootstrapped(name, rows.mean(price), rows.means(price), price.size)
