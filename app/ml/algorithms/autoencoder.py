r"""Autoencoder: a network that reproduces its rows through a few units, whose values are a short code of each row.

An encoder of `hidden_layers` and a last layer of `n_components` units maps a row to its code; a decoder of the same
layers in reverse maps the code back. Both are trained together to minimise the mean of ½‖x − x̂‖², in columns that are
centred and share one unit. With identity units the code spans the space of the first principal components; curved
units follow curved surfaces. On request layers are trained one after another first, each on the codes of the one
before (stacked autoencoders), and rows are corrupted while their clean values are the target (denoising), so that the
code keeps what columns share. A row is an anomaly where its reconstruction is farther from it than that of all but
`contamination` of the training rows.

A network of `mlp` may start from its encoder: `initialise_from` of a training names its version.

In short: The network squeezes every row through a few numbers and restores it from them. The numbers are coordinates of
the row, and rows that are restored badly are unlike the training rows.

Use when: columns depend on each other in curves that `pca` misses, rows without a target are many and those with one
are few, or anomalies are rows that break the usual relations of columns.

References: Bourlard & Kamp (1988), Biol. Cybern. 59:291; Hinton & Salakhutdinov (2006), Science 313:504;
Vincent et al. (2010), J. Mach. Learn. Res. 11:3371; Battiti & Brunato, The LION Way, ch. 9.
"""

from collections.abc import Iterable, Iterator
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
    Output,
    Size,
    Symmetry,
    Task,
    Vector,
    WarmStart,
)
from app.ml.contract.progress import part_of
from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.density.mixture_starts import low_quantile
from app.ml.numerics.networks.back_propagation import NetworkRows, OutputLoss
from app.ml.numerics.networks.corruption import Corruption
from app.ml.numerics.networks.epochs import Watched
from app.ml.numerics.networks.network_layers import Network, layer_values, outputs, outputs_from, started
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
from app.ml.numerics.networks.network_training import NetworkTask, trained
from app.ml.numerics.tensor_graphs.network_tensors import layer_tensor

NO_CORRUPTION = Fault("/noise", "Only adam and sgd corrupt rows: set optimizer to one of them, or noise to 0.")


class Autoencoder(NetworkParams):
    """A network that restores its inputs from a code."""

    n_components: int = Field(2, ge=1, le=10_000, description="Number of components of the code.")
    hidden_layers: list[Width] = Field(
        [32],
        max_length=10,
        description="Number of units of each hidden layer, from the inputs to the code; the "
        "decoder has them in reverse.",
    )
    learning_rate: float | None = Field(
        0.01,
        gt=0,
        le=1e6,
        description="Length of a step, by which a gradient is multiplied; the first one of `bold_driver`. Null: 0.001 "
        "for `adam`, 0.01 for `sgd`, else 0.1. The other optimizers find their steps.",
    )
    layerwise: bool = Field(
        False, description="Trains each layer on the codes of the one before first, then all layers together."
    )
    corruption: Literal["gaussian", "masking", "flipping"] = Field(
        "gaussian",
        description="Corruption of rows in the training: normal noise, values replaced by the mean, or values mirrored "
        "between the least and the largest of their column, which flips those of two values.",
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Level of the corruption: standard deviation of `gaussian` in units of the columns, share of the "
        "values that are masked or flipped. 0: rows are not corrupted.",
    )
    contamination: float = Field(
        0.05, ge=0, lt=1, description="Share of the training rows that are anomalies: those restored worst."
    )


class State(NamedTuple):
    network: Network
    """Encoder and decoder."""
    hidden: int
    """Layers of the encoder, the code among them."""
    threshold: float
    """Distance between a row and its reconstruction above which it is an anomaly."""
    start_slopes: Vector
    """(L,) length of the gradient by the weights of each layer at the start of the training."""
    slopes: Vector
    """(L,) at its end."""
    saturation: Vector
    """(L − 1,) share of the values of each hidden layer that are saturated."""


def fit(params: Autoencoder, data: Data, context: Context) -> Fit[State]:
    """Identity units reach the error of as many principal components, the sum of the variances left out:

    >>> x = np.random.default_rng(0).normal(size=(80, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5])
    >>> own = Autoencoder(hidden_layers=[], activation="identity", optimizer="lbfgs", l2=0, tol=1e-7, max_iter=999)
    >>> data = Data.of(Task.PROJECTION, x)
    >>> error = np.mean(lost(own, fit(own, data, Context.of(0)).state, x) ** 2)
    >>> bool(np.isclose(error, np.linalg.eigvalsh(np.cov(x.T, bias=True))[:2].sum(), rtol=1e-5))
    True
    """
    return _fitted(params, _start(params, data, context), data, context)


def fit_from(params: Autoencoder, state: State, data: Data, context: Context) -> Fit[State]:
    return _fitted(params, state, data, context)


def predict(params: Autoencoder, state: State, x: Matrix) -> Matrix:
    return layer_values(state.network, params.activation, x, state.hidden)


def inverse(params: Autoencoder, state: State, z: Matrix) -> Matrix:
    return _in_columns(state.network, outputs_from(state.network, params.activation, z, state.hidden))


def lost(params: Autoencoder, state: State, x: Matrix) -> Vector:
    again = _in_columns(state.network, outputs(state.network, params.activation, x))
    with np.errstate(over="ignore"):
        return np.asarray(np.linalg.norm(x - again, axis=1))


def anomaly(params: Autoencoder, state: State, x: Matrix) -> NDArray[np.bool_]:
    return lost(params, state, x) > state.threshold


def summary(params: Autoencoder, state: State) -> JSON:
    """Sizes, slopes and saturation of the layers."""
    return {
        "layer_sizes": list(state.network.sizes),
        "threshold": state.threshold,
        "start_gradient_norms": state.start_slopes.tolist(),
        "gradient_norms": state.slopes.tolist(),
        "saturation": state.saturation.tolist(),
    }


def moved(state: State, units: ColumnUnits) -> State:
    return state._replace(network=in_other_units(state.network, units))


def faults(params: Autoencoder, inputs: Inputs) -> Iterator[Fault]:
    if params.noise and not params.stochastic:
        yield NO_CORRUPTION


def _start(params: Autoencoder, data: Data, context: Context) -> State:
    """Random weights."""
    shift, scale = standard_columns(data.x, data.weights)
    wide = scale[np.isfinite(scale)]
    most = wide.max(initial=0.0)
    unit = most * np.sqrt(np.square(wide / most).sum() / scale.size) if most > 0 else np.inf
    columns = shift, np.full_like(scale, unit)
    inner = (*params.hidden_layers, params.n_components, *reversed(params.hidden_layers))
    sizes = (data.x.shape[1], *inner, data.x.shape[1])
    network = started(sizes, params.activation, columns, context.rng, params.init_range)
    none = np.zeros(len(sizes) - 1)
    return State(network, len(params.hidden_layers) + 1, 0.0, none, none, none[1:])


def _fitted(params: Autoencoder, state: State, data: Data, context: Context) -> Fit[State]:
    if np.isinf(state.network.scale).all():
        return Fit(state, warnings=("All rows are the same: every code restores them.",))
    task, inputs = _task(params, state.network), state.network.inputs(data.x)
    weights = data.weights / data.weights.mean()
    rows = NetworkRows(inputs, inputs, weights)
    begin = layer_report(task, rows, state.network, params.l2).slopes
    aside = held_out(params, data, context.rng)
    held = rows.take(aside) if aside.any() else None
    learned = rows.take(~aside) if aside.any() else rows
    corruption = _corruption(params, learned.x)
    parts = 1 + state.hidden * params.layerwise
    network = state.network
    for place in range(parts - 1):
        watch_of_part = Watched(
            None, context.rng, part_of(lambda fraction, **_: context.progress(fraction), place, parts)
        )
        network = _with_layer_trained(params, network, place, learned, watch_of_part)
    watch_of_part = Watched(held, context.rng, part_of(context.progress, parts - 1, parts), corruption)
    network, end = trained(params, task, network, learned, watch_of_part)
    report = layer_report(task, rows, network, params.l2)
    ended = State(network, state.hidden, 0.0, begin, report.slopes, report.saturation)
    threshold = -low_quantile(-lost(params, ended, data.x), data.weights, params.contamination)
    warnings = (*endings(params, end, begin, early=held is not None), *_wide(params, data))
    return Fit(ended._replace(threshold=threshold), end.converged, end.iterations, end.curves, warnings)


def _with_layer_trained(
    params: Autoencoder, network: Network, place: int, rows: NetworkRows, watched: Watched
) -> Network:
    """The encoder's layer `place`, and the decoder's that mirrors it, after a training on the codes below."""
    mirror = len(network.weights) - 1 - place
    values = _codes(network, params, rows.x, place)
    layers = [network.weights[place], network.weights[mirror]], [network.biases[place], network.biases[mirror]]
    unit = np.zeros(values.shape[1]), np.ones(values.shape[1])
    small = Network(*unit, *(tuple(part) for part in layers))
    layer_watched = watched._replace(corruption=_corruption(params, values))
    small, _ = trained(params, _task(params, small), small, NetworkRows(values, values, rows.weights), layer_watched)
    weights, biases = [*network.weights], [*network.biases]
    for layer_place, layer in ((place, 0), (mirror, 1)):
        weights[layer_place], biases[layer_place] = small.weights[layer], small.biases[layer]
    return network._replace(weights=tuple(weights), biases=tuple(biases))


def _codes(network: Network, params: Autoencoder, inputs: Matrix, layers: int) -> Matrix:
    """Values of hidden layer `layers` of standardised rows; the rows themselves for 0."""
    d = inputs.shape[1]
    plain = network._replace(shift=np.zeros(d), scale=np.ones(d))
    return layer_values(plain, params.activation, inputs, layers)


def _task(params: Autoencoder, network: Network) -> NetworkTask:
    return NetworkTask(sizes=network.sizes, activation=params.activation, loss=OutputLoss.SQUARES)


def _corruption(params: Autoencoder, x: Matrix) -> Corruption | None:
    return Corruption(params.corruption, params.noise, x.min(axis=0) + x.max(axis=0)) if params.noise else None


def _in_columns(network: Network, coordinates: Matrix) -> Matrix:
    return coordinates * np.where(np.isfinite(network.scale), network.scale, 0.0) + network.shift


def _sizes(params: Autoencoder, size: Size) -> tuple[float, ...]:
    return (size.columns, *params.hidden_layers, params.n_components, *params.hidden_layers[::-1], size.columns)


def _wide(params: Autoencoder, data: Data) -> Iterable[str]:
    if params.n_components >= data.x.shape[1] and not params.noise:
        yield "The code has as many numbers as a row: nothing forces it to leave anything out."


def to_tensor(params: Autoencoder, state: State, x: Tensor) -> Tensor:
    return layer_tensor(state.network, params.activation, x, state.hidden)


ALGORITHM = Algorithm(
    tasks={Task.PROJECTION},
    params=Autoencoder,
    state=State,
    fit=fit,
    predict=predict,
    graph=to_tensor,
    faults=faults,
    memory=lambda params, size: memory(params, _sizes(params, size), size.rows),
    seconds=lambda params, size: (1 + params.layerwise) * seconds(params, _sizes(params, size), size.rows),
    outputs={
        "distance": Output(
            "Euclidean distance between the row and its reconstruction, in the prepared (scaled) columns.", lost
        ),
        "anomaly": Output(
            "True where that distance is above the threshold that `contamination` of the training rows set.", anomaly
        ),
    },
    inverse=inverse,
    summary=summary,
    warm_start=WarmStart(
        fit_from, moved, equal=("hidden_layers", "n_components", "activation"), values="weights", any_target=True
    ),
    breaks={
        Symmetry.ROW_ORDER: "steps are of batches of rows in a drawn order",
        Symmetry.COLUMN_ORDER: "starting weights are drawn in the order of the columns",
        Symmetry.SCALE: "the error counts in the units of the columns",
        Symmetry.WEIGHTS: "a row given twice is in two batches",
    },
)
