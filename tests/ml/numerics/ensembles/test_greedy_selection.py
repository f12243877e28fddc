"""Ensemble selection beside the same written out on the predictions themselves."""

import numpy as np
import pytest

from app.ml.numerics.ensembles.greedy_selection import ROUNDS, TIE, diversity, selected


def twin(errors, first):
    """Average the predictions anew for every choice that could be made (Caruana et al. 2004)."""
    chosen, best, least = [first], [first], np.mean(errors[:, first] ** 2)
    for _ in range(ROUNDS - 1):
        losses = [np.mean(errors[:, [*chosen, j]].mean(axis=1) ** 2) for j in range(errors.shape[1])]
        chosen.append(int(np.argmin(losses)))
        if min(losses) < least * (1 - TIE):
            best, least = chosen.copy(), min(losses)
    return np.bincount(best, minlength=errors.shape[1])


def drawn(seed, members=6, rows=40):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(rows, 1))
    return rng.uniform(0.1, 2, members) * (shared * rng.uniform(0, 1, members) + rng.normal(size=(rows, members)))


@pytest.mark.parametrize("seed", range(4))
def test_products_of_errors_are_all_that_the_choice_needs(seed):
    errors = drawn(seed)
    for first in range(errors.shape[1]):
        assert selected(errors.T @ errors, first).tolist() == twin(errors, first).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_where_it_begins_and_never_better_than_the_best_shares(seed):
    """The mean square is convex in the shares: scipy's minimum over the simplex bounds it from below."""
    from scipy.optimize import nnls

    errors = drawn(seed, members=5)
    gram = errors.T @ errors
    stacked = np.vstack([errors, np.full(5, 1e6)])  # shares that add up to 1
    least = nnls(stacked, np.append(np.zeros(len(errors)), 1e6))[0]
    floor = (least / least.sum()) @ gram @ (least / least.sum())
    for first in range(5):
        shares = selected(gram, first) / selected(gram, first).sum()
        assert floor * (1 - 1e-9) <= shares @ gram @ shares <= gram[first, first]
    assert shares @ gram @ shares <= floor * 1.02  # and it comes near


def test_one_that_errs_against_another_is_chosen_and_a_copy_is_not():
    one = np.random.default_rng(0).normal(size=50)
    errors = np.stack([one, one, -one], axis=1)
    assert selected(errors.T @ errors, 0).tolist() == [1, 0, 1]
    assert selected(errors[:, :2].T @ errors[:, :2], 0).tolist() == [1, 0]
    assert selected(np.zeros((2, 2)), 1).tolist() == [0, 1]


def test_diversity_is_the_spread_about_the_average():
    errors, counts = drawn(9), np.array([3, 0, 1, 2, 0, 1])
    shares = counts / counts.sum()
    average = errors @ shares
    spread = (shares * (errors - average[:, None]) ** 2).sum()
    assert diversity(errors.T @ errors, counts) == pytest.approx(spread / (shares * errors**2).sum(), rel=1e-12)
    assert np.isnan(diversity(np.zeros((2, 2)), np.array([1, 1])))
