"""Pages of the console beside the way from a table to a champion."""

import json

import pytest

pytestmark = pytest.mark.slow


def test_versions_are_compared(page, train, go):
    for algorithm in ("logistic", "ridge"):
        train("flowers", algorithm)
    go("compare?model=flowers", "Compare")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="Differences in accuracy").wait_for()
    assert page.get_by_role("table", name="Differences of pairs").get_by_role("row").count() == 2


def test_an_imported_version_is_not_made_again(page, send):
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import Ridge

    from valiant.fitted_estimator import fitted

    content = fitted(Ridge().fit(*load_diabetes(return_X_y=True))).content
    upload = """async (content) => {
        const headers = {"Content-Type": "application/octet-stream"};
        return (await (await fetch("/v1/files", {method: "POST", headers, body: content})).json()).id; }"""
    file = page.evaluate(upload, content.decode())
    body = {"model": "progression", "file": file, "file_format": "scikit-learn"}
    job = send("POST", "/v1/jobs/import", body)["id"]
    page.goto(f"{page.url.partition('#')[0]}#/jobs/{job}")
    page.get_by_role("link", name="Read the report").click()
    page.get_by_role("heading", name="progression, version 1").wait_for()
    page.get_by_text("Imported from a file of scikit-learn").wait_for()
    assert page.get_by_role("button", name="Make it again from the receipt").count() == 0


def test_rejected_rows_are_labelled_with_keys(page, train, send, go):
    train("flowers", "logistic")
    flower = {"sepal_length_cm": 6, "sepal_width_cm": 2.7, "petal_length_cm": 4.9, "petal_width_cm": 1.6}
    for width in (1.6, 1.7):
        row = flower | {"petal_width_cm": width}
        send("POST", "/v1/models/flowers/predict?review=true&min_probability=0.9999", {"rows": [row]})
    go("reviews", "Reviews")
    page.get_by_text("1 of 2, by flowers 1").wait_for()
    page.keyboard.press("2")
    page.get_by_text("2 of 2, by flowers 1").wait_for()
    page.keyboard.press("3")
    page.get_by_text("No row waits for a label.").wait_for()
    assert sorted(one["label"] for one in send("GET", "/v1/reviews?state=labelled")["items"]) == [
        "versicolor",
        "virginica",
    ]


def test_clusters_get_names(page, train, go, send):
    train("groups", "kmeans", target=None, n_clusters=3)
    go("models/groups/1", "groups, version 1")
    page.get_by_role("heading", name="Cluster 0").wait_for()
    field = page.get_by_label("Name").first
    field.fill("<b>Short</b> petals")
    field.press("Enter")
    page.get_by_role("heading", name="<b>Short</b> petals").wait_for()
    assert send("GET", "/v1/models/groups/versions/1/names")["names"] == [{"cluster": 0, "name": "<b>Short</b> petals"}]


def test_every_calculator_calculates_its_example(page, go, client):
    go("theory", "Theory")
    cards = client.get("/v1/theory").json()["items"]
    for card in cards:
        page.get_by_label("Calculator").select_option(card["name"])
        page.get_by_role("button", name="Calculate").click()
        page.get_by_role("heading", name="Result").wait_for()
        assert page.get_by_role("alert").count() == 0, card["name"]


def test_a_session_shows_its_mistakes(page, go, send):
    from app.api.edge.examples import EXAMPLES

    opened = send("POST", "/v1/sessions", EXAMPLES["create_session"]["request"])
    rows = [{"age": (-1) ** n * n / 9, "member": True, "clicked": n % 3 > 0} for n in range(9)]
    send("POST", f"/v1/sessions/{opened['id']}/rounds", {"revision": 0, "rows": rows})
    go("sessions", "Sessions")
    page.get_by_role("link", name=opened["name"]).click()
    page.get_by_text("Mistakes").first.wait_for()
    assert json.dumps(9) in page.locator(".facts").inner_text()


def test_quotas_of_the_project_are_shown(page, go):
    go("keys", "Keys")
    table = page.get_by_role("table", name="Quotas")
    table.wait_for()
    assert "50 GiB" in table.get_by_role("row", name="Storage").inner_text()
    assert "86,400" in table.get_by_role("row", name="Seconds of jobs today").inner_text()


def test_a_person_signs_out(page, go):
    go("keys", "Keys")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()


def test_a_key_is_created_and_revoked(page, go):
    go("keys", "Keys")
    page.get_by_label("Name").fill("checkout")
    page.get_by_role("button", name="Create a key").click()
    page.get_by_text("vlt_").first.wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke checkout").click()
    page.get_by_role("row", name="checkout").get_by_text("revoked").wait_for()
    page.get_by_role("cell", name="revoke_key").wait_for()
