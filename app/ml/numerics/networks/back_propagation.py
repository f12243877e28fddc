r"""Back-propagation: the loss of a network and its gradient, by one sweep forward and one back through the layers.

With outputs o (n, s), targets t and row weights w of sum N the loss is  E = Σ wᵢ ℓ(oᵢ, tᵢ) / N, ℓ being ½‖o − t‖²
of numbers or of shares, or minus the log-likelihood of the shares of classes. Shares are the logistic function of one
output for two classes, and the softmax of an output per class for more. The error of layer l is
δₗ = (δₗ₊₁ Wₗ₊₁ᵀ) f′(aₗ), and ∂E/∂Wₗ = aₗ₋₁ᵀ δₗ: as many operations as there are weights.

Reference: Rumelhart, Hinton & Williams (1986), Nature 323:533; Battiti & Brunato, The LION Way, section 9.2.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from app.ml.numerics.linear_models.softmax import probabilities
from app.ml.numerics.networks.compiled.training_steps import add_and_rectify
from app.ml.numerics.networks.network_layers import Activation, activate, length, parts, slopes

Reals: TypeAlias = NDArray[Any]
"""Numbers of the precision of the training."""


class OutputLoss(Enum):
    SQUARES = "squared errors of numbers"
    SHARES = "squared errors of shares of classes"
    LIKELIHOOD = "minus the log-likelihood"


class NetworkRows(NamedTuple):
    """Rows as a network learns from them."""

    x: Reals
    """(n, d) standardised."""
    targets: Reals
    """(n, s)."""
    weights: Reals
    """(n,) of mean 1 over all rows."""

    def take(self, rows: Any) -> "NetworkRows":
        return NetworkRows(self.x[rows], self.targets[rows], self.weights[rows])


class BackPropagation:
    """Loss and gradient of batches of rows, on arrays that are made once."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation,
        loss: OutputLoss,
        *,
        rows: int,
        dtype: DTypeLike = np.float64,
        absent: NDArray[np.bool_] | None = None,
        frozen: int = 0,
    ) -> None:
        """rows: the most of a batch. absent: (s,) outputs of classes without rows. frozen: layers, from the first on,
        whose gradient is left at 0.
        """
        self.sizes, self._activation, self._loss, self._frozen = tuple(sizes), activation, loss, frozen
        self._absent = absent if absent is not None and absent.any() and sizes[-1] > 1 else None
        self.gradient: Reals = np.zeros(length(sizes), dtype)
        """Derivatives of the latest batch, laid out as `Network.flat`."""
        self._slopes = [*parts(self.gradient, sizes)]
        self._values = [np.empty((rows, q), dtype) for q in sizes[1:]]
        self._errors = [np.empty((rows, q), dtype) for q in sizes[1:-1]]
        self._ones = np.ones(rows, dtype)

    def loss_of(self, point: Reals, batch: NetworkRows) -> float:
        """Σ wᵢ ℓᵢ of the batch."""
        outputs = self._forward([*parts(point, self.sizes)], batch.x, ())
        return self._ended(outputs, batch, 1.0)

    def __call__(self, point: Reals, batch: NetworkRows, total: float, masks: Sequence[Reals] = ()) -> float:
        """Σ wᵢ ℓᵢ of the batch; `gradient` becomes that of Σ wᵢ ℓᵢ / total.

        masks: factor of each value of each hidden layer, (n, q).
        """
        layers, n = [*parts(point, self.sizes)], len(batch.x)
        errors = self._forward(layers, batch.x, masks)
        value = self._ended(errors, batch, total)
        for place in reversed(range(self._frozen, len(layers))):
            below = batch.x if place == 0 else self._values[place - 1][:n]
            slope, bias = self._slopes[place]
            np.matmul(below.T, errors, out=slope)
            np.matmul(self._ones[:n], errors, out=bias)
            if place > self._frozen:
                errors = np.matmul(errors, layers[place][0].T, out=self._errors[place - 1][:n])
                self._through(errors, below, masks[place - 1] if masks else None)
        return value

    def _forward(self, layers: Sequence[tuple[Reals, Reals]], x: Reals, masks: Sequence[Reals]) -> Reals:
        values = x
        for place, (weights, bias) in enumerate(layers):
            values = np.matmul(values, weights, out=self._values[place][: len(x)])
            if place == len(layers) - 1:
                values += bias
            elif self._activation == "relu" and values.dtype == np.float32:
                add_and_rectify(values, bias)
            else:
                values += bias
                activate(values, self._activation)
            if masks and place < len(masks):
                values *= masks[place]
        return values

    def _through(self, errors: Reals, values: Reals, mask: Reals | None) -> None:
        """Errors of values become those of sums."""
        if self._activation == "relu":
            errors *= values > 0
            if mask is not None:
                errors *= mask
        elif mask is None:
            if self._activation != "identity":
                errors *= slopes(values, self._activation)
        else:
            kept_values = np.divide(values, mask, out=np.zeros_like(values), where=mask > 0)
            errors *= slopes(kept_values, self._activation) * mask

    def _ended(self, outputs: Reals, batch: NetworkRows, total: float) -> float:
        """Σ wᵢ ℓᵢ; the outputs become the errors of the last layer, of Σ wᵢ ℓᵢ / total."""
        targets = batch.targets
        if self._loss is OutputLoss.SQUARES:
            outputs -= targets
            losses = 0.5 * np.einsum("ij,ij->i", outputs, outputs)
        else:
            if self._absent is not None:
                outputs[:, self._absent] = -np.inf
            losses = self._of_shares(outputs, targets)
        outputs *= (batch.weights / outputs.dtype.type(total))[:, None]
        return float(np.dot(losses.astype(np.float64), batch.weights.astype(np.float64)))

    def _of_shares(self, outputs: Reals, targets: Reals) -> Reals:
        """Losses (n,); outputs become their derivatives."""
        if self._loss is OutputLoss.SHARES:
            shares = probabilities(outputs)
            np.subtract(shares, targets, out=outputs)
            losses = 0.5 * np.einsum("ij,ij->i", outputs, outputs)
            if outputs.shape[1] == 1:
                outputs *= shares * (1.0 - shares)
            else:
                outputs -= np.einsum("ij,ij->i", outputs, shares)[:, None]
                outputs *= shares
            return np.asarray(losses)
        if outputs.shape[1] == 1:
            signed = np.where(targets > 0, -outputs, outputs)
            losses = np.logaddexp(signed.dtype.type(0), signed)[:, 0]
            np.subtract(probabilities(outputs), targets, out=outputs)
            return np.asarray(losses)
        outputs -= outputs.max(axis=1, keepdims=True)
        scores_of_truth = np.where(targets > 0, outputs, 0.0).sum(axis=1)
        np.exp(outputs, out=outputs)
        sums = outputs.sum(axis=1, keepdims=True)
        outputs /= sums
        outputs -= targets
        return np.asarray(np.log(sums[:, 0]) - scores_of_truth)
