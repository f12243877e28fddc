"""A wrong request lists every problem, in our own words, with the closest of the names that exist."""

from pathlib import Path

import pytest

IRIS = (Path(__file__).parents[3] / "app" / "samples" / "iris.csv").read_bytes()


@pytest.fixture(scope="module")
def body(client):
    dataset = client.post("/v1/datasets", params={"name": "faults"}, content=IRIS).json()["id"]
    return {"model": "faults", "dataset": dataset, "target": "species", "algorithm": {"name": "ridge"}}


@pytest.fixture
def faults(client, body):
    """`faults(kind, **changes)`: the detail by pointer of a job request that is wrong."""

    def ask(path="train", **changes):
        problem = client.post(f"/v1/jobs/{path}", json=body | changes)
        assert problem.status_code == 422, problem.text
        return {error["pointer"]: error["detail"] for error in problem.json()["errors"]}, problem.json()["detail"]

    return ask


@pytest.mark.parametrize(
    ("name", "own"),
    [
        *(("xgboost", "gradient_boosting"), ("LightGBM", "gradient_boosting"), ("rf", "random_forest")),
        *(
            ("LogisticRegression", "logistic"),
            ("naive_bayes", "generative_bayes"),
            ("Isolation Forest", "one_class_svm"),
        ),
    ],
)
def test_a_name_of_another_library_leads_to_the_algorithm(client, faults, name, own):
    found, _ = faults("train:validate", algorithm={"name": name})
    assert found["/algorithm/name"].endswith(f"; did you mean '{own}'?")
    assert f"did you mean '{own}'" in client.get(f"/v1/algorithms/{name}").json()["detail"]


@pytest.mark.parametrize("path", ["train", "train:validate"])
def test_faults_of_the_schema_hide_no_fault_of_meaning(faults, path):
    found, detail = faults(
        path,
        model="No Name",
        target="speciess",
        features=["sepal_lenght_cm"],
        algorithm={"name": "ridge", "l2": "1.0", "selecton": 1},
        seed=True,
        preprocesing={},
    )
    assert found == {
        "/model": "Must be 1 to 100 characters of a-z, 0-9, _ and -.",
        "/target": "The dataset has no column 'speciess'; did you mean 'species'?",
        "/features/0": "The dataset has no column 'sepal_lenght_cm'; did you mean 'sepal_length_cm'?",
        "/algorithm/l2": "Must be a number, not a string.",
        "/algorithm/selecton": "Is no known field; did you mean 'selection'?",
        "/seed": "Must be an integer, not a boolean.",
        "/preprocesing": "Is no known field; did you mean 'preprocessing'?",
    }
    assert detail.startswith("7 problems; the first: model: Must be 1 to")


def test_an_unknown_algorithm_hides_no_misspelt_column(faults):
    found, _ = faults(target="speciess", algorithm={"name": "rigde"})
    assert found["/algorithm/name"].endswith("did you mean 'ridge'?")
    assert found["/target"].endswith("did you mean 'species'?")
    assert len(found) == 2


def test_a_dataset_or_model_that_does_not_exist_stands_beside_other_faults(faults):
    found, _ = faults(dataset="no such table", algorithm={"name": "ridge", "l2": -1})
    assert set(found) == {"/dataset", "/algorithm/l2"}
    found, _ = faults("evaluate", target=None, algorithm=None, costs=3)
    assert {"/model", "/costs", "/algorithm"} <= set(found)


def test_the_only_problem_is_the_detail(faults):
    _, detail = faults(target="Species")
    assert detail == "target: The dataset has no column 'Species'; did you mean 'species'?"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("l2", "1.0"), ("l2", True), ("fit_intercept", 1), ("fit_intercept", "true"), ("cv", 5.5), ("cv", "5")],
)
def test_strings_and_booleans_are_no_numbers_and_the_reverse(faults, field, wrong):
    found, _ = faults(algorithm={"name": "ridge", field: wrong})
    assert list(found) == [f"/algorithm/{field}"]
    nested, _ = faults(algorithm={"name": "bagging", "estimator": {"name": "ridge", field: wrong}})
    assert list(nested) == [f"/algorithm/estimator/{field}"]


def test_a_model_or_column_that_does_not_exist_gets_the_closest_name(client, trained, services):
    from uuid import uuid4

    model, one = f"churn-{uuid4().hex[:6]}", trained("ridge", target="species")
    with services.work() as w:
        w.models.add_version(
            model=model, job_id=uuid4(), dataset_id=uuid4(), blob=one.blob, report=one.report, golden=one.golden,
            chunk_bytes=1 << 20,
        )  # fmt: skip
    for path in (f"/v1/models/{model}x", f"/v1/models/x{model}"):
        assert client.get(path).json()["detail"].endswith(f"; did you mean '{model}'?")
    detail = client.post(f"/v1/models/{model}/predict", json={"rows": [{"lenght": 1}]}).json()["detail"]
    assert "'lenght' may be meant for 'length'." in detail


@pytest.mark.parametrize("wrong", [0, 2.5, 0.0, "3", True])
def test_a_number_of_columns_is_a_count_or_a_share(faults, wrong):
    found, _ = faults(algorithm={"name": "random_forest", "max_features": wrong})
    sentence = "Must be a number of columns from 1 on, or a share of them above 0 and up to 1.0."
    assert found == {"/algorithm/max_features": sentence}
