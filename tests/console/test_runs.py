"""Lists of thousands of rows, ticks and comparisons, the leaderboard, and the table of columns."""

import re

import pytest

pytestmark = pytest.mark.slow


def listed(number):
    """A model as the list of models has it."""
    return {"name": f"model-{number:04}", "created_at": "2026-01-02T03:04:05Z", "latest_version": number % 7 + 1,
            "versions": list(range(1, number % 7 + 2)), "aliases": []}  # fmt: skip


def test_of_thousands_of_rows_those_in_sight_are_in_the_page(page, go):
    """The list is long by what the service would send: thousands of trainings take hours."""

    def respond(route):
        cursor = int(re.findall(r"cursor=(\d+)", route.request.url + "&cursor=0")[0])
        items = [listed(number) for number in range(cursor, cursor + 200)]
        route.fulfill(json={"items": items, "next_cursor": str(cursor + 200)})

    page.route(re.compile(r"/v1/models\?limit"), respond)
    go("models", "Models")
    page.get_by_text("2,000 rows").wait_for()
    table = page.get_by_role("table", name="Models")
    assert table.get_attribute("aria-rowcount") == "2001"
    assert table.get_by_role("row").count() < 100
    region = page.get_by_role("region", name="Models")
    region.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    page.get_by_role("link", name="model-1999", exact=True).wait_for()
    assert page.get_by_role("link", name="model-0000", exact=True).count() == 0
    page.get_by_label("Search").fill("versions=7 model-19")
    page.get_by_text("14 of 2,000").wait_for()
    page.get_by_role("button", name="Model", exact=True).click()
    page.get_by_role("button", name="Model", exact=True).click()
    assert table.get_by_role("row").nth(1).get_by_role("rowheader").inner_text() == "model-1994"


def test_runs_show_the_parameters_that_differ_and_are_compared(page, train, go, serious_faults):
    for strength in (0.1, 10):
        train("flowers", "logistic", l2=strength)
    go("runs", "Runs")
    table = page.get_by_role("table", name="Runs")
    table.wait_for()
    headings = table.get_by_role("columnheader").all_inner_texts()
    assert "l2" in headings
    assert "accuracy" in headings
    assert "max_iter" not in headings
    assert serious_faults(page) == {}
    for version in (1, 2):
        page.get_by_label(f"Tick flowers.{version}").check()
    page.get_by_role("link", name="Compare 2").click()
    page.get_by_role("table", name="Parameters").get_by_role("row", name="l2").wait_for()
    page.locator(".drawn svg").nth(1).wait_for()
    page.get_by_role("button", name="Compare on these rows").click()
    page.get_by_role("table", name="Differences of pairs").wait_for()
    assert serious_faults(page) == {}


def test_a_candidate_of_a_leaderboard_is_trained_as_it_was_tried(page, go, send):
    page.get_by_role("button", name="iris").click()
    page.get_by_role("heading", name="iris", exact=True).wait_for()
    body = {"dataset": page.url.rpartition("/")[2], "target": "species", "model": "tried"}
    tried = {"algorithm": {"name": "knn"}, "alternatives": [{"name": "logistic", "max_iter": 77}]}
    grid = [{"pointer": "/alternatives/0/l2", "values": [0.1, 3]}]
    job = send("POST", "/v1/jobs/search", body | tried | {"grid": grid})
    assert "id" in job, job
    go(f"jobs/{job['id']}", "search")
    board = page.get_by_role("table", name="Leaderboard")
    page.get_by_text("Chosen:").wait_for()
    names = board.get_by_role("rowheader").all_inner_texts()
    assert {"knn", "logistic, l2 0.1", "logistic, l2 3"} >= set(names)
    other = next(name for name in names[1:] if name.startswith("logistic"))
    page.get_by_role("button", name=f"Train {other}").click()
    page.get_by_role("heading", level=1, name="train").wait_for()
    page.get_by_role("link", name="Read the report").wait_for()
    parameters = send("GET", "/v1/models/tried/versions/2")["parameters"]
    assert (parameters["max_iter"], parameters["l2"]) == (77, float(other.rpartition(" ")[2]))


def test_columns_get_roles_and_kinds(page):
    lines = ["name,group,size,width,kind", *(f"r{n},{n % 5},{n % 7},{n * 3 % 11},{'ab'[n % 2]}" for n in range(60))]
    page.get_by_label("Upload a table").set_input_files(
        {"name": "rows.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
    )
    page.get_by_role("link", name="Train a model").click()
    page.get_by_text("of 60 rows").wait_for()
    page.get_by_label("Role of group").select_option("group")
    page.get_by_label("Role of width").select_option("none")
    page.get_by_label("Kind of size").select_option("categorical")
    page.get_by_text("classification of 60 rows by 1 columns").wait_for()
    page.get_by_text("The request").click()
    request = page.locator("details pre").first.inner_text()
    for part in ('"group": "group"', '"size": "categorical"', '"features": [\n  "size"\n ]'):
        assert part in request
    page.get_by_label("Role of width").select_option("target")
    assert page.get_by_label("Target, the column to predict").input_value() == "width"


def test_names_that_people_know_lead_to_algorithms(page):
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Search by any name").fill("XGBoost")
    assert page.get_by_label("Algorithm").input_value() == "gradient_boosting"
    page.get_by_label("Search by any name").fill("naive bayes")
    assert page.get_by_label("Algorithm").input_value() == "generative_bayes"


def test_a_training_is_done_again_with_changes(page, train, send):
    train("flowers", "logistic", l2=0.25)
    page.get_by_role("link", name="Again, with changes").click()
    page.get_by_role("heading", level=1, name="Train").wait_for()
    page.get_by_text("classification of 150 rows").wait_for()
    assert page.get_by_label("l2", exact=True).input_value() == "0.25"
    assert page.get_by_label("Name of the model").input_value() == "flowers"
    page.get_by_label("l2", exact=True).fill("2")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("link", name="Read the report").wait_for()
    assert send("GET", "/v1/models/flowers/versions/2")["parameters"]["l2"] == 2


def test_the_playground_sends_one_request_for_each_move_and_none_after_a_refusal(page, train, go):
    train("groups", "kmeans", target=None)
    sent = []

    def note(request):
        if request.method == "POST" and "/v1/models/groups/" in request.url:
            sent.append(request.url.rpartition("/")[2])

    page.on("request", note)
    go("models/groups/1/try", "Try groups, version 1")
    page.locator(".predicted strong").wait_for()
    page.wait_for_load_state("networkidle")
    assert sum("include=contributions" in each for each in sent) == 1  # refused: a clustering has none
    sent.clear()
    page.get_by_label("petal_length_cm", exact=True).focus()
    with page.expect_response("**/sweep?version=1"):
        page.keyboard.press("End")
    page.wait_for_load_state("networkidle")
    assert sorted(sent) == ["predict?version=1", "sweep?version=1"]


def test_the_first_metric_is_beside_a_constant_prediction(page, go, send):
    """A target that has nothing to do with the columns."""
    lines = ["a,b,kind", *(f"{n * 37 % 101},{n * 53 % 97},{'no' if n * 17 % 10 < 8 else 'yes'}" for n in range(200))]
    page.get_by_label("Upload a table").set_input_files(
        {"name": "noise.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
    )
    page.get_by_role("heading", name="noise", exact=True).wait_for()
    body = {"dataset": page.url.rpartition("/")[2], "target": "kind", "model": "noise"}
    job = send("POST", "/v1/jobs/train", body | {"algorithm": {"name": "logistic"}})
    go(f"jobs/{job['id']}", "train")
    page.get_by_role("link", name="Read the report").click()
    tile = page.get_by_role("region", name="First metric, accuracy")
    tile.get_by_text("Predicting no for every row: ").wait_for()
    assert "not distinguishable from the constant" in tile.inner_text()
    assert page.get_by_role("row", name="accuracy of a constant prediction").is_visible()
