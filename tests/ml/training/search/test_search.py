"""Choosing: the same folds for all, honest differences, ties to the simpler."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from app.base.errors import InvalidData
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages, unheard
from app.ml.evaluation import splits
from app.ml.training.planning.plan import plan
from app.ml.training.search import search
from app.ml.training.search.candidates import SearchSpec, candidates


@pytest.fixture(scope="module")
def diabetes():
    x, y = load_diabetes(return_X_y=True)
    names = [f"x{i}" for i in range(x.shape[1])]
    table = pa.table({**dict(zip(names, x.T, strict=True)), "y": y})
    return table, [TableColumn(name, "numeric", 0, 100) for name in table.column_names], x, y


def ranked(diabetes, *, rule="best", metric=None, folds=5, **spec):
    table, columns = diabetes[:2]
    requested = SearchSpec.model_validate({"target": "y", "algorithm": {"name": "ridge"}, **spec})
    found = candidates(requested)
    return search.rank(
        found, plan(found[0].spec, columns, table.num_rows), table,
        folds=folds, metric=metric, rule=rule, stages=Stages(unheard), share=0.9,
    )  # fmt: skip


PENALTIES = [100.0, 1.0, 0.01]


def test_metrics_are_those_of_the_peer_on_the_same_folds(diabetes):
    ranking = ranked(diabetes, grid=[{"pointer": "/algorithm/l2", "values": PENALTIES}])
    _, _, x, y = diabetes
    rng = np.random.Generator(np.random.PCG64(0))
    rows = splits.holdout(len(y), 0.2, rng).train
    folds = splits.kfold(rows.size, 5, rng)
    for tried, penalty in zip(ranking.tried, PENALTIES, strict=True):
        scores = []
        for fold in folds:
            learn, held_out = rows[fold.train], rows[fold.test]
            scale = StandardScaler().fit(x[learn])
            model = Ridge(alpha=penalty).fit(scale.transform(x[learn]), y[learn])
            scores.append(np.sqrt(np.mean((model.predict(scale.transform(x[held_out])) - y[held_out]) ** 2)))
        np.testing.assert_allclose(tried.folds, scores, rtol=1e-9)
        assert tried.validation.value == pytest.approx(np.mean(scores))
    assert ranking.tried[ranking.best].rank == 1


def test_differences_are_paired(diabetes):
    """The interval is Student's t of the differences, not of the means."""
    ranking = ranked(diabetes, grid=[{"pointer": "/algorithm/l2", "values": PENALTIES}])
    best = ranking.tried[ranking.best]
    assert best.behind is None
    for other in ranking.tried:
        if other is best:
            continue
        apart = np.subtract(other.folds, best.folds)
        low, high = stats.t.interval(0.95, 4, apart.mean(), stats.sem(apart))
        assert other.behind.value == pytest.approx(apart.mean())
        assert (other.behind.lower, other.behind.upper) == pytest.approx((low, high))
        assert other.behind.value >= 0
        assert other.behind.name == "rmse_difference"


def test_higher_is_better_where_it_is(diabetes):
    ranking = ranked(diabetes, metric="r2", grid=[{"pointer": "/algorithm/l2", "values": [1e6, 1.0]}])
    assert ranking.best == 1
    assert ranking.tried[0].behind.value > 0


def test_a_tie_goes_to_the_first(diabetes):
    twins = [{"name": "ridge", "l2": 1.0}, {"name": "ridge", "l2": 1.0}]
    ranking = ranked(diabetes, algorithm=twins[0], alternatives=[twins[1]])
    assert ranking.best == 0
    assert [one.rank for one in ranking.tried] == [1, 2]
    assert ranking.tried[1].behind.value == 0


def test_ties_are_ties_but_for_rounding():
    cost = np.array([1.0 + 1e-13, np.nan, 1.0, 0.5, np.nan, 1.0 + 1e-6])
    assert search.order_of(cost).tolist() == [3, 0, 2, 5, 1, 4]


def test_one_standard_error_takes_the_first_that_is_near_enough(diabetes):
    grid = [{"pointer": "/algorithm/l2", "values": [30.0, 1.0, 0.01]}]
    best, simple = (ranked(diabetes, rule=rule, grid=grid) for rule in ("best", "one_standard_error"))
    means = [one.validation.value for one in best.tried]
    winner = best.tried[best.best]
    limit = min(means) + stats.sem(winner.folds)
    assert simple.best == next(i for i, mean in enumerate(means) if mean <= limit) == 0
    assert simple.tried[0].rank == 1


def test_what_cannot_be_evaluated_is_reported_and_comes_last(diabetes):
    """A penalised choice by Q among fits of unknown error."""
    with pytest.raises(InvalidData):
        ranked(diabetes, metric="q")


def test_unsupervised_candidates_are_compared_too(diabetes):
    grid = [{"pointer": "/algorithm/n_clusters", "values": [2, 4]}]
    ranking = ranked(diabetes, target=None, algorithm={"name": "kmeans"}, grid=grid)
    assert ranking.metric == "silhouette"
    assert ranking.best == 0  # the patients form no clusters, so the fewest overlap least


def test_the_degree_by_goodness_of_fit():
    """B5.9 on the data of B5.1: Q of the degrees 1, 2, 3 is 2.1e-93, 0.2272, 0.0940."""
    table = pa.table({"x": [0.0, 1, 2, 3, 4], "y": [1.1, 1.9, 5.2, 9.8, 17.1], "s": [0.1, 0.1, 0.2, 0.2, 0.4]})
    columns = [TableColumn(name, "numeric", 0, 5) for name in table.column_names]
    ranking = ranked(
        (table, columns),
        metric="q",
        algorithm={"name": "linear"},
        features=["x"],
        sigma="s",
        validation={"test_fraction": 0},
        preprocessing={"basis": [{"kind": "polynomial", "degree": 1}]},
        grid=[{"pointer": "/preprocessing/basis/0/degree", "values": [1, 2, 3]}],
    )
    assert ranking.best == 1
    assert [one.rank for one in ranking.tried] == [3, 1, 2]
    values = [one.validation.value for one in ranking.tried]
    assert values == pytest.approx([2.0664e-93, 0.22720965, 0.09397207], rel=1e-4)


def test_domain_errors_of_one_candidate_do_not_end_the_search(diabetes):
    table, columns = diabetes[:2]
    shifted = table.set_column(10, "y", pa.array(diabetes[3] - 100))
    grid = [{"pointer": "/preprocessing/target", "values": ["none", "log"]}]
    ranking = ranked((shifted, columns), grid=grid)
    assert ranking.best == 0
    assert ranking.tried[1].rank is None
    assert ranking.tried[1].error
