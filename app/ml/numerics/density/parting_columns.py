"""The two columns that part the components of a mixture most, by Wilks' lambda.

Lambda is the determinant of the covariance within the components over that of the whole mixture, in these columns: 1
where all means are equal, near 0 where the components lie apart. It does not depend on units.

References: Wilks (1932), Biometrika 24:471; Mardia, Kent & Bibby (1979), Multivariate Analysis, ch. 12.
"""

import numpy as np

from app.ml.contract.algorithm import Labels, Matrix, Vector
from app.ml.numerics.density.normal_ellipsoids import Normals

CANDIDATES = 40
"""Columns whose pairs are compared: those that part the components most on their own."""


def parting_columns(normals: Normals, columns: Labels) -> Labels:
    """Two of these columns, of which there are at least as many; the first of equally good pairs."""
    with np.errstate(all="ignore"):
        alone = np.argsort(lambda_alone(normals)[columns], kind="stable")[:CANDIDATES]
        parting = columns[np.sort(alone)]
        first, second = np.triu_indices(parting.size, 1)
        best = int(lambda_of_pairs(normals, parting)[first, second].argmin())
    return np.array([parting[first[best]], parting[second[best]]])


def lambda_alone(normals: Normals) -> Vector:
    """(d,) of each column; 1 where a variance is 0 or beyond the largest number."""
    full = normals.factors.shape[1] == normals.means.shape[1]
    deviations = np.linalg.norm(normals.factors, axis=2) if full else normals.factors[:, 0]
    within = normals.shares @ np.square(deviations)
    gaps = normals.means - normals.shares @ normals.means
    return _defined(within / (within + normals.shares @ np.square(gaps)))


def lambda_of_pairs(normals: Normals, columns: Labels) -> Matrix:
    """(p, p) of each pair of these columns; 1 where it is not defined."""
    within = np.einsum("k,kij->ij", normals.shares, normals.covariances(columns))
    gaps = normals.means[:, columns] - normals.shares @ normals.means[:, columns]
    whole = within + (gaps.T * normals.shares) @ gaps
    unit = np.sqrt(np.diag(whole))
    inner, outer = _determinants(within / unit / unit[:, None]), _determinants(whole / unit / unit[:, None])
    return _defined(inner / outer)


def _determinants(square: Matrix) -> Matrix:
    """(p, p) of the blocks of two rows and columns."""
    variances = np.diag(square)
    return np.asarray(variances * variances[:, None] - np.square(square))


def _defined(determinants: Matrix) -> Matrix:
    return np.where(np.isfinite(determinants), determinants, 1.0)
