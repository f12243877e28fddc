"""Drift of one table from another, and from the rows that a model was trained on."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.progress import unheard
from app.ml.jobs import drift
from app.ml.kinds.job import Inputs, JobContext, Source
from app.ml.monitoring import reference as references
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.jobs.test_combine import flats, loaded
from tests.ml.jobs.test_evaluate import NOWHERE, sheet

OTHER = "00000000-0000-7000-8000-000000000001"


def drifted(result):
    return [(each.column, each.aspect) for each in result.columns if each.drifted]


def compared(current, reference=None, model=None, **changes):
    body = {"current": NOWHERE, "reference": None if reference is None else OTHER} | changes
    body |= {} if model is None else {"model": {"model": "m"}}
    request = drift.DriftRequest.model_validate(body)
    tables = [current, *([] if reference is None else [reference])]
    models = () if model is None else (model,)
    sheets = tuple(map(sheet, tables))
    drift.KIND.check(request, JobContext(sheets, tuple(one.version for one in models)))
    sources = tuple(Source(one, iter([table])) for one, table in zip(sheets, tables, strict=True))
    return drift.KIND.run(request, Inputs(sources, models), unheard).result


def faults(*tables, model=None, **changes):
    with pytest.raises(InvalidRequest) as raised:
        compared(*tables, model=model, **changes)
    return sorted((fault.pointer, fault.code) for fault in raised.value.faults)


@pytest.fixture(scope="module")
def rents():
    table = flats(2000)
    spec = {"algorithm": {"name": "ridge"}, "target": "rent", "features": ["size", "rooms", "place", "garden"]}
    made = train(plan(TrainSpec.model_validate(spec), sheet(table).columns, 2000), table, data_digest="sha256:own")
    return loaded(made, "rents")._replace(reference=references.decode(made.reference))


def test_rows_of_one_source_have_not_drifted():
    result = compared(flats(1500, seed=1), flats(1500, seed=2))
    assert (result.drifted, result.current_rows, result.reference_rows) == (0, 1500, 1500)
    assert {(each.column, each.aspect) for each in result.columns} >= {
        *((name, "values") for name in ("size", "rooms", "place", "garden", "rent", "dear")),
        *(("size", "missing"), ("place", "missing"), ("place", "unseen")),
    }


@pytest.mark.parametrize("rows", [150, 3000])
def test_planted_shifts_are_found_and_nothing_else(rows):
    table = flats(rows, seed=1)
    larger = pa.array(table["size"].to_numpy() * 1.6, from_pandas=True)
    places = pa.array([None if row % 2 else place for row, place in enumerate(table["place"].to_pylist())])
    table = table.set_column(0, "size", larger).set_column(2, "place", places)
    result = compared(table.drop(["rent", "dear"]), flats(3000, seed=2).drop(["rent", "dear"]))
    assert drifted(result) == [("place", "missing"), ("size", "values")]


def test_a_new_category_is_unseen():
    table = flats(400, places=("north", "south", "mars"))
    found = compared(table.select(["place"]), flats(400, seed=3).select(["place"])).columns
    assert next(each for each in found if each.aspect == "unseen").drifted


def test_distances_are_those_of_scipy():
    found = compared(flats(900, seed=1, places=("north", "east")), flats(1100, seed=2)).columns
    place = next(each for each in found if (each.column, each.aspect) == ("place", "values"))
    then, now = ([getattr(level, side) for level in place.histogram] for side in ("reference", "current"))
    from scipy.spatial.distance import jensenshannon

    assert place.jensen_shannon == pytest.approx(jensenshannon(then, now, 2))
    rooms = next(each for each in found if (each.column, each.aspect) == ("rooms", "values"))
    exact = stats.ks_2samp(flats(900, seed=1)["rooms"].to_numpy(), flats(1100, seed=2)["rooms"].to_numpy()).statistic
    assert rooms.kolmogorov_smirnov == pytest.approx(exact)  # five values: every one ends a bin


def test_columns_that_change_predictions_come_first(rents):
    table = flats(1500, seed=4)
    fewer = np.minimum(table["rooms"].to_numpy(), 3.0)
    table = table.set_column(0, "size", pa.array(table["size"].to_numpy() * 1.5, from_pandas=True))
    table = table.set_column(1, "rooms", pa.array(fewer))
    result = compared(table, model=rents)
    assert drifted(result)[0] == ("size", "values")
    assert ("prediction", "prediction") in drifted(result)
    by_column = {each.column: each for each in result.columns if each.aspect == "values"}
    usual = flats(1500, seed=4)["size"].to_numpy()
    expected = 8 * 0.5 * np.nanmean(usual)  # eight a square metre; a half of it is put back
    assert by_column["size"].prediction_change == pytest.approx(expected, rel=0.1)
    assert by_column["rooms"].prediction_change == pytest.approx(40 * (3 - 2.4), rel=0.2)
    assert by_column["garden"].prediction_change < 5


def test_reference_is_that_of_the_training(rents):
    result = compared(flats(2000, seed=5), model=rents)
    assert (result.drifted, result.reference, result.reference_rows) == (0, None, 1600)
    assert {each.column for each in result.columns} == {"size", "rooms", "place", "garden", "prediction"}
    current = next(pair.current for pair in result.quality if pair.name == "rmse")
    assert 80 < current.value < 120  # gaps in the sizes, and noise of 30


def test_metrics_of_both_tables_stand_side_by_side(rents):
    noisy = flats(800, seed=6)
    rng = np.random.default_rng(0)
    place = noisy.column_names.index("rent")
    noisy = noisy.set_column(place, "rent", pa.array(noisy["rent"].to_numpy() + rng.normal(0, 400, 800)))
    result = compared(noisy, flats(800, seed=7), rents)
    rmse = next(pair for pair in result.quality if pair.name == "rmse")
    assert rmse.reference.upper < 120
    assert rmse.current.lower > 350
    assert compared(noisy.drop(["rent"]), flats(800, seed=7), rents).quality is None


def test_classes_are_compared_as_labels_and_as_probabilities():
    table = flats(1000)
    spec = {"algorithm": {"name": "logistic"}, "target": "dear", "features": ["size", "rooms"]}
    made = train(plan(TrainSpec.model_validate(spec), sheet(table).columns, 1000), table, data_digest="sha256:own")
    model = loaded(made, "dear")._replace(reference=references.decode(made.reference))
    small = flats(600, seed=1)
    small = small.set_column(0, "size", pa.array(small["size"].to_numpy() * 0.4, from_pandas=True))
    result = compared(small, model=model)
    found = {each.column: each for each in result.columns if each.aspect == "prediction"}
    assert {*found} == {"prediction", "probability"}
    cheap = next(level for level in found["prediction"].histogram if level.label == "cheap")
    assert cheap.current > cheap.reference + 0.2


def test_what_cannot_be_compared_is_refused(rents):
    table = flats(50)
    assert faults(table) == [("/reference", "missing")]
    assert faults(table.select(["size"]), model=rents) == [("/current", "missing_column")] * 3
    assert faults(table, table, columns=["size", "sise"]) == [("/columns/1", "unknown_column")] * 2
    assert faults(table.select(["size"]), table.select(["rooms"])) == [("/current", "invalid")]
    with pytest.raises(InvalidData, match="no stored reference"):
        compared(table, model=rents._replace(reference=None))


def test_the_same_seed_gives_the_same_result():
    tables = flats(200, seed=1), flats(300, seed=2)
    assert compared(*tables, seed=5) == compared(*tables, seed=5)
