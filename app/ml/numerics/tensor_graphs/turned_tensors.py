"""Targets of which a function was fitted, as tensors."""

from collections.abc import Callable
from typing import Any

from app.ml.contract.tensor_graph import Tensor


def exp_less_one(z: Tensor) -> Tensor:
    """exp(z) − 1 to all digits: (u − 1) z/log(u) with the rounded u = exp(z) (Kahan)."""
    u = z.apply("Exp")
    plain, none = u - 1.0, u.combine("Equal", 1.0)
    is_plain = (z.apply("Abs") > 1.0) | none
    exact = plain * z / u.apply("Log").where(~is_plain, 1.0)
    return z.where(none, plain.where(is_plain, exact))


_BACK: dict[str, Callable[[Tensor], Tensor]] = {
    "log": lambda z: z.apply("Exp"),
    "log1p": exp_less_one,
    "sqrt": lambda z: z.combine("Max", 0.0) * z.combine("Max", 0.0),
    "square": lambda z: z.combine("Max", 0.0).apply("Sqrt"),
    "reciprocal": lambda z: 1.0 / z,
}


def turned_tensor(how: str, graph: Callable[[Any, Any, Tensor], Tensor]) -> Callable[[Any, Any, Tensor], Tensor]:
    """The graph that predicts in the target's own units, of one that predicts this function of it."""
    return lambda params, state, x: _BACK[how](graph(params, state, x))
