"""Graphs of ONNX: predicted as onnxruntime and scikit-learn do, or refused by name."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets, ensemble, gaussian_process, linear_model, naive_bayes, neural_network, pipeline
from sklearn import preprocessing as scalers
from sklearn import svm as machines

from app.base.errors import CorruptModel, ImportUnsupported, InvalidData
from app.ingest import onnx_file
from app.ingest.model_file_parser import parse
from app.ml.contract.columns import TableColumn
from app.ml.exports.exported_graph import export_graph
from app.ml.exports.onnx_writer import onnx_bytes
from app.ml.models import parsed_model
from app.ml.models.import_check import check_probes
from app.ml.models.imported_model import Naming, imported
from app.ml.models.model import decode
from app.ml.numerics.onnx_session import computed
from app.ml.training.planning.plan import plan
from app.ml.training.planning.train_spec import TrainSpec
from app.ml.training.train import train

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
helper, FLOAT, DOUBLE = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
X, Y = datasets.load_wine(return_X_y=True)
GRAPES = np.array(["barbera", "grignolino", "nebbiolo"])[Y]
MEMORY = 1 << 30


def exported(fitted, columns, kind="Float", **options):
    types = getattr(skl2onnx.common.data_types, f"{kind}TensorType")
    how = {"options": {id(fitted): options}} if options else {}
    return skl2onnx.to_onnx(fitted, initial_types=[("X", types([None, columns]))], **how)


def model_of(graph, path):
    """As an import stores it."""
    (path / "model.onnx").write_bytes(graph.SerializeToString())
    parsed = parsed_model.read(parsed_model.write(onnx_file.parse(path / "model.onnx")))
    check_probes(parsed)
    return imported(parsed, Naming(None, None, None, "target"), {})


def predicted(model, x):
    names = [column.name for column in model.inputs]
    return model.predict(pa.table(dict(zip(names, x.T, strict=True))))


def graph_of(nodes, *, inputs=None, outputs=None, constants=(), functions=()):
    """A graph that takes (n, 2) 32-bit numbers and gives (n, 1), if nothing else is stated."""
    inputs = inputs or [helper.make_tensor_value_info("x", FLOAT, ["n", 2])]
    outputs = outputs or [helper.make_tensor_value_info("y", FLOAT, ["n", 1])]
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_graph(nodes, "g", inputs, outputs, initializer=list(constants))
    return helper.make_model(made, opset_imports=imports, functions=list(functions))


def summed(**further):
    return helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=1, **further)


def axes(*numbers):
    return helper.make_tensor("axes", onnx.TensorProto.INT64, [len(numbers)], numbers)


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("kind", ["Float", "Double"])
def test_a_classifier_keeps_its_classes_and_probabilities(tmp_path, kind, zipmap):
    fitted = linear_model.LogisticRegression(max_iter=10_000).fit(X, GRAPES)
    model = model_of(exported(fitted, X.shape[1], kind, zipmap=zipmap), tmp_path)
    assert model.classes == tuple(fitted.classes_)
    predictions = predicted(model, X)
    tolerance = 1e-4 if kind == "Float" else 1e-12  # 32 bits beside numbers up to 1,680
    np.testing.assert_allclose(predictions.probabilities, fitted.predict_proba(X), atol=tolerance)
    assert [model.classes[int(code)] for code in predictions.values] == fitted.predict(X).tolist()


def test_a_network_without_labels_has_classes_by_number(tmp_path):
    weights = helper.make_tensor("w", FLOAT, [2, 3], [1, 0, -1, 0.5, 2, 0])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Softmax", ["z"], ["p"], axis=1)]
    outputs = [helper.make_tensor_value_info("p", FLOAT, ["n", 3])]
    model = model_of(graph_of(nodes, outputs=outputs, constants=[weights]), tmp_path)
    assert (model.task, model.classes) == ("classification", (0, 1, 2))
    scores = np.exp(np.array([[1.0, 2.0]]) @ np.array([[1, 0, -1], [0.5, 2, 0]]))
    np.testing.assert_allclose(predicted(model, np.array([[1.0, 2.0]])).probabilities, scores / scores.sum(), rtol=1e-6)


def test_columns_may_be_inputs_of_their_own(tmp_path):
    inputs = [helper.make_tensor_value_info(name, kind, ["n", 1]) for name, kind in (("a", FLOAT), ("b", DOUBLE))]
    nodes = [helper.make_node("Cast", ["b"], ["c"], to=FLOAT), helper.make_node("Sub", ["a", "c"], ["y"])]
    model = model_of(graph_of(nodes, inputs=inputs), tmp_path)
    assert [column.name for column in model.inputs] == ["a", "b"]
    assert predicted(model, np.array([[5.0, 3.0], [1.0, 4.0]])).values.tolist() == [2, -3]


def test_a_number_may_be_missing_where_the_graph_fills_it(tmp_path):
    nodes = [helper.make_node("IsNaN", ["x"], ["m"]), helper.make_node("Where", ["m", "zero", "x"], ["full"])]
    zero = helper.make_tensor("zero", FLOAT, [], [0.0])
    fills = graph_of([*nodes, helper.make_node("ReduceSum", ["full", "axes"], ["y"])], constants=[zero, axes(1)])
    takes, needs = model_of(fills, tmp_path), model_of(graph_of([summed()], constants=[axes(1)]), tmp_path)
    assert predicted(takes, np.array([[np.nan, 2.0]])).values.tolist() == [2]
    assert [column.nullable for column in takes.inputs] == [True, True]
    assert [column.nullable for column in needs.inputs] == [False, False]


def external():
    graph = graph_of([summed()], constants=[axes(1)])
    tensor = graph.graph.initializer[0]
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.array([1]), "axes"))
    onnx.external_data_helper.set_external_data(tensor, "/etc/passwd")
    return graph


def within_a_branch():
    inner = helper.make_graph(
        [helper.make_node("RandomNormal", [], ["y"], shape=[1, 1])],
        "then",
        [],
        [helper.make_tensor_value_info("y", FLOAT, [1, 1])],
    )
    outer = [helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)]
    return graph_of(outer, constants=[helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True])])


def of_its_own():
    node = helper.make_node("Abs", ["x"], ["y"])
    function = helper.make_function("own", "Half", ["x"], ["y"], [node], [helper.make_opsetid("", 20)])
    return graph_of([summed()], constants=[axes(1)], functions=[function])


def taking(kind, shape):
    cast = [helper.make_node("Cast", ["x"], ["f"], to=FLOAT), helper.make_node("Identity", ["f"], ["y"])]
    return graph_of(cast, inputs=[helper.make_tensor_value_info("x", kind, shape)])


REFUSED = {
    "custom_operator": lambda: graph_of([helper.make_node("Evil", ["x"], ["y"], domain="own")]),
    "random": within_a_branch,
    "external_data": external,
    "functions": of_its_own,
    "input_type": lambda: taking(onnx.TensorProto.STRING, ["n", 1]),
    "input_shape": lambda: taking(FLOAT, [1, 1]),
    "several_outputs": lambda: graph_of(
        [helper.make_node("Identity", ["x"], ["y"])], outputs=[helper.make_tensor_value_info("y", FLOAT, ["n", 2])]
    ),
    "rows_together": lambda: graph_of(
        [
            helper.make_node("ReduceMean", ["x", "axes"], ["m"], keepdims=1),
            helper.make_node("Sub", ["x", "m"], ["d"]),
            helper.make_node("ReduceSum", ["d", "one"], ["y"], keepdims=1),
        ],
        constants=[axes(0), helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1])],
    ),
    "other_classes": lambda: exported(machines.SVC(probability=True).fit(X[:, :2], Y), 2),
}


@pytest.mark.parametrize("code", REFUSED)
def test_another_prediction_than_the_library_makes_is_refused_by_name(tmp_path, code):
    (tmp_path / "model.onnx").write_bytes(REFUSED[code]().SerializeToString())
    with pytest.raises(ImportUnsupported) as refused:
        onnx_file.parse(tmp_path / "model.onnx")
    assert refused.value.faults[0].code == code


def test_a_damaged_file_ends_its_parser_at_most(tmp_path):
    whole = exported(
        neural_network.MLPRegressor(hidden_layer_sizes=[5], max_iter=50).fit(X, Y), X.shape[1]
    ).SerializeToString()
    parts = [whole[: len(whole) // 2], whole[:-1], b"", b"[" * 100_000, whole[:200] + b"\xff" * 50 + whole[250:]]
    for place, content in enumerate(parts):
        (tmp_path / f"{place}.onnx").write_bytes(content)
        with pytest.raises((InvalidData, ImportUnsupported)):
            parse(tmp_path / f"{place}.onnx", "onnx", MEMORY)


MAKERS = {
    "logistic": lambda seed: linear_model.LogisticRegression(C=0.1 + seed, max_iter=5000),
    "network": lambda seed: neural_network.MLPClassifier(hidden_layer_sizes=[8, 4], max_iter=200, random_state=seed),
    "bayes": lambda seed: naive_bayes.GaussianNB(var_smoothing=10.0 ** (-9 + seed)),
    "forest": lambda seed: ensemble.RandomForestClassifier(5 + seed, random_state=seed),
    "regression network": lambda seed: neural_network.MLPRegressor(
        hidden_layer_sizes=[8], activation="tanh", random_state=seed
    ),
    "lasso": lambda seed: linear_model.Lasso(0.01 * (1 + seed)),
    "svr": lambda seed: machines.SVR(C=1 + seed),
    "process": lambda seed: gaussian_process.GaussianProcessRegressor(alpha=0.01 * (1 + seed)),
    "poisson": lambda seed: linear_model.PoissonRegressor(alpha=1 + seed),
    "boosting": lambda seed: ensemble.AdaBoostRegressor(n_estimators=5 + seed, random_state=seed),
}
FORTY = [
    (name, kind, seed)
    for name in MAKERS
    for kind, seeds in (("Float", 3), ("Double", 1))
    for seed in range(4 if name in {"forest", "svr", "boosting"} and kind == "Float" else seeds)
    if kind == "Float" or name not in {"forest", "svr", "boosting"}
]
"""Ten estimators with several parameters, in either precision where onnxruntime has both."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "seed"), FORTY)
def test_forty_models_predict_10000_rows_as_their_library(tmp_path, name, kind, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(X.mean(axis=0), X.std(axis=0), (10_000, X.shape[1])).astype(np.float32).astype(float)
    fitted = pipeline.make_pipeline(scalers.StandardScaler(), MAKERS[name](seed)).fit(X, Y)
    classifies = hasattr(fitted, "predict_proba")
    graph = exported(fitted, X.shape[1], kind, **({"zipmap": False} if classifies else {}))
    session = runtime.InferenceSession(graph.SerializeToString())
    theirs = session.run(None, {"X": rows.astype(np.float32 if kind == "Float" else np.float64)})
    model = model_of(graph, tmp_path)
    predictions = predicted(model, rows)
    if predictions.probabilities is None:
        expected, ours = np.asarray(theirs[0], np.float64).ravel(), predictions.values
    else:
        expected, ours = np.asarray(theirs[1], np.float64), predictions.probabilities
        clear = np.abs(np.diff(np.sort(ours, axis=1)[:, -2:]))[:, 0] > 1e-6
        codes = ours.argmax(axis=1)
        assert [model.classes[code] for code in codes[clear]] == theirs[0][clear].tolist()
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_there_are_forty():
    assert len(FORTY) == 40


def test_without_onnxruntime_it_is_stated_how_to_install_it(tmp_path, monkeypatch):
    graph = np.frombuffer(graph_of([summed()], constants=[axes(1)]).SerializeToString(), np.uint8)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(CorruptModel, match=r"install valiant\[onnx\]"):
        computed(graph, 0, np.zeros((1, 2)))
    (tmp_path / "model.onnx").write_bytes(graph.tobytes())
    with pytest.raises(ImportError):
        onnx_file.parse(tmp_path / "model.onnx")


@pytest.mark.parametrize(("algorithm", "target"), [("logistic", "class"), ("gradient_boosting", "class"), ("mlp", "y")])
def test_an_export_of_this_service_comes_back_as_the_same_model(tmp_path, trained_version, algorithm, target):
    version = trained_version(algorithm, target)
    (tmp_path / "model.onnx").write_bytes(onnx_bytes(export_graph(version), {}))
    parsed = parsed_model.read(parsed_model.write(onnx_file.parse(tmp_path / "model.onnx")))
    check_probes(parsed)
    again = imported(parsed, Naming(None, None, None, "target"), {})
    assert [column.name for column in again.inputs] == [column.name for column in version.inputs]
    raw = np.random.default_rng(3).normal(size=(200, 3))
    ours, other = version.predict_raw(raw), again.predict_raw(raw)
    assert again.classes == version.classes
    np.testing.assert_allclose(other.values, ours.values, rtol=1e-12)
    if version.classes:
        np.testing.assert_allclose(other.probabilities, ours.probabilities, rtol=1e-12)


@pytest.fixture(scope="module")
def trained_version():
    """`trained_version(algorithm, target)`: a model of three columns of numbers."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(80, 3))
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": x @ [1.0, 2.0, 0.5]}
    table = pa.table(columns | {"class": np.where(columns["y"] > 0, "up", "down").tolist()})
    sheet = [TableColumn(name, "numeric", 0, 80) for name in columns] + [TableColumn("class", "categorical", 0, 2)]

    def train_version(algorithm, target):
        body = {"algorithm": {"name": algorithm}, "features": ["a", "b", "c"], "target": target}
        spec = TrainSpec.model_validate(body)
        return decode(train(plan(spec, sheet, table.num_rows), table, data_digest="sha256:0").blob)

    return train_version
