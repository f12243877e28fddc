"""Graphs of ONNX: behind an operator's permission, made of estimators of scikit-learn, predicted as they predict."""

import numpy as np
import pytest
from sklearn import datasets, ensemble, neighbors, neural_network, pipeline, preprocessing, svm

from valiant.failures import JobFailed, Problem
from valiant.fitted_estimator import fitted
from valiant.fitted_graph import fitted_graph
from valiant.fitted_parts import NotImportable

for library in ("onnx", "onnxruntime", "skl2onnx"):
    pytest.importorskip(library)
X, Y = datasets.load_wine(return_X_y=True, as_frame=True)
GRAPES = np.array(["barbera", "grignolino", "nebbiolo"])[Y]


@pytest.fixture(scope="module")
def network():
    last = neural_network.MLPClassifier(hidden_layer_sizes=[6], max_iter=300, random_state=0)
    return pipeline.make_pipeline(preprocessing.StandardScaler(), last).fit(X, GRAPES)


def test_a_project_imports_no_graph_before_it_is_allowed(service, network, allow):
    allow()
    with pytest.raises(Problem, match="may not import files in the format onnx") as refused:
        service.import_estimator(network, "cellar", check=X)
    assert (refused.value.status, refused.value.code) == (403, "format_not_allowed")


def test_a_network_predicts_as_where_it_was_fitted(service, network, allow):
    allow("onnx")
    version = service.import_estimator(network, "cellar", check=X, target="grape")
    assert (version.algorithm, version.target, version.task) == ("imported_onnx", "grape", "classification")
    found = version.predict(X)
    np.testing.assert_array_equal(np.asarray(found["prediction"]), network.predict(X))
    shares = np.column_stack([found[f"probability_{grape}"] for grape in network.classes_])
    np.testing.assert_allclose(shares, network.predict_proba(X), atol=1e-12)
    assert f"on {len(X)} rows the predictions are those given for the check" in version.report.evidence
    with pytest.raises(Problem, match="alcohol"):
        version.predict(X[:1].assign(alcohol=np.nan))
    service.model("cellar").delete()


def test_a_translation_that_predicts_otherwise_makes_no_version(service, allow):
    """Neighbours equally near are taken in another order."""
    allow("onnx")
    x, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(JobFailed, match="of 150 rows differ"):
        service.import_estimator(neighbors.KNeighborsClassifier().fit(x, y), "near", check=x)


def test_trees_and_weights_need_no_graph_and_others_need_rows():
    forest = ensemble.RandomForestClassifier(3).fit(X, Y)
    assert fitted(forest, X).request["file_format"] == "scikit-learn"
    machine = svm.SVR().fit(X, Y)
    with pytest.raises(NotImportable, match="give rows to check its predictions"):
        fitted(machine)
    with pytest.raises(NotImportable, match="do not have the 13 columns"):
        fitted(machine, X.iloc[:, :2])
    with pytest.raises(NotImportable, match="gives no probabilities"):
        fitted(svm.SVC().fit(X, Y), X)


def test_64_bits_are_taken_where_onnxruntime_has_the_operators_for_them(network):
    onnx = pytest.importorskip("onnx")
    kinds = [
        onnx.load_model_from_string(fitted_graph(one, X).content).graph.input[0].type.tensor_type.elem_type
        for one in (network, svm.SVR().fit(X, Y))
    ]
    assert kinds == [onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT]
