"""Columns ranked by measures: scikit-learn and scipy as oracles, gaps, ties, the rows left alone, and every refusal."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.feature_selection import f_classif, mutual_info_classif, r_regression
from sklearn.metrics import mutual_info_score

from app.base.errors import InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.evaluation.measure_choice import ENOUGH
from app.ml.jobs.rank import KIND, RankRequest
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.numerics.dependence.quantile_bins import quantile_bins
from app.ml.training.planning.plan import plan
from app.ml.training.rows.training_set import TrainingSet
from tests.ml.jobs.test_combine import flats
from tests.ml.jobs.test_evaluate import NOWHERE, iris, sheet


def request(**changes):
    return RankRequest.model_validate({"dataset": NOWHERE, "test_fraction": 0} | changes)


def ranked(table, **changes):
    requested, known = request(**changes), JobContext((sheet(table),))
    KIND.check(requested, known)
    source = Source(known.datasets[0], iter([table.slice(0, 50), table.slice(50)]))
    return KIND.run(requested, Inputs((source,)), unheard).result


def faults(table, **changes):
    with pytest.raises(InvalidRequest) as raised:
        KIND.check(request(**changes), JobContext((sheet(table),)))
    return [fault.pointer for fault in raised.value.faults]


def values(ranking):
    return {one.column: one.value.value for one in ranking.columns}


def only(result):
    (ranking,) = result.rankings
    return ranking


def test_flowers_by_correlation_ratio_are_as_the_analysis_of_variance_has_them():
    found = ranked(iris(), target="species")
    assert found.reason == "The target has classes, and the columns hold numbers."
    ranking = only(found)
    x, y = np.column_stack([iris()[f"x{place}"] for place in range(4)]), iris()["species"].to_numpy()
    f, p = f_classif(x, y)
    assert [one.column for one in ranking.columns] == [f"x{place}" for place in np.argsort(-f)]
    by_name = {one.column: one for one in ranking.columns}
    np.testing.assert_allclose([by_name[f"x{place}"].p_value for place in range(4)], p, rtol=1e-10)
    assert all(
        one.p_value <= one.p_benjamini_hochberg <= one.p_holm <= 4 * one.p_value * 1.01 for one in ranking.columns
    )
    assert all(one.value.lower < one.value.value < one.value.upper for one in ranking.columns)
    assert [one.rank for one in ranking.columns] == [1, 2, 3, 4]
    assert "exclusive or" in found.evidence


def test_information_without_bias_correction_is_that_of_the_shares():
    """An exclusive or: each column alone has no information, both have 1 bit, which the correction makes 1.036."""
    first, second = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    table = pa.table({"a": np.array(["no", "yes"])[first], "b": np.array(["no", "yes"])[second],
                      "y": np.array(["no", "yes"])[first ^ second]})  # fmt: skip
    names = ["mutual_information", "conditional_information", "mifs"]
    spec = {"target": "y", "measures": names, "given": ["b"], "beta": 0}
    plain = {one.measure: values(one) for one in ranked(table, bias_correction=False, **spec).rankings}
    assert plain["mutual_information"] == plain["mifs"] == {"a": 0, "b": 0}
    assert plain["conditional_information"]["a"] == pytest.approx(1, abs=1e-15)
    corrected = {one.measure: values(one) for one in ranked(table, **spec).rankings}
    assert corrected["conditional_information"]["a"] == pytest.approx(1 + 1 / 40 / np.log(2))
    species = ranked(iris(), target="species", measures=["mutual_information"], max_bins=4, bias_correction=False)
    expected = mutual_info_score(quantile_bins(iris()["x2"].to_numpy(), 4), iris()["species"]) / np.log(2)
    assert values(only(species))["x2"] == pytest.approx(expected, abs=1e-12)


def test_every_measure_of_numbers_and_classes():
    names = ["mutual_information", "nearest_neighbour_information", "fisher_index", "mifs"]
    found = {one.measure: one for one in ranked(iris(), target="species", measures=names, max_bins=5).rankings}
    x = np.column_stack([iris()[f"x{place}"] for place in range(4)])
    y = np.unique(iris()["species"].to_numpy(), return_inverse=True)[1]
    nearest = values(found["nearest_neighbour_information"])
    expected = mutual_info_classif(x, y, random_state=0) / np.log(2)
    np.testing.assert_allclose([nearest[f"x{place}"] for place in range(4)], expected, atol=0.08)  # by other noise
    assert found["mifs"].columns[0].column == found["mutual_information"].columns[0].column
    assert all(one.p_value is None and one.value.lower is None for one in found["mifs"].columns)
    assert found["mifs"].tests == 0
    assert found["fisher_index"].tests == 4
    assert {one.column for one in found["fisher_index"].columns[:2]} == {"x2", "x3"}


def test_binned_information_of_categories_is_that_of_counts():
    table = flats(400)
    found = only(ranked(table, target="dear", measures=["mutual_information"], features=["garden"]))
    a, b = table["garden"].to_numpy().astype(int), np.unique(table["dear"].to_numpy(), return_inverse=True)[1]
    cells = np.unique(a * 3 + b).size
    bias = (cells - 2 - 3 + 1) / 800
    assert found.columns[0].value.value == pytest.approx(max(0, mutual_info_score(a, b) - bias) / np.log(2))


def test_a_column_with_gaps_is_measured_on_the_rows_it_has():
    table = flats(300)
    found = only(ranked(table, target="rent", measures=["correlation"]))
    by_name = {one.column: one for one in found.columns}
    x, y = table["size"].to_numpy(zero_copy_only=False), table["rent"].to_numpy()
    there = ~np.isnan(x)
    expected = stats.pearsonr(x[there], y[there])
    size = by_name["size"]
    assert (size.value.value, size.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
    assert (size.value.n, size.missing) == (there.sum(), (~there).sum())
    assert found.notes == ["1 columns lack values: each is measured on the rows that have one."]
    rooms = by_name["rooms"].value.value
    assert rooms == pytest.approx(r_regression(table["rooms"].to_numpy()[:, None], y)[0], rel=1e-10)
    assert {one.column: one.reason for one in found.left_out} == {
        "place": "It holds categories; this measure needs numbers.",
        "dear": "It holds categories; this measure needs numbers.",
    }


def test_categories_by_chi_square():
    table = flats(300)
    found = only(ranked(table, target="dear", measures=["chi_square"], features=["place", "garden", "size"]))
    there = [place is not None for place in table["place"].to_pylist()]
    place, dear = (np.array(table[name].to_pylist())[there] for name in ("place", "dear"))
    counts = [[np.sum((place == a) & (dear == b)) for b in np.unique(dear)] for a in np.unique(place)]
    expected = stats.chi2_contingency(counts, correction=False)
    own = next(one for one in found.columns if one.column == "place")
    assert (own.value.value, own.p_value) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-10)
    assert [one.column for one in found.left_out] == ["size"]


def test_exclusive_or_is_invisible_alone_and_one_bit_given_the_other():
    a, b = np.tile([0, 0, 1, 1], 50), np.tile([0, 1, 0, 1], 50)
    table = pa.table({"hamburger": a.astype(bool), "dessert": b.astype(bool), "correct": (a != b)})
    names = ["mutual_information", "chi_square", "conditional_information"]
    found = ranked(table, target="correct", measures=names, given=["dessert"])
    alone, chi, given = found.rankings
    assert values(alone) == values(chi) == {"hamburger": 0, "dessert": 0}
    assert [(one.rank, one.tied_with) for one in alone.columns] == [(1, ["dessert"]), (1, ["hamburger"])]
    assert values(given) == {"hamburger": pytest.approx(1, abs=0.02)}
    assert given.columns[0].p_value < 1e-50


def test_a_parabola_has_no_correlation_but_information():
    x = np.linspace(-2, 2, 401)
    table = pa.table({"x": x, "y": x**2})
    line, curve = ranked(table, target="y", measures=["correlation", "nearest_neighbour_information"]).rankings
    assert values(line)["x"] == pytest.approx(0, abs=1e-12)
    assert values(curve)["x"] > 2


def test_copies_are_tied_and_constants_left_out():
    x = np.arange(60.0)
    y = x + 20 * np.sin(x)
    table = pa.table({"one": x, "other": -3 * x, "same": np.ones(60), "curve": np.cos(x), "y": y})
    found = only(ranked(table, target="y"))
    assert [(one.column, one.rank, one.tied_with) for one in found.columns[:2]] == [
        ("one", 1, ["other"]), ("other", 1, ["one"])
    ]  # fmt: skip
    assert found.columns[2].rank == 3
    assert [one.column for one in found.left_out] == ["same"]
    assert found.left_out[0].reason == "It has a single value in the 60 rows used."


@pytest.mark.parametrize(
    ("target", "features", "few", "many"),
    [
        ("rent", ["size", "rooms"], ["correlation"], ["nearest_neighbour_information"]),
        ("rent", ["size", "place"], ["correlation", "correlation_ratio"], ["mutual_information"]),
        ("rent", ["place", "garden"], ["correlation_ratio"], ["correlation_ratio"]),
        ("dear", ["size", "rooms"], ["correlation_ratio"], ["correlation_ratio"]),
        ("dear", ["size", "place"], ["correlation_ratio", "chi_square"], ["mutual_information"]),
        ("dear", ["place", "garden"], ["chi_square"], ["chi_square"]),
    ],
)
def test_kinds_and_rows_choose_the_measures(target, features, few, many):
    for rows, expected in ((ENOUGH - 1, few), (ENOUGH, many)):
        found = ranked(flats(rows), target=target, features=features)
        assert [one.measure for one in found.rankings] == expected
        placed = [one.column for ranking in found.rankings for one in (*ranking.columns, *ranking.left_out)]
        assert {*placed} == {*features}
        assert found.reason


def test_rows_that_a_training_holds_out_are_left_alone():
    table = flats(200)
    whole, part = (ranked(table, target="rent", features=["rooms"], test_fraction=share) for share in (0, 0.2))
    assert (whole.rows, part.rows) == (200, 160)
    assert "40, which a training holds out" in part.evidence
    spec = request(target="rent", test_fraction=0.2).spec
    training_set = TrainingSet.read(plan(spec, sheet(table).columns, 200), table)
    held_out = training_set.holdout(0.2, np.random.Generator(np.random.PCG64(0))).test
    rooms = table["rooms"].to_numpy().copy()
    rooms[held_out] = 99
    changed = table.set_column(1, "rooms", pa.array(rooms))
    other = ranked(changed, target="rent", features=["rooms"], test_fraction=0.2)
    assert other.rankings == part.rankings


def test_the_same_request_has_the_same_result():
    one, other = (ranked(flats(200), target="dear", measures=None).model_dump_json() for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"target": "rnet"}, ["/target"]),
        ({"target": "rent", "features": ["size", "sise", "rent"]}, ["/features/1", "/features/2"]),
        ({"target": "rent", "measures": ["correlation", "chi_square", "fisher_index"]}, ["/measures/1", "/measures/2"]),
        ({"target": "dear", "measures": ["rank_correlation"]}, ["/measures/0"]),
        ({"target": "dear", "measures": ["conditional_information"]}, ["/given"]),
        ({"target": "dear", "given": ["size"]}, ["/given"]),
        ({"target": "dear", "measures": ["conditional_information"], "given": ["x", "dear"]}, ["/given/0", "/given/1"]),
        ({"target": "dear", "group": "nobody", "time": "never"}, ["/group", "/time"]),
        ({"target": "dear", "kinds": {"nothing": "numeric"}}, ["/kinds/nothing"]),
    ],
)
def test_every_fault_has_its_place(changes, pointers):
    assert sorted(set(faults(flats(100), **changes))) == pointers


def test_mifs_of_too_many_columns_is_refused():
    table = pa.table({f"x{place}": [1.0, 2, 3] for place in range(501)} | {"y": [1.0, 2, 4]})
    assert faults(table, target="y", measures=["mifs"]) == ["/measures/0"]
