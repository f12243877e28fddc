"""A model evaluated on a dataset: the same metrics as in its report, and the rows behind them."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes, load_iris

from app.base.errors import InvalidData, InvalidRequest
from app.ml.contract.columns import TableColumn
from app.ml.contract.progress import unheard
from app.ml.jobs.evaluate import KIND, EvaluateRequest
from app.ml.kinds.job import Inputs, JobContext, Loaded, Sheet, Source, Version
from app.ml.models import seen_rows
from app.ml.models.header import read_header
from app.ml.models.model import decode, digest
from app.ml.training.fitting import out_of_core
from app.ml.training.planning import cost
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train
from tests.ml.training.beyond_memory import plan_within as plan

NOWHERE = "00000000-0000-7000-8000-000000000000"


def iris(rows=slice(None)):
    data = load_iris()
    columns = {f"x{place}": data.data[rows, place] for place in range(4)}
    return pa.table(columns | {"species": data.target_names[data.target[rows]].astype(str)})


def sheet(table, data_digest="sha256:own"):
    kinds = {"string": "categorical", "bool": "boolean"}
    columns = (
        TableColumn(f.name, kinds.get(str(f.type), "numeric"), table[f.name].null_count, len(table[f.name].unique()))
        for f in table.schema
    )
    return Sheet(data_digest, table.num_rows, tuple(columns))


class Evaluated:
    """A trained model, and what evaluate says of it."""

    def __init__(self, table, memory_bytes=np.inf, **spec):
        requested = TrainSpec.model_validate({"algorithm": {"name": "logistic"}, "target": "species", "seed": 3} | spec)
        self.table = table
        self.trained = train(
            plan(requested, sheet(table).columns, table.num_rows, memory_bytes), table, data_digest="sha256:own"
        )
        blob = self.trained.blob
        self.version = Version("m", 1, digest(blob), read_header(blob))
        self.model = decode(blob)
        self.seen = seen_rows.decode(self.trained.seen)

    def request(self, **changes):
        return EvaluateRequest.model_validate({"model": "m", "dataset": NOWHERE} | changes)

    def faults(self, table, data_digest="sha256:other", **changes):
        with pytest.raises(InvalidRequest) as raised:
            KIND.check(self.request(**changes), JobContext((sheet(table, data_digest),), (self.version,)))
        return sorted((fault.pointer, fault.code) for fault in raised.value.faults)

    def result(self, table=None, data_digest="sha256:own", **changes):
        table, request = self.table if table is None else table, self.request(**changes)
        known = JobContext((sheet(table, data_digest),), (self.version,))
        assert KIND.check(request, known).algorithms == (self.version.header.algorithm,)
        source = Source(known.datasets[0], iter([table.slice(0, 70), table.slice(70)]))
        return KIND.run(request, Inputs((source,), (Loaded(self.version, self.model, self.seen),)), unheard).result


@pytest.fixture(scope="module")
def flowers():
    return Evaluated(iris())


def values(metrics):
    return {(metric.name, metric.label): metric.value for metric in metrics}


def test_on_its_own_data_it_is_evaluated_on_the_held_out_rows(flowers):
    result, report = flowers.result(), flowers.trained.report
    assert values(result.metrics) == pytest.approx(values(report.test), rel=1e-12)
    assert result.confusion_matrix.counts == report.confusion_matrix.counts
    assert result.rejection == report.rejection
    assert result.reuse == report.reuse
    assert (result.rows, result.warnings) == (report.rows_test, [])


def test_a_threshold_moves_the_border_between_two_classes(flowers):
    both = Evaluated(iris(slice(50, 150)))
    p = both.model.predict(both.table).probabilities[:, 1]
    truth = np.repeat([0, 1], 50)
    counts = both.result(rows="all", threshold=0.2).confusion_matrix.counts
    assert counts == [[int(((truth == i) & ((p >= 0.2) == j)).sum()) for j in (0, 1)] for i in (0, 1)]
    assert flowers.faults(iris(), threshold=0.2) == [("/threshold", "invalid")]


def test_on_all_rows_of_its_own_data_it_says_that_they_prove_nothing(flowers):
    result = flowers.result(rows="all")
    assert result.rows == 150
    assert result.reuse is None
    assert any("trained on these rows" in warning for warning in result.warnings)


def test_of_a_model_that_may_abstain_it_says_how_many_rows_are_accepted_and_how_well():
    members = [{"name": "ridge"}, {"name": "knn", "n_neighbors": 1}, {"name": "decision_tree", "max_depth": 1}]
    flowers = Evaluated(
        iris(), algorithm={"name": "committee", "estimators": members, "voting": "hard", "min_probability": 1}
    )
    result = flowers.result(rows="all")
    predictions = flowers.model.predict(flowers.table).predictions
    accepted = [one is not None for one in predictions]
    right = np.array(predictions)[accepted] == np.array(flowers.table["species"].to_pylist())[accepted]
    metrics = values(result.metrics)
    assert 0 < metrics["coverage", None] == np.mean(accepted) < 1
    assert metrics["selective_accuracy", None] == right.mean() > metrics["accuracy", None]
    assert any(f"To {150 - sum(accepted)} rows" in warning for warning in result.warnings)


def moved(table, by=0.001):
    """Rows that nobody has seen, much like those of the table."""
    return table.set_column(0, "x0", pa.array(table["x0"].to_numpy() + by))


def test_other_data_is_evaluated_whole(flowers):
    result = flowers.result(moved(iris(slice(0, 150, 3))), "sha256:other")
    assert result.rows == 50
    assert result.reuse.rows == "all rows, target 'species'"
    assert result.warnings == []


def test_training_rows_within_another_dataset_are_left_out(flowers):
    """The same table in another order, with ten rows more: the ten and those held out are evaluated."""
    rng = np.random.default_rng(0)
    table = pa.concat_tables([flowers.table, moved(iris(slice(0, 150, 15)))]).take(pa.array(rng.permutation(160)))
    seen = flowers.trained.report.rows_train
    result, every = flowers.result(table, "sha256:other"), flowers.result(table, "sha256:other", rows="all")
    twins = flowers.trained.report.duplicates.test_rows
    assert result.rows == 160 - seen - twins
    assert (
        result.evidence
        == f"The metrics rest on {result.rows} rows of the dataset that the model's training has not seen."
    )
    assert result.reuse.rows == f"all but {seen + twins} training rows, target 'species'"
    assert f"{seen + twins} of 160 rows equal a training row of the model in all columns used" in result.warnings[0]
    assert "left out" in result.warnings[0]
    assert every.rows == 160
    assert f"{seen + twins} of 160 rows equal" in every.warnings[0]
    assert "optimistic" in every.warnings[0]


def test_a_part_of_the_training_rows_leaves_none_to_evaluate(flowers):
    sheet_of_seen = flowers.table.take(pa.array(np.flatnonzero(~np.isin(np.arange(150), held_out(flowers)))))
    with pytest.raises(InvalidData, match="equal training rows of the model: none is left"):
        flowers.result(sheet_of_seen, "sha256:part")
    assert flowers.result(sheet_of_seen, "sha256:part", rows="all").rows == 120


def held_out(flowers):
    cells = flowers.result(examples=1000).confusion_matrix.cells
    return [row for cell in cells for row in cell.rows]


def test_a_version_that_does_not_know_its_training_rows_says_so(flowers):
    other = Evaluated.__new__(Evaluated)
    other.table, other.model, other.version, other.seen = flowers.table, flowers.model, flowers.version, None
    result = other.result(other.table, "sha256:other")
    assert result.rows == 150
    assert any("training rows are not known" in warning for warning in result.warnings)
    assert other.result().warnings == []


def test_new_rows_of_few_different_values_are_evaluated_though_they_equal_training_rows():
    rng = np.random.default_rng(0)

    def table(rows):
        return pa.table({name: rng.choice(["a", "b", "c"], rows) for name in ("sex", "age", "species")})

    flowers = Evaluated(table(2000), algorithm={"name": "decision_tree"})
    result = flowers.result(table(500), "sha256:new")
    assert result.rows == 500
    assert "500 of 500 rows equal a training row of the model in all columns used, no more than" in result.warnings[0]


@pytest.mark.slow
def test_rows_learned_in_batches_are_left_out_of_their_own_table(monkeypatch):
    monkeypatch.setattr(cost, "BATCH_CELLS", 6000)
    monkeypatch.setattr(cost, "FEWEST", 100)
    monkeypatch.setattr(out_of_core, "BLOCK", 64)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8000, 8))
    table = pa.table({f"x{place}": x[:, place] for place in range(8)} | {"y": x.sum(axis=1)})
    room = cost.BASE_BYTES + 3_000_000  # for batches and hashes of rows, not for all rows
    flowers = Evaluated(table, algorithm={"name": "linear_sgd"}, target="y", memory_bytes=room)
    assert "batch_rows" in flowers.version.header.receipt
    result = flowers.result()
    assert result.rows == 8000 - flowers.trained.report.rows_train
    assert flowers.result(rows="held_out").rows == result.rows
    cramped = Evaluated(table, algorithm={"name": "linear_sgd"}, target="y", memory_bytes=1)
    assert cramped.trained.seen == b""
    assert any("was trained on these rows" in warning for warning in cramped.result().warnings)


def test_every_cell_names_rows_that_belong_to_it(flowers):
    table = iris()
    result = flowers.result(rows="all", examples=7)
    matrix = result.confusion_matrix
    predicted = flowers.model.predict(table).predictions
    truth = table["species"].to_pylist()
    for cell in matrix.cells:
        assert cell.count == matrix.counts[cell.truth][cell.assigned]
        every = [
            row
            for row in range(150)
            if (truth[row], predicted[row]) == (matrix.classes[cell.truth], matrix.classes[cell.assigned])
        ]
        assert cell.rows == every[:7]
    assert sum(cell.count for cell in matrix.cells) == 150
    hits = [cell.truth == cell.assigned for cell in matrix.cells]
    assert hits == sorted(hits)  # mistakes first
    assert flowers.result(examples=0).confusion_matrix.cells is None


def test_row_numbers_are_those_of_the_dataset(flowers):
    """Held-out rows keep the numbers of the table; rows without a truth are not evaluated."""
    table = iris().to_pydict()
    table["species"][:20] = [None] * 20
    result = flowers.result(pa.table(table), "sha256:other", rows="all", examples=1000)
    assert sorted(row for cell in result.confusion_matrix.cells for row in cell.rows) == list(range(20, 150))


def test_every_fault_at_once(flowers):
    table = iris().drop_columns(["x1", "species"]).append_column("x1", pa.array(["a"] * 150)).drop_columns(["x2"])
    costs = {"classes": ["setosa", "rose"], "costs": [[0, 1], [1]]}
    assert flowers.faults(table, version=1, alias="a", rows="held_out", costs=costs) == [
        ("/alias", "invalid"),
        ("/costs/classes", "invalid"),
        ("/costs/costs/1", "invalid"),
        ("/dataset", "missing_column"),
        ("/dataset", "wrong_kind"),
        ("/rows", "invalid"),
        ("/target", "unknown_column"),
    ]


def test_the_truth_must_be_of_the_models_kind(flowers):
    table = iris().drop_columns(["species"]).append_column("species", pa.array(range(150)))
    assert flowers.faults(table) == [("/target", "wrong_kind")]
    assert flowers.faults(iris(), "sha256:own", target="x0", rows="held_out") == [
        ("/target", "invalid"),
        ("/target", "wrong_kind"),
    ]


def test_classes_the_model_does_not_know_are_mistakes(flowers):
    table = iris().to_pydict()
    table["species"][:10] = ["rose"] * 10
    result = flowers.result(pa.table(table), "sha256:other", rows="all")
    plain = flowers.result(iris(), "sha256:other", rows="all")
    assert result.confusion_matrix.classes == ["setosa", "versicolor", "virginica", "rose"]
    assert sum(result.confusion_matrix.counts[3][:3]) == 10
    assert values(result.metrics)["accuracy", None] == values(plain.metrics)["accuracy", None] - 10 / 150
    assert any("10 rows" in warning and "rose" in warning for warning in result.warnings)


def test_costs_move_the_decision(flowers):
    """Calling a virginica a versicolor costs ten times the other mistakes: fewer of these, and cheaper in all."""
    costs = {"classes": ["virginica", "versicolor", "setosa"], "costs": [[0, 10, 10], [1, 0, 1], [1, 1, 0]]}
    result = flowers.result(rows="all", costs=costs)
    before, after = result.confusion_matrix.counts, result.costs.confusion_matrix.counts
    assert result.costs.cost.value <= result.costs.cost_of_most_probable.value
    assert after[2][1] <= before[2][1]
    assert after[1][2] >= before[1][2]
    matrix = np.array([[0, 1, 1], [1, 0, 1], [10, 10, 0]])  # in the order of the model's classes
    assert result.costs.cost.value == pytest.approx((matrix * after).sum() / 150)
    assert result.costs.cost_of_most_probable.value == pytest.approx((matrix * before).sum() / 150)


def test_coverage_of_intervals_by_fifths_of_the_prediction():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=1500)
    table = pa.table({"x": x, "y": (1 + 10 * x) * np.exp(0.3 * rng.normal(size=1500))})
    flowers = Evaluated(table.slice(0, 1000), target="y", algorithm={"name": "ridge"})
    result = flowers.result(table.slice(1000), "sha256:other").intervals
    assert (result.interval, result.coverage.n, [fifth.rows for fifth in result.fifths]) == (
        "split-conformal",
        500,
        [100] * 5,
    )
    assert all(fifth.coverage.upper > 0.95 for fifth in result.fifths)
    assert result.coverage.value == pytest.approx(np.mean([fifth.coverage.value for fifth in result.fifths]))
    assert Evaluated(iris()).result().intervals is None


@pytest.mark.parametrize("preprocessing", [{}, {"target": "log", "basis": [{"kind": "polynomial", "columns": ["x2"]}]}])
def test_regression(preprocessing):
    data = load_diabetes()
    table = pa.table({f"x{place}": data.data[:, place] for place in range(10)} | {"y": data.target})
    flowers = Evaluated(table, algorithm={"name": "ridge"}, target="y", preprocessing=preprocessing)
    result = flowers.result()
    assert values(result.metrics) == pytest.approx(values(flowers.trained.report.test), rel=1e-12)
    assert result.confusion_matrix is None
    costs = {"classes": [1, 2], "costs": [[0, 1], [1, 0]]}
    assert flowers.faults(table, costs=costs) == [("/costs", "invalid")]


@pytest.mark.parametrize(
    ("algorithm", "metric"),
    [({"name": "kmeans", "n_clusters": 8}, "inertia"), ({"name": "pca"}, "explained_variance")],
    ids=["kmeans", "pca"],
)
def test_without_a_target(algorithm, metric):
    table, spec, name = iris().drop_columns(["species"]), {"algorithm": algorithm, "target": None}, algorithm["name"]
    flowers = Evaluated(table, validation={"test_fraction": 0.2}, **spec)
    result = flowers.result()
    assert result.rows == flowers.trained.report.rows_test == 30
    whole = Evaluated(table, **spec)
    assert whole.trained.report.evidence == "No rows were held out: the metrics are of the 150 training rows."
    assert whole.trained.report.warnings == []
    assert whole.result(rows="all").rows == 150
    assert values(result.metrics)[metric, None] is not None
    if name == "pca":
        assert flowers.faults(iris(), target="species") == [("/target", "invalid")]
        return
    compared = flowers.result(iris(), data_digest="sha256:other", target="species", rows="all")
    assert values(compared.metrics)["adjusted_rand", None] > 0
    assert compared.evidence.endswith("with the column 'species' in 150 rows, unseen by the fit.")


def test_a_model_that_does_not_say_what_it_held_out_is_evaluated_on_all(flowers):
    """As one whose receipt was written by another way of training."""
    other = Evaluated.__new__(Evaluated)
    other.table, other.model, other.seen = flowers.table, flowers.model, None
    header = flowers.version.header._replace(receipt={"data_digest": "sha256:own"})
    other.version = flowers.version._replace(header=header)
    assert other.result().rows == 150
    with pytest.raises(InvalidData):
        other.result(rows="held_out")
