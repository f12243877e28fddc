"""An ensemble from a search: what it promises is what its committee does, and choosing flatters nobody."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import Stages, unheard
from app.ml.training.planning.plan import plan
from app.ml.training.search import ensemble_selection, search
from app.ml.training.search.candidates import SearchSpec, candidates

NEIGHBOURS = {"pointer": "/algorithm/n_neighbors", "values": [5, 15]}


def tables():
    x, y = load_diabetes(return_X_y=True)
    flowers, species = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[species]
    noisy = flowers + np.random.default_rng(0).normal(size=flowers.shape)
    return {
        "diabetes": {**{f"x{j}": column for j, column in enumerate(x.T)}, "y": y},
        "iris": {
            **{f"x{j}": column for j, column in enumerate(noisy.T)},
            "y": names,
        },
    }


def searched(columns, *, metric=None, folds=5, fold_models=False, **spec):
    import pyarrow as pa

    table = pa.table(columns)
    sheet = [
        TableColumn(name, "categorical" if pa.types.is_string(cells.type) else "numeric", cells.null_count, 9)
        for name, cells in zip(table.column_names, table.columns, strict=True)
    ]
    found = candidates(SearchSpec.model_validate({"target": "y", "algorithm": {"name": "knn"}} | spec))
    return search.rank(
        found, plan(found[0].spec, sheet, table.num_rows), table, folds=folds, metric=metric, rule="best",
        stages=Stages(unheard), share=0.9, fold_models=fold_models,
    )  # fmt: skip


def found_in(report, name):
    return next(metric.value for metric in report.cross_validation if (metric.name, metric.label) == (name, None))


WAYS = {
    "numbers": ("diabetes", "rmse", {"alternatives": [{"name": "ridge"}]}),
    "logarithms": ("diabetes", "mae", {"alternatives": [{"name": "ridge"}], "preprocessing": {"target": "log"}}),
    "classes": ("iris", "log_loss", {"alternatives": [{"name": "generative_bayes"}, {"name": "logistic"}]}),
    "shares of classes right": ("iris", "accuracy", {"alternatives": [{"name": "logistic"}], "seed": 2}),
}


@pytest.mark.parametrize(("name", "metric", "how"), WAYS.values(), ids=WAYS)
def test_the_proposed_committee_has_the_reported_metrics_out_of_fold(report_of, name, metric, how):
    """Trained from the response as it stands and evaluated by the same folds, unseen by its members."""
    columns = tables()[name]
    ranking = searched(columns, metric=metric, grid=[NEIGHBOURS], **how)
    found = ranking.ensemble
    assert len(found.members) > 1
    report = report_of(
        columns, target="y", algorithm=found.algorithm, preprocessing=found.preprocessing,
        validation={"method": "kfold", "folds": 5}, seed=how.get("seed", 0),
    )  # fmt: skip
    assert found_in(report, metric) == pytest.approx(found.validation.value, rel=1e-9)
    best = ranking.tried[ranking.best].validation.value
    assert found.validation.value > best if metric == "accuracy" else found.validation.value < best
    weights = {member.candidate: member.weight for member in found.members}
    assert [ranking.tried[place].algorithm for place in weights] == [
        one["name"] for one in found.algorithm["estimators"]
    ]
    assert found.algorithm["estimator_weights"] == list(weights.values()) == sorted(weights.values(), reverse=True)


def test_every_fold_evaluates_what_the_others_chose():
    """Written out: the ensemble and the best candidate of four folds, in the fifth."""
    columns = tables()["diabetes"]
    requested = {"alternatives": [{"name": "ridge"}, {"name": "lasso"}], "grid": [NEIGHBOURS]}
    ranking = searched(columns, **requested)
    scores = np.array([one.folds for one in ranking.tried])
    alone = [scores[np.argmin(np.delete(scores, fold, axis=1).mean(axis=1)), fold] for fold in range(5)]
    gain, expected = ranking.ensemble.gain, ranking.ensemble.expected
    assert gain.value == pytest.approx(np.mean(alone) - expected.value)
    assert gain.lower < gain.value < gain.upper
    assert (gain.name, gain.n) == ("rmse_difference", 5)


def test_what_was_chosen_among_noise_promises_nothing():
    rng = np.random.default_rng(4)
    columns = {"a": rng.normal(size=90), "b": rng.normal(size=90), "y": rng.normal(size=90)}
    draws = [{"pointer": "/algorithm/n_neighbors", "low": 1, "high": 40, "whole": True}]
    found = searched(columns, draws=draws, draw_count=12, alternatives=[{"name": "decision_tree"}]).ensemble
    assert found.validation.value < found.expected.value
    assert found.gain.lower < 0


def test_nothing_is_offered_where_nothing_is_better():
    columns = tables()["diabetes"]
    assert searched(columns).ensemble is None
    assert searched(columns, alternatives=[{"name": "knn"}]).ensemble is None, "a copy adds nothing"
    kmeans = {
        "algorithm": {"name": "kmeans"},
        "target": None,
        "grid": [{"pointer": "/algorithm/n_clusters", "values": [2, 3]}],
    }
    assert searched({"a": columns["x0"], "b": columns["x2"]}, **kmeans).ensemble is None


def test_fold_models_are_kept_when_requested():
    columns = tables()["diabetes"]
    one = searched(columns, fold_models=True, folds=4).ensemble
    assert one.algorithm["cv"] == 4
    assert [member.candidate for member in one.members] == [0]
    several = searched(columns, fold_models=True, alternatives=[{"name": "ridge"}]).ensemble
    assert (several.algorithm["cv"], len(several.members)) == (5, 2)


def test_members_see_on_the_committee_what_they_saw_alone():
    """A tree takes categories as they are; beside ridge it would get indicators, and predict otherwise."""
    rng = np.random.default_rng(1)
    town = rng.choice(["u", "v", "w"], 120)
    columns = {"a": rng.normal(size=120), "town": town, "y": rng.normal(size=120) + 2 * (town == "u")}
    ranking = searched(columns, algorithm={"name": "ridge"}, alternatives=[{"name": "decision_tree"}, {"name": "knn"}])
    assert not any(ranking.tried[member.candidate].algorithm == "decision_tree" for member in ranking.ensemble.members)
    assert "the 2 best candidates that see the columns alike" in ranking.ensemble.evidence
    scaled = [{"pointer": "/preprocessing/scaling", "values": ["standard", "none"]}]
    apart = searched(tables()["diabetes"], algorithm={"name": "knn"}, grid=scaled).ensemble
    assert apart is None, "members of one committee are prepared in one way"


def test_predictions_are_kept_of_as_many_as_there_is_room_for(monkeypatch):
    columns = tables()["diabetes"]
    grid = [{"pointer": "/algorithm/n_neighbors", "values": [40, 3, 7, 15, 10]}]
    free = searched(columns, grid=grid).ensemble
    monkeypatch.setattr(ensemble_selection, "NUMBERS", 2 * 354)
    held = searched(columns, grid=grid)
    ranks = {held.tried[member.candidate].rank for member in held.ensemble.members}
    assert ranks <= {1, 2}
    assert "the 5 best" in free.evidence
    assert "the 2 best" in held.ensemble.evidence
    monkeypatch.setattr(ensemble_selection, "NUMBERS", 353)
    assert searched(columns, grid=grid).ensemble is None
