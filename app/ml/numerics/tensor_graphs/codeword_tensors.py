"""Classes by the codewords of error-correcting output codes, as tensors."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.tensor_graph import Tensor
from app.ml.numerics.tensor_graphs.class_tensors import normalised, softmax_shares, with_gaps


def decoded_words(ones: Tensor, code: NDArray[np.int8], decode: str, tiny: float) -> Tensor:
    """(n, k) from the probability (n, L) of a 1 of each bit. code: (k, L)."""
    bits = code.astype(float)
    if decode == "hamming":
        words = (ones > 0.5).to_numbers()
        distances = words @ (1 - 2 * bits.T) + bits.sum(axis=1)
        nearest = distances.combine("Equal", distances.reduce("ReduceMin")).to_numbers()
        return with_gaps(normalised(nearest), ones)
    sure = ones.combine("Max", tiny).combine("Min", 1 - tiny)
    if decode == "shares" and np.array_equal(code, np.eye(len(code))):
        return normalised(sure)
    return softmax_shares(sure.apply("Log") @ bits.T + (1.0 - sure).apply("Log") @ (1 - bits.T))
