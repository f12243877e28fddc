r"""Ways in which trees of a size can label rows, for bounds of the risk of a decision tree.

A tree of L leaves is one of Catalan(L − 1) shapes, has one of s splits at each inner node and one of k classes at each
leaf, and so m rows are labelled in at most Catalan(L − 1) · s^{L−1} · k^L ways; s = Σ (m − 1) over numeric columns and
Σ 2^c over those of c categories, with unknown ones as one more. The size follows from the rows: size L has the weight
2^{−L}, whose reciprocal counts as so many labellings more.

Reference: Shalev-Shwartz & Ben-David (2014), Understanding Machine Learning, sections 7.3 and 18.1.
"""

import math
from collections.abc import Callable

import scipy

from app.ml.contract.algorithm import Labels


def log_labellings(leaves: int, levels: Labels, classes: int) -> Callable[[int], float]:
    """Maps m to the log of their number. levels: (d,) categories of each column, 0 for a number."""
    subsets = sum(2.0 ** min(int(c), 1000) for c in levels if c)
    numbers = int((levels == 0).sum())
    inner = leaves - 1
    shapes = scipy.special.gammaln(2 * inner + 1) - scipy.special.gammaln(inner + 1) - scipy.special.gammaln(inner + 2)

    def count(rows: int) -> float:
        splits = max(1.0, numbers * (rows - 1.0) + subsets)
        return float(shapes + inner * math.log(splits) + leaves * math.log(2 * classes))

    return count
