"""Information criteria of a density: how well it describes its training rows, less what its parameters cost.

References: Akaike (1974), IEEE Trans. Autom. Control 19:716; Schwarz (1978), Ann. Stat. 6:461.
"""

import math

from app.ml.contract.algorithm import Vector
from app.ml.statistics.intervals import Resamples
from app.ml.statistics.metric_value import Metric, bootstrapped
from app.ml.statistics.resampling import Rows


def information_criteria(logs: Vector, parameters: float, draws: Resamples) -> list[Metric]:
    """BIC and AIC of log densities (n,) of the training rows. parameters: free ones of the fit.

    Intervals are of this density, on as many other rows.
    """
    n, rows = logs.size, Rows(draws)
    total, drawn = -2 * logs.sum(), -2 * n * rows.means(logs)
    costs = {"bic": (math.log(n), "log n"), "aic": (2.0, "2")}
    return [
        bootstrapped(name, total + cost * parameters, drawn + cost * parameters, n).model_copy(
            update={"note": _note(each, parameters)}
        )
        for name, (cost, each) in costs.items()
    ]


def _note(each: str, parameters: float) -> str:
    return (
        f"-2 log-likelihood of the n training rows, plus {each} for each of {parameters:.6g} free parameters: lower is "
        "better. Compare densities of the same rows in the same prepared columns."
    )
