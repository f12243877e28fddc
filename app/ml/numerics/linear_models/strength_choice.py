"""Choice of the strength of a penalty from errors on rows that were not fitted."""

from app.ml.contract.algorithm import Vector


def by_rule(errors: Vector, spreads: Vector, rule: str) -> int:
    """The place of the least error, or by `one_standard_error` of the first within one standard error of it.

    errors: (m,) from the strongest penalty to the weakest. spreads: (m,) their standard errors.
    """
    best = int(errors.argmin())
    if rule != "one_standard_error":
        return best
    return int((errors <= errors[best] + spreads[best]).argmax())
