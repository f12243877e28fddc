"""The whole task of a stranger: a messy table, three algorithms, the best promoted, a file predicted, and reasons."""

import csv
import io
import random

import pytest

pytestmark = pytest.mark.slow

CLICKS = """
window.clicks = Number(sessionStorage.clicks || 0);
window.typed = Number(sessionStorage.typed || 0);
addEventListener("pointerdown", () => { sessionStorage.clicks = ++window.clicks; }, true);
addEventListener("keydown", () => { sessionStorage.typed = ++window.typed; }, true);
"""
MAX_CLICKS = 14


def messy(rows, *, with_target):
    """Customers of a telephone company, as a spreadsheet leaves them."""
    rng, written = random.Random(1), io.StringIO()
    names = ["customer_id", "Charge", "Tenure (months)", "Contract", "Signed", "Calls", "Churn"]
    table = csv.writer(written)
    table.writerow(names if with_target else names[:-1])
    for place in range(rows):
        tenure, calls = rng.randint(1, 72), rng.randint(0, 9)
        contract = rng.choice(["monthly", "one year", "Two Years"])
        score = 0.4 * calls - 0.05 * tenure + (contract == "monthly") + rng.gauss(0, 0.5)
        row = [
            f"C{place:05}", f"{20 + 90 * rng.random():.2f}", "n/a" if place % 19 == 0 else tenure, contract,
            f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.2024", "" if place % 23 == 0 else calls,
        ]  # fmt: skip
        table.writerow([*row, "Yes" if score > 0 else "No"] if with_target else row)
    return written.getvalue().encode()


def choose(page, target, name, content):
    """Click what opens the choice of a file, and take one."""
    with page.expect_file_chooser() as chooser:
        target.click()
    chooser.value.set_files({"name": name, "mimeType": "text/csv", "buffer": content})


def test_from_a_messy_table_to_reasons_in_few_clicks(page):
    page.set_default_timeout(120_000)  # a first training compiles
    page.add_init_script(CLICKS)
    page.reload()
    choose(page, page.get_by_text("Upload a table", exact=True), "churn.csv", messy(200, with_target=True))
    page.get_by_role("heading", name="churn", exact=True).wait_for()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_role("button", name="Try several").click()
    page.get_by_text("16 fits").wait_for()
    page.get_by_role("button", name="Try 3").click()
    board = page.get_by_role("table", name="Leaderboard")
    page.get_by_role("button", name="Promote").wait_for()
    page.get_by_text("Chosen:").wait_for()
    assert board.get_by_role("row").count() == 4
    assert "chosen 0" not in page.locator("main").inner_text()
    page.get_by_text("Fold by fold").click()
    page.get_by_role("img", name="log_loss in each fold").wait_for()
    page.get_by_role("button", name="Promote").click()
    page.get_by_text("champion", exact=True).wait_for()
    page.get_by_role("link", name="Read the report").click()
    page.get_by_role("region", name="First metric, accuracy").wait_for()
    choose(page, page.get_by_text("Predict a file"), "new.csv", messy(30, with_target=False))
    predictions = page.get_by_role("table", name="Predictions")
    predictions.wait_for()
    assert predictions.get_by_role("columnheader", name="reasons").count() == 1
    assert "the log-odds of Yes by" in predictions.get_by_role("row").nth(1).inner_text()
    assert 5 < page.evaluate("clicks") <= MAX_CLICKS
    assert page.evaluate("typed") == 0
