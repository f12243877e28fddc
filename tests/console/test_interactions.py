"""What a person points at, drags and unfolds; and the forms of every algorithm and every kind of job."""

import re

import pytest

pytestmark = pytest.mark.slow


def drag(page, picture, start, end):
    """With the mouse, from one place to another; places are shares of the picture's width and height."""
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    (x, y), (to_x, to_y) = ((box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in (start, end))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=3)
    page.mouse.up()


def test_a_learner_within_a_learner_has_a_form(page, serious_faults):
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Algorithm").select_option("bagging")
    page.get_by_text("classification of 150 rows").wait_for()
    page.get_by_text("Parameters of decision_tree").click()
    depth = page.locator("#field-estimator-max_depth")
    depth.fill("-3")
    field = page.locator(".field", has=depth).last
    field.get_by_role("alert").wait_for()
    assert page.get_by_role("button", name="Train").is_disabled()
    depth.fill("2")
    page.get_by_text("classification of 150 rows").wait_for()
    page.get_by_text("The request").click()
    assert '"max_depth": 2' in page.locator("details pre").first.inner_text()
    assert serious_faults(page) == {}


def test_what_matters_most_is_shown_first(page):
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Algorithm").select_option("gradient_boosting")
    assert page.get_by_label("learning_rate").is_visible()
    assert not page.get_by_label("max_bins").is_visible()
    page.get_by_text("Parameters for experts").click()
    assert page.get_by_label("max_bins").is_visible()


def test_a_tree_is_unfolded(page, train, go, serious_faults):
    train("tree", "decision_tree")
    go("models/tree/1", "tree, version 1")
    page.get_by_role("link", name="Tree", exact=True).click()
    page.get_by_text("petal_").first.wait_for()
    before = page.locator(".tree li").count()
    page.get_by_role("button", name="Show 3 more levels").click()
    page.locator(".tree li").nth(before).wait_for()
    page.get_by_text("As rules").click()
    assert page.get_by_role("table", name="Rules").get_by_role("row").count() > 2
    assert serious_faults(page) == {}


def test_a_dendrogram_is_cut_with_mouse_and_keyboard(page, train, go, serious_faults):
    train("merged", "agglomerative", target=None, n_clusters=3)
    go("models/merged/1", "merged, version 1")
    picture = page.locator(".dendrogram")
    drag(page, picture, (0.9, 0.5), (0.8, 0.5))
    slider = page.get_by_label("Clusters", exact=True)
    assert slider.input_value() == "2"
    page.get_by_text(re.compile(r"The clusters have \d+, \d+ rows\.")).wait_for()
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "3"
    assert serious_faults(page) == {}


def test_cells_of_a_map_are_the_same_in_all_planes(page, train, go, serious_faults):
    train("cells", "som", target=None, grid_height=3, grid_width=4)
    go("models/cells/1", "cells, version 1")
    planes = page.get_by_role("application", name="Planes of a map")
    planes.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    planes.get_by_text("5, row 1, column 1").wait_for()
    assert planes.locator(".marked").count() == planes.locator("svg").count() == 5
    assert serious_faults(page) == {}


def test_rows_of_a_selection_are_listed(page, train, go, serious_faults):
    train("plane", "pca", target=None, n_components=2)
    go("models/plane/1", "plane, version 1")
    picture = page.locator(".scatter")
    drag(page, picture, (0.005, 0.005), (0.995, 0.995))
    page.get_by_text("150 rows").first.wait_for()
    table = page.get_by_role("table", name="Rows of the selection")
    table.wait_for()
    assert table.get_by_role("row").count() == 21
    page.keyboard.press("Escape")
    picture.focus()
    for key in ("Escape", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert picture.locator(".brush").count() == 1
    assert serious_faults(page) == {}


def test_two_datasets_are_compared(page, go, serious_faults):
    page.get_by_role("button", name="iris").click()
    page.get_by_role("heading", name="iris", exact=True).wait_for()
    first = page.url.rpartition("/")[2]
    page.get_by_role("link", name="Datasets").click()
    page.get_by_label("Upload a table").set_input_files(
        {
            "name": "other.csv",
            "mimeType": "text/csv",
            "buffer": b"petal_width_cm,species,age\n" + b"9.5,setosa,1\n" * 30,
        }
    )
    page.get_by_role("heading", name="other", exact=True).wait_for()
    second = page.url.rpartition("/")[2]
    go(f"datasets/{first}/difference?with={second}", "iris and other")
    rows = page.get_by_role("table", name="Columns in both datasets").get_by_role("row")
    assert rows.count() == 3
    assert "petal_width_cm" in rows.nth(1).inner_text()
    assert page.get_by_role("table", name="Columns in one dataset only").get_by_role("row").count() == 5
    assert serious_faults(page) == {}


def test_experiments_are_suggested(page, go, serious_faults):
    page.get_by_role("button", name="diabetes").click()
    page.get_by_role("heading", name="diabetes", exact=True).wait_for()
    go("jobs", "Jobs")
    page.get_by_label("New job").select_option("suggest")
    page.get_by_label("dataset", exact=True).fill("diabetes")
    page.get_by_label("target", exact=True).fill("progression")
    page.get_by_label("features", exact=True).fill("bmi\nlog_triglycerides")
    page.get_by_label("n_suggestions", exact=True).fill("2")
    page.get_by_text("Nothing to correct.").wait_for()
    page.get_by_role("button", name="Submit").click()
    table = page.get_by_role("table", name="suggestions")
    table.wait_for()
    assert table.get_by_role("row").count() == 3
    assert "bmi" in table.inner_text()
    assert serious_faults(page) == {}


def test_every_kind_of_job_has_a_form(page, go, client):
    operations = client.get("/openapi.json").json()["paths"].items()
    submitted = [path for path, methods in operations if "requestBody" in methods.get("post", {})]
    kinds = [found[1] for found in map(re.compile("/v1/jobs/([a-z]+)").fullmatch, submitted) if found]
    go("jobs", "Jobs")
    choice = page.get_by_label("New job")
    choice.wait_for()
    assert sorted(
        filter(None, choice.locator("option").evaluate_all("(all) => all.map((one) => one.value)"))
    ) == sorted(kinds)
    for kind in ("search", "optimise", "import"):
        page.goto(f"{page.url.partition('#')[0]}#/new/{kind}")
        page.get_by_text("to correct").wait_for()
        assert page.locator(".field").count() > 3, kind


def test_moves_of_an_alias_are_listed(page, train, go, send):
    train("flowers", "logistic")
    train("flowers", "ridge")
    for version in (1, 2):
        send("PUT", "/v1/models/flowers/aliases/champion", {"version": version})
    go("models/flowers", "flowers")
    moves = page.get_by_role("table", name="Moves of champion")
    moves.wait_for()
    assert moves.get_by_role("row").count() == 3


def test_the_defaults_of_every_algorithm_are_right(page, client):
    """With one of three targets: a class, a number, or none."""
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_text("of 150 rows").wait_for()

    def accepted(algorithm, target):
        with page.expect_response("**/v1/jobs/train:validate") as response:
            page.get_by_label("Target, the column to predict").select_option(target)
            page.get_by_label("Algorithm").select_option(algorithm)
        return response.value.ok

    cards = client.get("/v1/algorithms", params={"limit": 200}).json()["items"]
    for name in [card["name"] for card in cards if card["trainable"]]:
        assert any(accepted(name, target) for target in ("species", "petal_width_cm", "")), name


def test_the_playground_bounds_and_explains_a_prediction(page, go, send):
    page.get_by_role("button", name="diabetes").click()
    page.get_by_role("heading", name="diabetes", exact=True).wait_for()
    body = {"dataset": page.url.rpartition("/")[2], "target": "progression"}
    for algorithm in ("knn", "decision_tree"):
        job = send("POST", "/v1/jobs/train", body | {"model": algorithm, "algorithm": {"name": algorithm}})
        go(f"jobs/{job['id']}", "train")
        page.get_by_role("link", name="Read the report").wait_for()
    go("models/knn/1/try", "Try knn, version 1")
    page.get_by_text("% confidence").wait_for()
    page.get_by_role("heading", name="Why").wait_for()
    page.get_by_text("How the algorithm came to it").click()
    neighbours = page.get_by_role("table", name="neighbours").get_by_role("row")
    neighbours.nth(5).wait_for()
    assert neighbours.count() == 6
    go("models/decision_tree/1/try", "Try decision_tree, version 1")
    page.get_by_role("heading", name="Why").wait_for()
    assert "the prediction by" in page.get_by_role("table", name="Reasons").inner_text()
    page.get_by_text("How the algorithm came to it").click()
    page.locator(".explained").get_by_role("row").nth(1).wait_for()


def test_a_wide_table_is_shown_in_parts(page):
    names = [f"c{number}" for number in range(200)]
    lines = [",".join(names), *(",".join(str(row + place) for place in range(200)) for row in range(3))]
    page.get_by_label("Upload a table").set_input_files(
        {"name": "wide.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
    )
    page.get_by_role("table", name="Rows").wait_for()
    assert page.get_by_role("table", name="Rows").get_by_role("columnheader").count() == 61
    page.get_by_role("button", name="Show more of 200 columns").click()
    page.get_by_role("heading", name="c119", exact=True).wait_for()
