"""Feed-forward networks as tensors."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.networks.network_layers import FARTHEST_INPUT, Activation, Network
from app.ml.numerics.tensor_graphs.class_tensors import softmax_shares, spread_columns, two_shares
from app.ml.numerics.tensor_graphs.distance_tensors import columns_of, standardised_columns


def layer_tensor(network: Network, activation: Activation, x: Tensor, hidden: int | None = None) -> Tensor:
    """(n, q) values of this hidden layer, counted from 1; None: outputs."""
    values = standardised_columns(x, network.shift, network.scale, FARTHEST_INPUT)
    last = len(network.weights) - 1
    for place, (weights, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        sums = values @ weights + bias
        values = sums if place == last and hidden is None else _activated(sums, activation)
        if hidden == place + 1:
            break
    return values


def _activated(sums: Tensor, activation: Activation) -> Tensor:
    match activation:
        case "tanh":
            return sums.apply("Tanh")
        case "logistic":  # as `activate`
            return ((sums * 0.5).apply("Tanh") + 1.0) * 0.5
        case "relu":
            return sums.combine("Max", 0.0)
    return sums


class NetworkState(Protocol):
    @property
    def network(self) -> Network: ...
    @property
    def centre(self) -> float: ...
    @property
    def unit(self) -> float: ...
    @property
    def seen(self) -> NDArray[np.bool_]: ...


class NetworkParams(Protocol):
    @property
    def activation(self) -> Activation: ...


def network_shares(params: NetworkParams, state: NetworkState, x: Tensor) -> Tensor:
    """(n, 1) numbers, or (n, k) probabilities, of a network."""
    if not state.seen.size:
        if state.unit == 0.0:
            return x.repeated(np.array([state.centre]))
        return layer_tensor(state.network, params.activation, x)[[0]] * state.unit + state.centre
    places = np.flatnonzero(state.seen)
    if places.size == 1:
        return x.repeated(state.seen.astype(float))
    scores = layer_tensor(state.network, params.activation, x)
    if state.seen.size == 2:
        return two_shares(scores)
    return spread_columns(softmax_shares(columns_of(places, scores)), places, state.seen.size)
