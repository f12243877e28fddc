"""Forms of the console: every kind of input, files of models, and what Back brings back."""

import json
from pathlib import Path

import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

from valiant.fitted_estimator import fitted

pytestmark = pytest.mark.slow

IRIS = Path(__file__).parents[2] / "app" / "samples" / "iris.csv"
CITIES = "north", "south", "east"
KINDS = "area,city,garden,sold,note,price\n" + "".join(
    f"{50 + i % 40},{CITIES[i % 3]},{'true' if i % 4 else 'false'},2024-{1 + i % 12:02}-{1 + i % 27:02},"
    f"quiet flat number {i} with {i % 7} windows,{100 + i % 40 + 10 * (i % 3)}\n"
    for i in range(120)
)


@pytest.fixture
def upload(page):
    """`upload(name, content)`: a dataset."""
    program = """async ([name, content]) => {
        const headers = {"Content-Type": "application/octet-stream"};
        return (await fetch(`/v1/datasets?name=${name}`, {method: "POST", headers, body: content})).json(); }"""
    return lambda name, content: page.evaluate(program, [name, content])


def test_the_playground_has_a_field_for_every_kind_of_input(page, upload, send, go):
    dataset = upload("homes", KINDS)
    kinds = {column["kind"] for column in dataset["columns"]}
    assert kinds == {"numeric", "categorical", "boolean", "datetime", "text"}
    preprocessing = {"dates": {"sold": ["month"]}, "text": {"note": {}}}
    body = {"model": "homes", "dataset": dataset["id"], "target": "price", "preprocessing": preprocessing}
    job = send("POST", "/v1/jobs/train", body | {"algorithm": {"name": "ridge"}})
    go(f"jobs/{job['id']}", "train")
    page.get_by_role("link", name="Read the report").wait_for()
    go("models/homes/1/try", "Try homes, version 1")
    page.get_by_text("% confidence").wait_for()
    with page.expect_response("**/predict?version=1*") as response:
        page.get_by_label("sold").fill("2024-03-05T00:00")
    row = json.loads(response.value.request.post_data)["rows"][0]
    assert (response.value.status, row["sold"]) == (200, "2024-03-05T00:00")
    assert page.locator(".fault").count() == 0


def test_the_file_of_a_model_is_chosen_and_imported(page, go, tmp_path):
    file = tmp_path / "Progress of patients.json"
    file.write_bytes(fitted(Ridge().fit(*load_diabetes(return_X_y=True))).content)
    go("new/import", "Import a model")
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text("Progress of patients.json is uploaded.").wait_for()
    assert page.get_by_label("model", exact=True).input_value() == "progress-of-patients"
    page.get_by_label("file_format").select_option('"scikit-learn"')
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="Read the report").wait_for()


def test_a_choice_without_a_default_shows_that_nothing_is_chosen(page, go):
    go("new/import", "Import a model")
    assert page.get_by_label("file_format").input_value() == ""
    page.get_by_text("to correct").wait_for()


def test_all_versions_are_reached(page, train, go, send):
    train("many", "ridge")
    dataset = send("GET", "/v1/datasets")["items"][0]["id"]
    body = {"model": "many", "dataset": dataset, "target": "species", "algorithm": {"name": "ridge"}}
    jobs = [send("POST", "/v1/jobs/train", body)["id"] for _ in range(21)]
    go(f"jobs/{jobs[-1]}", "train")
    page.get_by_role("link", name="Read the report").wait_for()
    page.wait_for_function("async () => (await (await fetch('/v1/models/many')).json()).versions.length === 22")
    go("models/many", "many")
    page.get_by_text("22 rows").wait_for()
    page.get_by_role("table", name="Versions").get_by_role("link", name="1", exact=True).wait_for()


def test_a_training_begins_with_the_dataset_on_the_screen_and_back_restores_it(page, upload, go):
    page.get_by_role("button", name="diabetes").click()
    page.get_by_role("heading", name="diabetes", exact=True).wait_for()
    newest = upload("iris", IRIS.read_text())["id"]
    page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="Train").click()
    page.get_by_text("of 442 rows").wait_for()
    page.get_by_label("Name of the model").fill("mine")
    assert newest not in page.url
    page.get_by_label("Algorithm").select_option("ridge")
    page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link", name="Jobs").click()
    page.get_by_role("heading", level=1, name="Jobs").wait_for()
    page.go_back()
    page.get_by_role("heading", level=1, name="Train").wait_for()
    assert page.get_by_label("Name of the model").input_value() == "mine"
    assert page.get_by_label("Algorithm").input_value() == "ridge"
    assert page.get_by_label("Dataset").evaluate("(one) => one.selectedOptions[0].text") == "diabetes"


def test_a_page_that_does_not_exist_is_a_page(page, go, serious_faults):
    go("nowhere", "No such page")
    assert page.title() == "No such page · Valiant"
    assert page.get_by_role("navigation", name="Pages", exact=True).is_visible()
    assert serious_faults(page) == {}
