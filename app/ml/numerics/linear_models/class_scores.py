"""From linear scores to class probabilities: of fits on targets +1 and -1, and of log odds."""

import numpy as np
from numpy.typing import NDArray

from app.ml.contract.algorithm import Matrix
from app.ml.numerics.linear_models.softmax import probabilities


def sign_probabilities(score: Matrix) -> Matrix:
    """(1 + score)/2, cut off at 0 and made to sum to 1 in each row of score (n, k).

    Where every score is below −1 the largest takes all. The largest score always has the largest share.
    """
    share: Matrix = np.maximum((1 + score) / 2, 0.0)
    lost = share.sum(axis=1) == 0
    share[lost] = score[lost] == score[lost].max(axis=1, keepdims=True)
    share /= share.sum(axis=1, keepdims=True)
    return share


def class_probabilities(scores: Matrix, seen: NDArray[np.bool_], *, logistic: bool) -> Matrix:
    """(n, k) of scores (n, s): one for each class, or of two classes only that of the second.

    seen: (k,) classes with training rows; others have no probability. logistic: scores are log odds, not fits of ±1.
    """
    shares, alone = np.zeros((len(scores), len(seen))), scores.shape[1] == 1
    if seen.sum() == 1:
        shares[:, seen] = 1.0
    elif not logistic:
        shares[:, seen] = sign_probabilities(scores * [-1, 1] if alone else scores[:, seen])
    elif alone:
        shares[:, 1:] = probabilities(scores)
        shares[:, 0] = 1 - shares[:, 1]
    else:
        shares[:, seen] = probabilities(scores[:, seen])
    return shares
