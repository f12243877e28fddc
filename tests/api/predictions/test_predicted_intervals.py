"""Predictions with an interval for each: those of the algorithm, in every form of body and of response."""

import io
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm

from app.base.errors import NoInterval
from app.ml.catalogue.algorithm_files import catalogue
from app.ml.contract.columns import TableColumn
from app.ml.models.model import decode
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 2))
Y = np.exp(0.3 + X @ [0.5, -0.2] + 0.1 * RNG.normal(size=60))
ROWS = [[0.1, -0.3], [1.5, 0.25], [-40, 3]]


@pytest.fixture(scope="module")
def made(services):
    """`made(algorithm, …)`: the name of a model of two numbers in the registry, and the model."""
    known = {}

    def make(name, *, rows=60, target="y", transform="none", held_out=0, **parameters):
        key = name, rows, target, transform, held_out, *parameters.items()
        if key not in known:
            values = Y[:rows] if target == "y" else ["up", "down"] * (rows // 2)
            table = pa.table({"a": X[:rows, 0], "b": X[:rows, 1], target: values})
            kinds = {"a": "numeric", "b": "numeric", target: "numeric" if target == "y" else "categorical"}
            columns = [TableColumn(column, kind, 0, rows) for column, kind in kinds.items()]
            spec = {"target": target, "algorithm": {"name": name} | parameters}
            spec |= {
                "validation": {"test_fraction": held_out},
                "preprocessing": {"target": transform, "detect_target_minimum": False},
            }
            one = train(plan(TrainSpec.model_validate(spec), columns, table.num_rows), table, data_digest="sha256:0")
            known[key] = f"i-{uuid4()}", decode(one.blob)
            where = {"model": known[key][0], "job_id": uuid4(), "dataset_id": uuid4(), "chunk_bytes": 1000}
            with services.work() as w:
                w.models.add_version(blob=one.blob, report=one.report, golden=one.golden, **where)
        return known[key]

    return make


@pytest.fixture
def ask(client):
    def send(model, data, *, accept="application/json", status=200, **query):
        body, headers = {"columns": ["a", "b"], "data": data}, {"Accept": accept}
        response = client.post(f"/v1/models/{model}/predict", json=body, headers=headers, params=query)
        assert response.status_code == status, response.text
        return response

    return send


WITH = [
    ("linear", {}),
    ("linear", {"interval_of": "mean"}),
    ("linear", {"transform": "log"}),
    ("linear", {"transform": "reciprocal"}),
    ("bayesian_locally_weighted", {"width": 2}),
    ("bayesian_locally_weighted", {"width": 2, "transform": "log"}),
    ("random_forest", {"n_estimators": 9, "interval_of": "mean"}),
    ("random_forest", {"n_estimators": 9, "held_out": 0.5}),
    ("ridge", {"held_out": 0.5}),
    ("lasso", {"held_out": 0.5, "transform": "log"}),
    ("decision_tree", {"held_out": 0.5, "transform": "reciprocal"}),
]


@pytest.mark.parametrize(("algorithm", "how"), WITH)
def test_intervals_are_those_of_the_algorithm(made, ask, algorithm, how):
    name, model = made(algorithm, **how)
    x = model.preparation.matrix(np.array(ROWS, float))
    bounds = model.algorithm.interval(model.params, model.state, x, 0.9)
    plain, result = ask(name, ROWS).json(), ask(name, ROWS, confidence=0.9).json()
    assert plain == {name: value for name, value in result.items() if name not in {"intervals", "interval"}}
    assert result["interval"] == ("split-conformal" if "held_out" in how else "algorithm")
    assert result["intervals"] == np.where(np.isfinite(bounds), bounds, None).tolist()
    for (low, high), middle in zip(result["intervals"], result["predictions"], strict=True):
        assert (-np.inf if low is None else low) <= middle <= (np.inf if high is None else high)
    wider = ask(name, ROWS, confidence=0.99).json()["intervals"]
    assert wider != result["intervals"]


@pytest.mark.parametrize("of", ["mean", "observation"])
def test_linear_as_statsmodels_has_it(made, ask, of):
    name, _ = made("linear", interval_of=of)
    fit = sm.OLS(Y, sm.add_constant(X)).fit()
    expected = fit.get_prediction(np.column_stack([np.ones(3), ROWS])).conf_int(obs=of == "observation", alpha=0.05)
    np.testing.assert_allclose(ask(name, ROWS, confidence=0.95).json()["intervals"], expected, rtol=1e-9)


def test_the_logarithm_is_turned_back(made, ask):
    name, _ = made("linear", transform="log")
    fit = sm.OLS(np.log(Y), sm.add_constant(X)).fit()
    expected = np.exp(fit.get_prediction(np.column_stack([np.ones(3), ROWS])).conf_int(obs=True, alpha=0.2))
    np.testing.assert_allclose(ask(name, ROWS, confidence=0.8).json()["intervals"], expected, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["linear", "bayesian_locally_weighted"])
def test_every_way_in_gives_the_same(client, made, ask, algorithm):
    """Numbers cut from the body, any JSON, a body too large for the event loop, npy and CSV."""
    name, _ = made(algorithm)
    result = ask(name, ROWS, confidence=0.95).json()["intervals"]
    slow = {"rows": [{"a": a, "b": b, "more": "text"} for a, b in ROWS]}
    file = io.BytesIO()
    np.save(file, np.array(ROWS))
    lines = "\n".join(["a,b", *(f"{a},{b}" for a, b in ROWS)]).encode()
    for content in (
        {"json": slow},
        {"content": file.getvalue(), "headers": {"Content-Type": NPY}},
        {"content": lines, "headers": {"Content-Type": "text/csv"}},
    ):
        response = client.post(f"/v1/models/{name}/predict", params={"confidence": 0.95}, **content)
        assert response.json()["intervals"] == result
    large = ask(name, ROWS * 3000, confidence=0.95).json()["intervals"]
    assert len(large) == 9000
    np.testing.assert_allclose(large, result * 3000, rtol=1e-12)


def test_every_way_out_gives_the_same(made, ask):
    name, _ = made("linear")
    bad = [ROWS[0], ["no number", 1], *ROWS[1:]]
    result = ask(name, bad, confidence=0.95, on_error="null").json()
    assert result["intervals"][1] is None
    assert result["intervals"][:1] + result["intervals"][2:] == ask(name, ROWS, confidence=0.95).json()["intervals"]
    table = pa.ipc.open_stream(ask(name, bad, accept=ARROW, confidence=0.95, on_error="null").content).read_all()
    assert table.column_names == ["prediction", "lower", "upper", "flags"]
    bounds = zip(table["lower"].to_pylist(), table["upper"].to_pylist(), strict=True)
    assert [None if low is None else [low, high] for low, high in bounds] == result["intervals"]
    rows = np.load(io.BytesIO(ask(name, bad, accept=NPY, confidence=0.95, on_error="null").content))
    assert rows.shape == (4, 3)
    assert np.isnan(rows[1]).all()
    assert rows[[0, 2, 3]].tolist() == [[result["predictions"][i], *result["intervals"][i]] for i in (0, 2, 3)]


@pytest.mark.parametrize("accept", ["application/json", ARROW, NPY])
def test_rows_that_are_all_bad(made, ask, accept):
    name, _ = made("linear")
    response = ask(name, [["no number", 1]], accept=accept, confidence=0.95, on_error="null")
    if accept == NPY:
        assert np.isnan(np.load(io.BytesIO(response.content))).tolist() == [[True] * 3]
    elif accept == ARROW:
        table = pa.ipc.open_stream(response.content).read_all()
        assert (table["lower"].to_pylist(), table["upper"].to_pylist()) == ([None], [None])
    else:
        assert response.json()["intervals"] == [None]


def test_a_response_that_nothing_bounds(made, ask):
    """Two rows, three parameters: nothing tells the noise."""
    name, _ = made("linear", rows=2)
    result = ask(name, ROWS, confidence=0.95).json()
    assert result["intervals"] == [[None, None]] * 3
    assert None not in result["predictions"]
    table = pa.ipc.open_stream(ask(name, ROWS, accept=ARROW, confidence=0.95).content).read_all()
    assert (table["lower"].to_pylist(), table["upper"].to_pylist()) == ([-np.inf] * 3, [np.inf] * 3)


@pytest.mark.parametrize(
    ("algorithm", "target"), [("ridge", "y"), ("random_forest", "y"), ("linear", "label"), ("random_forest", "label")]
)
@pytest.mark.parametrize("accept", ["application/json", ARROW, NPY])
def test_who_has_none_says_so(made, ask, algorithm, target, accept):
    name, _ = made(algorithm, target=target)
    problem = ask(name, ROWS, accept=accept, confidence=0.95, status=409).json()
    assert problem["code"] == "no_interval"
    ask(name, ROWS, accept=accept)


@pytest.mark.parametrize("confidence", ["0", "0.49", "1", "95", "nan", "inf", "", "much"])
def test_what_is_no_confidence(made, ask, confidence):
    name, _ = made("linear")
    problem = ask(name, ROWS, confidence=confidence, status=422).json()
    assert [error["pointer"] for error in problem["errors"]] == ["/query/confidence"]


def test_the_remedy_names_all_who_have_intervals():
    having = [name for name, entry in catalogue().items() if entry.algorithm.interval]
    assert all(name in NoInterval.remedy for name in having)
