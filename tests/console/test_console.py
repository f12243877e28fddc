"""The console in a real browser: from a table to a champion, by mouse and by keyboard, for everybody."""

import json
import re
from pathlib import Path

import pytest

from app.console import site

ROOT = Path(__file__).parents[2]
IRIS = ROOT / "app" / "samples" / "iris.csv"
HOSTILE = ["<img src=x onerror=alert(1)>", "\u202eabc", "x" * 200, "a & b </script>"]
PAGES = (
    *("", "datasets", "train", "runs", "jobs", "models", "models/iris", "models/iris/1", "models/iris/1/try"),
    *("compare", "compare?model=iris", "reviews", "sessions", "theory", "keys", "new/suggest"),
)
KB = 1000


def pressed(page, target):
    """Reach a control with the keyboard, and press Enter on it."""
    target.focus()
    page.keyboard.press("Enter")


@pytest.mark.parametrize(
    "press",
    [
        pytest.param(lambda _, target: target.click(), id="mouse", marks=pytest.mark.slow),
        pytest.param(pressed, id="keyboard"),
    ],
)
def test_from_a_sample_to_a_champion(page, press):
    press(page, page.get_by_role("button", name="iris"))
    page.get_by_role("heading", name="iris", exact=True).wait_for()
    page.get_by_role("img", name=re.compile("Histogram of petal_length_cm")).wait_for()
    press(page, page.get_by_role("link", name="Train a model"))
    page.get_by_label("Algorithm").select_option("logistic")
    train = page.get_by_role("button", name="Train")
    page.get_by_text("classification of 150 rows by 4 columns").wait_for()
    press(page, train)
    press(page, page.get_by_role("link", name="Read the report"))
    page.get_by_role("heading", name="iris, version 1").wait_for()
    assert page.get_by_role("cell", name=re.compile("0.9")).first.is_visible()
    page.get_by_text("The error rate on new rows is at most").first.wait_for()
    page.locator(".plot").first.scroll_into_view_if_needed()
    page.locator(".drawn svg").first.wait_for()
    press(page, page.get_by_role("button", name="Promote to champion"))
    page.get_by_role("button", name="Is the champion").wait_for()
    press(page, page.get_by_role("link", name="Try it"))
    for end, species in (("End", "virginica"), ("Home", "setosa")):
        for column in ("petal_length_cm", "petal_width_cm"):
            page.get_by_label(column, exact=True).focus()
            page.keyboard.press(end)
        page.locator(".predicted strong", has_text=species).wait_for()


def test_a_file_is_uploaded_and_every_fault_stands_beside_its_field(page):
    page.get_by_label("Upload a table").set_input_files(IRIS)
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Algorithm").select_option("knn")
    page.get_by_label("n_neighbors").fill("0")
    field = page.locator(".field", has=page.get_by_label("n_neighbors"))
    field.get_by_role("alert").wait_for()
    assert page.get_by_role("button", name="Train").is_disabled()
    page.get_by_label("n_neighbors").fill("3")
    page.get_by_text("classification of 150 rows").wait_for()
    assert page.get_by_role("button", name="Train").is_enabled()


def test_names_are_texts(page):
    lines = [",".join(f'"{name}"' for name in [*HOSTILE, "y"]), *("1,2,3,4,yes\n5,6,7,8,no" for _ in range(20))]
    page.get_by_label("Upload a table").set_input_files(
        {"name": f"{HOSTILE[0].replace('/', '')}.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
    )
    page.get_by_role("heading", name="Rows").wait_for()
    page.locator(".sheets li").first.wait_for()
    for name in HOSTILE:
        assert page.get_by_role("heading", level=3, name=name, exact=True).count() == 1
    assert page.locator("img").count() == 0


def test_every_algorithm_has_a_form(page, client):
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    algorithms = page.get_by_label("Algorithm")
    algorithms.wait_for()
    names = algorithms.locator("option").all_inner_texts()
    cards = [card for card in client.get("/v1/algorithms", params={"limit": 200}).json()["items"] if card["trainable"]]
    assert sorted(names) == sorted(card["name"] for card in cards)
    for card in cards:
        algorithms.select_option(card["name"])
        fields = page.locator(".parameters .field:not(.nested .field)")
        assert fields.count() == len(card["parameters"].get("properties", {})), card["name"]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_pages_are_for_everybody(page, serious_faults, scheme):
    from playwright.sync_api import expect

    page.emulate_media(color_scheme=scheme)
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_label("Algorithm").select_option("logistic")
    page.get_by_role("button", name="Train").click()
    page.get_by_role("link", name="Read the report").click()
    page.locator(".plot").first.scroll_into_view_if_needed()
    page.locator(".drawn svg").first.wait_for()
    home = page.url.partition("#")[0]
    for place in PAGES:
        page.goto(f"{home}#/{place}")
        page.get_by_role("heading", level=1).wait_for()
        expect(page.get_by_text("Loading…")).to_have_count(0, timeout=30_000)  # the document takes seconds
        assert serious_faults(page) == {}, place


def test_a_page_of_another_site_cannot_use_the_session(page, address):
    cookie = page.context.cookies()[0]
    assert (cookie["name"], cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (
        "__Host-valiant",
        True,
        True,
        "Strict",
    )
    request = page.context.request
    assert request.get(f"{address}/v1/me").ok
    refused = request.post(f"{address}/v1/keys", data={"name": "x", "role": "caller"})
    assert refused.json()["code"] == "credential_missing"
    assert page.evaluate("document.cookie") == ""


def loaded_bytes(page):
    """Compressed bytes of the files that the page has loaded, itself among them; the API's responses do not count."""
    program = """() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
        .filter((one) => one.name.includes("/console/")).reduce((sum, one) => sum + one.encodedBodySize, 0)"""
    return page.evaluate(program)


def test_first_page_and_report_are_small(page):
    page.reload()
    page.get_by_role("button", name="iris").wait_for()
    assert 8 * KB < loaded_bytes(page) <= 60 * KB
    page.get_by_role("button", name="iris").click()
    page.get_by_role("link", name="Train a model").click()
    page.get_by_role("button", name="Train").click()
    page.get_by_role("link", name="Read the report").click()
    page.get_by_role("heading", name="iris, version 1").wait_for()
    page.reload()
    page.locator(".plot").first.scroll_into_view_if_needed()
    page.locator(".drawn svg").first.wait_for()
    assert 200 * KB < loaded_bytes(page) <= 320 * KB


def test_files_of_others_are_those_of_their_packages():
    import base64
    import hashlib

    folder = site.FILES / "vendor"
    lines = (folder / "integrity.txt").read_text().splitlines()
    known = dict(line.split() for line in lines if line.startswith(" "))
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "integrity.txt"}
    assert {
        name: f"sha384-{base64.b64encode(hashlib.sha384(data).digest()).decode()}" for name, data in files.items()
    } == known
    packages = [line.split() for line in lines if not line.startswith(" ")]
    assert all(re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", digest) for _, _, digest in packages)
    assert {f"LICENSE.{name}" for name, *_ in packages} <= files.keys()


@pytest.mark.parametrize(
    "name",
    ["integrity.txt", "site.py", "vendor/LICENSE.preact", "..%2Fsettings.py", "samples/README.md", "nothing.mjs"],
)
def test_no_other_file_is_served(client, name):
    assert client.get(f"/console/{name}").status_code == 404


def test_the_policy_admits_no_other_host(client):
    response = client.get("/console/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:", policy)
    assert json.loads(re.search(r'importmap">(.*?)</script>', response.text)[1]) == json.loads(site.IMPORTS)
    file = client.get("/console/app.mjs")
    assert client.get("/console/app.mjs", headers={"If-None-Match": file.headers["etag"]}).status_code == 304


def test_scripts_can_be_read():
    scripts = [path for path in site.FILES.rglob("*.mjs") if "vendor" not in path.parts]
    assert {path.parent.name for path in scripts} == {"console", "pages", "parts", "charts"}
    lines = [(path.name, number, line) for path in scripts for number, line in enumerate(path.open(), 1)]
    long = {f"{name}:{number}" for name, number, line in lines if len(line.rstrip()) > 120}
    assert long == set()
