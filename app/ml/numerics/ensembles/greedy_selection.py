"""Ensemble selection: members to average, chosen greedily, forwards and with replacement.

The average of predictions that are chosen cⱼ times each errs by E c / Σc, where the columns of E are their errors. Its
mean square is c'Gc / (Σc)² with G = E'E, so that every step needs G alone, however many rows there are.

Reference: Caruana, Niculescu-Mizil, Crew & Ksikes (2004), Ensemble selection from libraries of models, ICML.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix

ROUNDS = 50
"""Choices at most: weights are multiples of a fiftieth or coarser."""
TIE = 1e-9
"""A smaller gain, relative to the error, is none."""


def selected(gram: Matrix, first: int) -> Labels:
    """(m,) how often each is chosen: the best of the averages met, so none is worse than the first alone.

    gram: (m, m) products of errors, summed over rows. first: where to begin.
    """
    counts = np.zeros(len(gram), np.intp)
    counts[first] = 1
    diagonal, total, beside = np.diagonal(gram), gram[first, first], gram[first].copy()
    best, least = counts.copy(), total
    for size in range(2, ROUNDS + 1):
        grown = total + 2 * beside + diagonal
        place = int(grown.argmin())
        counts[place] += 1
        total, beside = grown[place], beside + gram[place]
        if total / size**2 < least * (1 - TIE):
            best, least = counts.copy(), total / size**2
    return best


def diversity(gram: Matrix, counts: Labels) -> float:
    """The share of the members' mean squared error that averaging takes away; NaN if they do not err.

    It is their spread about the average (Krogh & Vedelsby 1995, NIPS 7:231): Σ wⱼ eⱼ² − ē² = Σ wⱼ (eⱼ − ē)².
    """
    shares = counts / counts.sum()
    alone = shares @ np.diagonal(gram)
    return float(1 - shares @ gram @ shares / alone) if alone > 0 else np.nan
