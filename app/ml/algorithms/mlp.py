r"""Multilayer perceptron: a feed-forward network of any depth, trained by back-propagation.

Layers of units, each a smooth function of a weighted sum of the layer before:  aₗ = f(Wₗ aₗ₋₁ + bₗ).  The output is a
number for regression, a logistic unit for two classes, a softmax for more. Minimises the mean loss, with a penalty on
the weights, from small random weights; the gradient of all weights takes one sweep forward and one back. Steps are of
few rows (`adam`, `sgd`) or of all rows (L-BFGS, conjugate gradients, one-step secant, bold driver, steepest descent,
gradient descent). The network standardises its inputs and a numeric target itself. A rate that is too large is
detected and reported, and the model is the best point met.

On request part of the rows is held out for an early stop, `adam` and `sgd` leave units out at random (dropout), rows
are learned in stages from the easiest on, and the fit starts from the hidden layers of another version: of a network
for the same or another target, or of an autoencoder, which may stay as they are (`frozen_layers`).

The report has the slopes of each layer at the start, which vanish in deep networks of units that saturate, and the
share of hidden values that are saturated at the end.

In short: Layers of simple units turn the inputs into features, of which the last layer is a linear model. All weights
are learned together, by following the gradient of the error back through the layers.

Use when: the target depends on the inputs smoothly and not linearly, and rows are many. Trees need less tuning on
tables of mixed columns; a network without hidden layers is a linear or logistic regression.

References: Rumelhart, Hinton & Williams (1986), Nature 323:533; Battiti (1992), Neural Computation 4:141;
Kingma & Ba (2015), arXiv:1412.6980; Srivastava et al. (2014), J. Mach. Learn. Res. 15:1929;
Battiti & Brunato, The LION Way, ch. 9.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.base.faults import Fault
from app.ml.contract.algorithm import (
    JSON,
    Algorithm,
    ColumnUnits,
    Context,
    Data,
    Fit,
    Inputs,
    Matrix,
    Size,
    Symmetry,
    Task,
    Vector,
    WarmStart,
)
from app.ml.contract.staged_fit import fit_in_stages
from app.ml.numerics.linear_models.softmax import of_two, one_of_two, probabilities
from app.ml.numerics.networks.back_propagation import NetworkRows, OutputLoss
from app.ml.numerics.networks.compiled.one_row import row_shares
from app.ml.numerics.networks.epochs import Watched, in_32_bits, passed, usual_batch
from app.ml.numerics.networks.integrated_gradients import explained_outputs
from app.ml.numerics.networks.network_layers import Network, outputs, started
from app.ml.numerics.networks.network_params import NetworkParams, Width
from app.ml.numerics.networks.network_report import (
    endings,
    held_out,
    in_other_units,
    layer_report,
    memory,
    seconds,
    standard_columns,
)
from app.ml.numerics.networks.network_training import NetworkTask, stepper, trained
from app.ml.numerics.tensor_graphs.network_tensors import network_shares

OTHER_LAYERS = (
    "The first hidden layer of the version to start from has {} units, not as many as this: the fit started anew."
)
ONE_CLASS = "There is only one class."
NO_DROPOUT = Fault("/dropout", "Only adam and sgd leave units out: set optimizer to one of them, or dropout to 0.")


class MLP(NetworkParams):
    """A network with hidden layers."""

    hidden_layers: list[Width] = Field(
        [100], max_length=20, description="Number of units of each hidden layer, from the inputs on; may be empty."
    )
    class_loss: Literal["cross_entropy", "squared"] = Field(
        "cross_entropy", description="Loss that is minimised in classification; in regression it is the squared error."
    )
    dropout: float = Field(
        0.0, ge=0, lt=1, description="Share of hidden units that each step of `adam` or `sgd` leaves out for each row."
    )
    frozen_layers: int = Field(
        0, ge=0, le=20, description="Number of hidden layers, from the inputs on, that keep their starting weights."
    )


class State(NamedTuple):
    network: Network
    centre: float
    """Mean of a numeric target; 0 for classes."""
    unit: float
    """Its standard deviation, which the output counts in; 0 for a target that is constant."""
    seen: NDArray[np.bool_]
    """(k,) whether there were rows of the class; (0,) for numbers."""
    start_slopes: Vector
    """(L,) length of the gradient by the weights of each layer at the start of the training."""
    slopes: Vector
    """(L,) at its end."""
    saturation: Vector
    """(L − 1,) share of the values of each hidden layer where the slope of its units is below 5 % of the largest."""

    @property
    def hidden(self) -> int:
        """Hidden layers that another network may start from."""
        return len(self.network.weights) - 1


def fit(params: MLP, data: Data, context: Context) -> Fit[State]:
    """Two hidden units solve the exclusive or, which no single unit does (Minsky & Papert 1969):

    >>> xor = Data.of(Task.CLASSIFICATION, [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> own = MLP(hidden_layers=[2], optimizer="lbfgs", l2=0)
    >>> predict(own, fit(own, xor, Context.of(1)).state, xor.x).argmax(axis=1)
    array([0, 1, 1, 0])
    >>> none = MLP(hidden_layers=[], optimizer="lbfgs", l2=0)
    >>> predict(none, fit(none, xor, Context.of(1)).state, xor.x).round(3)[:, 1]
    array([0.5, 0.5, 0.5, 0.5])
    """
    return _fitted(params, _start(params, data, context), data, context)


def fit_from(params: MLP, state: State, data: Data, context: Context) -> Fit[State]:
    """From the hidden layers of another network, as far as they have the sizes of these; else from a new start.

    The output layer is taken over too where the target is of the same kind.
    """
    started, donor = _start(params, data, context), state.network
    wanted, there = started.network.sizes, donor.sizes
    limit = min(state.hidden, len(params.hidden_layers))
    shared = next((layer for layer in range(limit) if wanted[layer + 1] != there[layer + 1]), limit)
    if not shared and limit:
        fitted = _fitted(params, started, data, context)
        return replace(fitted, warnings=(*fitted.warnings, OTHER_LAYERS.format(there[1])))
    layers = shared
    if isinstance(state, State) and wanted == there and np.array_equal(started.seen, state.seen):
        layers, started = len(donor.weights), started._replace(centre=state.centre, unit=state.unit)
    weights = (*donor.weights[:layers], *started.network.weights[layers:])
    biases = (*donor.biases[:layers], *started.network.biases[layers:])
    return _fitted(params, started._replace(network=Network(donor.shift, donor.scale, weights, biases)), data, context)


def _fitted(params: MLP, state: State, data: Data, context: Context) -> Fit[State]:
    if state.seen.sum() == 1 or (not state.seen.size and state.unit == 0.0):
        return Fit(state, warnings=(ONE_CLASS,) if state.seen.size else ())
    task, rows = _task(params, state, data), _rows(state, data)
    state = state._replace(start_slopes=layer_report(task, rows, state.network, params.l2).slopes)
    aside = held_out(params, data, context.rng)
    learned = data.take(~aside) if aside.any() else data
    held = data.take(aside) if aside.any() else None
    fit = fit_in_stages(partial(_trained, params, held), state, learned, context)
    report = layer_report(task, rows, fit.state.network, params.l2)
    ended = fit.state._replace(slopes=report.slopes, saturation=report.saturation)
    return Fit(ended, fit.converged, fit.iterations, fit.curves, fit.warnings)


def _trained(params: MLP, held: Data | None, state: State, data: Data, context: Context) -> Fit[State]:
    aside = None if held is None else _rows(state, held)
    task, rows = _task(params, state, data), _rows(state, data)
    network, end = trained(params, task, state.network, rows, Watched(aside, context.rng, context.progress))
    warnings = (*endings(params, end, state.start_slopes, early=held is not None),)
    return Fit(state._replace(network=network), end.converged, end.iterations, end.curves, warnings)


def update(params: MLP, state: State, data: Data, context: Context) -> Fit[State]:
    """One pass over these rows in their order. The curve: their mean loss, each before it was learned."""
    seen = state.seen | data.targets.any(axis=0) if state.seen.size else state.seen
    centre, unit = _target_units(data) if state.unit == 0.0 and not seen.size else (state.centre, state.unit)
    after = state._replace(seen=seen, centre=centre, unit=unit)
    if seen.sum() == 1 or (not seen.size and unit == 0.0):
        return Fit(after, converged=False, iterations=1)
    task, rows = _task(params, after, data), in_32_bits(_rows(after, data))
    size = min(params.batch_size or usual_batch(len(rows.x)), len(rows.x))
    point = after.network.flat.astype(np.float32)
    with np.errstate(all="ignore"):
        loss = passed(stepper(params, task), task.propagation(size, np.float32), point, rows, batch_size=size)
    if np.isfinite(loss) and np.isfinite(point).all():
        return Fit(after._replace(network=after.network.at(point)), False, 1, {"loss": [loss]})
    return Fit(
        state, converged=False, warnings=("The learning_rate is too large for these rows: they were not learned.",)
    )


def predict(params: MLP, state: State, x: Matrix) -> NDArray[np.float64]:
    if not state.seen.size:
        if state.unit == 0.0:
            return np.full(len(x), state.centre)
        return outputs(state.network, params.activation, x)[:, 0] * state.unit + state.centre
    classes = np.count_nonzero(state.seen)
    if classes == 1:
        return np.tile(state.seen.astype(float), (len(x), 1))
    scores = outputs(state.network, params.activation, x)
    if state.seen.size == 2:
        return one_of_two(scores.item()) if len(x) == 1 else of_two(scores)
    if classes < state.seen.size:
        scores[:, ~state.seen] = -np.inf
    if len(x) != 1:
        return probabilities(scores)
    row_shares.lean(scores[0])
    return scores


def explain(params: MLP, state: State, x: Matrix) -> list[JSON]:
    """For each row what every column adds to the output, from that of the means of the training rows on: integrated
    gradients. Of several classes it is the score of the predicted one. `remainder` is what the sum leaves over.
    """
    if not x.size or state.unit == 0.0 or np.count_nonzero(state.seen) == 1:
        return [{"contributions": []} for _ in x]
    scale = state.centre, state.unit
    explanations = explained_outputs(state.network, params.activation, x, scale, state.seen)
    return [explanation | ({"class": code} if state.seen.size else {}) for code, explanation in explanations]


def summary(params: MLP, state: State) -> JSON:
    """Sizes, slopes and saturation of the layers."""
    sizes = state.network.sizes
    return {
        "layer_sizes": list(sizes),
        "weights": sum(weights.size for weights in state.network.weights) + sum(sizes[1:]),
        "start_gradient_norms": state.start_slopes.tolist(),
        "gradient_norms": state.slopes.tolist(),
        "saturation": state.saturation.tolist(),
    }


def moved(state: State, units: ColumnUnits) -> State:
    return state._replace(network=in_other_units(state.network, units))


def faults(params: MLP, inputs: Inputs) -> Iterator[Fault]:
    if params.dropout and not params.stochastic:
        yield NO_DROPOUT
    if params.frozen_layers > len(params.hidden_layers):
        most = len(params.hidden_layers)
        yield Fault("/frozen_layers", f"There are {most} hidden layers: freeze at most as many.")


def _start(params: MLP, data: Data, context: Context) -> State:
    """Random weights."""
    classes = data.task is Task.CLASSIFICATION
    k = data.targets.shape[1]
    sizes = (data.x.shape[1], *params.hidden_layers, 1 if k <= 2 else k)
    columns = standard_columns(data.x, data.weights)
    network = started(sizes, params.activation, columns, context.rng, params.init_range)
    seen = np.asarray(data.targets.any(axis=0)) if classes else np.zeros(0, bool)
    centre, unit = (0.0, 1.0) if classes else _target_units(data)
    none = np.zeros(len(sizes) - 1)
    return State(network, centre, unit, seen, none, none, none[1:])


def _target_units(data: Data) -> tuple[float, float]:
    centre, unit = standard_columns(data.targets, data.weights)
    return float(centre[0]), float(unit[0]) if np.isfinite(unit[0]) else 0.0


def _task(params: MLP, state: State, data: Data) -> NetworkTask:
    shares = OutputLoss.SHARES if params.class_loss == "squared" else OutputLoss.LIKELIHOOD
    return NetworkTask(
        sizes=state.network.sizes,
        activation=params.activation,
        loss=shares if state.seen.size else OutputLoss.SQUARES,
        absent=~state.seen if state.seen.size else None,
        frozen=min(params.frozen_layers, len(params.hidden_layers)),
        dropout=params.dropout,
    )


def _rows(state: State, data: Data) -> NetworkRows:
    x, weights = state.network.inputs(data.x), data.weights / data.weights.mean()
    if not state.seen.size:
        return NetworkRows(x, (data.targets - state.centre) / state.unit, weights)
    return NetworkRows(x, data.targets[:, 1:] if state.seen.size == 2 else data.targets, weights)


ALGORITHM = Algorithm(
    tasks=(Task.REGRESSION, Task.CLASSIFICATION),
    params=MLP,
    state=State,
    fit=fit,
    update=update,
    in_stages=lambda _: (),
    passes=lambda params: params.epochs if params.stochastic else params.max_iter,
    predict=predict,
    graph=network_shares,
    faults=faults,
    memory=lambda params, size: memory(params, _sizes(params, size), size.rows),
    seconds=lambda params, size: seconds(params, _sizes(params, size), size.rows),
    explain=explain,
    summary=summary,
    warm_start=WarmStart(
        fit_from, moved, equal=("activation",), values="weights", others=("autoencoder",), any_target=True
    ),
    breaks={
        Symmetry.ROW_ORDER: "steps are of batches of rows in a drawn order",
        Symmetry.COLUMN_ORDER: "starting weights are drawn in the order of the columns",
        Symmetry.LABEL_NAMES: "starting weights are drawn in the order of the classes",
        Symmetry.WEIGHTS: "a row given twice is in two batches",
    },
)


def _sizes(params: MLP, size: Size) -> tuple[float, ...]:
    return (size.columns, *params.hidden_layers, max(1, size.classes))
