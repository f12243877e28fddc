"""χ², mutual information and conditional information of codes: numbers of LION 7, scipy and scikit-learn, XOR."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import mutual_info_score

from app.ml.numerics.dependence.contingency import (
    chi_square,
    conditional_information,
    joint_codes,
    mutual_information,
)

COUNTS = np.array([[30, 10], [20, 40]])


def codes(counts):
    return np.repeat([0, 0, 1, 1], counts.ravel()), np.repeat([0, 1, 0, 1], counts.ravel())


def test_chi_square_of_a_table():
    found = chi_square(*codes(COUNTS))
    assert found.found.value == pytest.approx(16.666667, abs=5e-7)
    assert found.found.p_value == pytest.approx(4.4557e-05, rel=1e-4)
    assert (found.freedom, found.sparse) == (1, False)


def test_information_of_a_table_less_its_bias():
    found = mutual_information(*codes(COUNTS))
    assert found.value / np.log(2) + 1 / (200 * np.log(2)) == pytest.approx(0.1245112, abs=5e-8)
    assert found.lower < found.value < found.upper


def entropy(*columns):
    count = np.unique(np.column_stack(columns), axis=0, return_counts=True)[1]
    return stats.entropy(count)


def test_information_is_entropy_less_conditional_entropy():
    a, b = codes(COUNTS)
    conditional = sum((a == value).mean() * entropy(b[a == value]) for value in (0, 1))
    assert mutual_information(a, b).value + 1 / 200 == pytest.approx(entropy(b) - conditional)
    assert mutual_information(a, b) == pytest.approx(mutual_information(b, a))


@pytest.mark.parametrize("seed", range(3))
def test_larger_tables(seed):
    rng = np.random.default_rng(seed)
    a, b = 3 * rng.integers(0, 5, 90), rng.integers(0, 4, 90) + 2
    table = np.array([[np.sum((a == x) & (b == y)) for y in np.unique(b)] for x in np.unique(a)])
    expected = stats.chi2_contingency(table, correction=False)
    found = chi_square(a, b)
    assert (found.found.value, found.found.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
    assert found.freedom == expected.dof
    assert found.sparse == ((expected.expected_freq < 5).mean() > 0.2)
    g = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    ours = mutual_information(a, b)
    bias = ((table > 0).sum() - sum(table.shape) + 1) / 180
    assert ours.p_value == pytest.approx(g.pvalue, rel=1e-10)
    assert ours.value == pytest.approx(max(0, mutual_info_score(a, b) - bias), rel=1e-10)


def test_bias_is_taken_off():
    rng = np.random.default_rng(0)
    plain, less = [], []
    for _ in range(100):
        a, b = rng.integers(0, 5, (2, 200))
        b = np.where(rng.random(200) < 0.5, a, b)
        plain.append(mutual_info_score(a, b))
        less.append(mutual_information(a, b).value)
    both = 0.5 + 0.5 / 5  # P(b = a), so that the truth is known
    true = both * np.log(5 * both) + (1 - both) * np.log(5 * (1 - both) / 4)
    assert np.mean(plain) - true > 0.03
    assert abs(np.mean(less) - true) < 0.01


def test_each_column_of_an_exclusive_or_has_no_information_but_both_have_one_bit():
    a, b = np.array([0, 0, 1, 1] * 25), np.array([0, 1, 0, 1] * 25)
    menu = a ^ b
    assert mutual_information(a, menu).value == 0
    assert chi_square(a, menu).found.value == 0
    assert mutual_information(a, menu).p_value == 1
    bias = (4 - 4 - 2 + 1) / 200  # (a, b) determines the menu: 4 cells, 4 rows, 2 columns
    assert mutual_information(joint_codes([a, b]), menu).value / np.log(2) == pytest.approx(1 - bias / np.log(2))
    given = conditional_information(a, menu, b)
    assert given.value == pytest.approx(np.log(2) + 2 / 200)  # each stratum has 2 cells, 2 rows and 2 columns
    assert given.p_value < 1e-20


def test_conditional_information_is_a_sum_of_entropies():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 3, 400)
    a, b = (z + rng.integers(0, 2, 400)) % 4, (z + rng.integers(0, 3, 400)) % 5
    plain = entropy(a, z) + entropy(b, z) - entropy(a, b, z) - entropy(z)
    cells = [len(np.unique(np.column_stack(one), axis=0)) for one in ((a, z), (b, z), (a, b, z), (z,))]
    found = conditional_information(a, b, z)
    bias = (cells[2] + cells[3] - cells[0] - cells[1]) / 800
    assert found.value == pytest.approx(max(0, plain - bias))
    tables = [
        [[np.sum((a == i) & (b == j) & (z == k)) for j in np.unique(b[z == k])] for i in np.unique(a[z == k])]
        for k in range(3)
    ]
    within = [stats.chi2_contingency(table, lambda_="log-likelihood", correction=False) for table in tables]
    g, dof = sum(one.statistic for one in within), sum(one.dof for one in within)
    assert found.p_value == pytest.approx(stats.chi2.sf(g, dof), rel=1e-8)


def test_a_column_that_is_given_adds_nothing():
    a, b = codes(COUNTS)
    assert conditional_information(a, b, a) == pytest.approx((0, 0, 0, 1))
    assert conditional_information(a, b, np.zeros(100, int)) == pytest.approx(mutual_information(a, b))


def test_constant_columns_have_no_value():
    a, b = np.zeros(4, int), np.array([0, 1, 0, 1])
    assert np.isnan(chi_square(a, b).found.value)
    assert np.isnan(mutual_information(a, b).value)
    assert np.isnan(conditional_information(a, b, b).value)


def test_a_table_that_memory_does_not_hold():
    rng = np.random.default_rng(0)
    a, b = rng.permutation(60_000), rng.integers(0, 1000, 60_000)
    found = chi_square(a, b)
    assert found.freedom == 59_999 * (np.unique(b).size - 1)
    assert found.found.value == pytest.approx(
        60_000 * (np.unique(b).size - 1), rel=1e-9
    )  # a code of its own for each row
    assert found.sparse
    assert mutual_information(a, b).p_value == 1  # its information is that of all rows, and means nothing


def test_few_rows_for_many_cells_give_the_same_numbers():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 20, 30), rng.integers(0, 15, 30)
    table = np.array([[np.sum((a == x) & (b == y)) for y in np.unique(b)] for x in np.unique(a)])
    expected = stats.chi2_contingency(table, correction=False)
    found = chi_square(a, b).found
    assert (found.value, found.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
