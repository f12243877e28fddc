"""From the scores of a least squares fit on targets +1 and -1 to class probabilities."""

import numpy as np

from app.ml.contract.algorithm import Matrix


def sign_probabilities(score: Matrix) -> Matrix:
    """(1 + score)/2, cut off at 0 and made to sum to 1 in each row of score (n, k).

    Where every score is below −1 the largest takes all. The largest score always has the largest share.
    """
    share: Matrix = np.maximum((1 + score) / 2, 0.0)
    lost = share.sum(axis=1) == 0
    share[lost] = score[lost] == score[lost].max(axis=1, keepdims=True)
    share /= share.sum(axis=1, keepdims=True)
    return share
