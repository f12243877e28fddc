"""Sentences on parameters of densities that the rows did not determine."""

from app.ml.contract.algorithm import Data
from app.ml.numerics.density.normal import Poverty


def poverty_warnings(poverty: Poverty, data: Data, left_out: int) -> list[str]:
    """Warnings of normal densities of these rows. left_out: number of columns that they do not describe."""
    described, d = [], data.x.shape[1] - left_out
    if poverty.constant > left_out:
        described.append(f"{poverty.constant - left_out} of {d} columns are constant and play no part.")
    directions = data.directions(intercept=True)
    if poverty.rank < directions - poverty.constant:
        described.append(
            f"The inputs span only {poverty.rank} of {directions - left_out} dimensions: the densities are within them."
        )
    if poverty.borrowing.size:
        described.append(
            f"Rows too few or too alike for a variance of their own in every direction, where the one of all classes "
            f"is taken: classes {data.called(poverty.borrowing.tolist())}. Shrinkage would do so everywhere."
        )
    if poverty.floored.size:
        described.append(
            f"No variance at all in some direction, where 1e-9 of that of all rows is taken: classes "
            f"{data.called(poverty.floored.tolist())}. Their probabilities there are all but 0 or 1."
        )
    return described
