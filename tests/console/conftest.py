"""A browser on the console of a service that wants keys: each project begins empty."""

import shutil
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
REPORTED = """
window.violations = [];
const report = (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
addEventListener("securitypolicyviolation", report);
"""


@pytest.fixture(scope="module")
def browser():
    """Closed with the module: its event loop runs in this thread, where other tests run theirs."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no browser is installed")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(api_address, worker):
    return api_address(auth="keys")


@pytest.fixture(scope="module")
def secret(services):
    from app.schemas.keys import KeySpec

    return lambda: services.keys.create_first(KeySpec(name="person", role="admin"), f"console-{uuid4()}").secret


@pytest.fixture
def page(browser, address, secret):
    """A page of a new visitor of a new project, signed in; nothing but our own service can be reached."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, permissions=["clipboard-write"])
    elsewhere = []

    def only_ours(route):
        if urlsplit(route.request.url).netloc == urlsplit(address).netloc or route.request.url.startswith("data:"):
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    context.route("**/*", only_ours)
    context.add_init_script(REPORTED)
    opened, errors = context.new_page(), []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(f"{address}/console/")
    opened.get_by_label("Key", exact=True).fill(secret())
    opened.get_by_role("button", name="Sign in").click()
    opened.get_by_role("heading", level=1, name="Home").wait_for()
    yield opened
    assert errors == []
    assert elsewhere == []
    assert opened.evaluate("window.violations") == []
    context.close()


@pytest.fixture
def serious_faults():
    """`serious_faults(page)`: what keeps people from using a page, by the rule of axe that it breaks."""
    from axe_playwright_python.sync_playwright import Axe

    def find(page):
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [one for one in found if one["impact"] in {"serious", "critical"}]
        return {one["id"]: [node["html"][:200] for node in one["nodes"]] for one in serious}

    return find


@pytest.fixture
def send(page, address):
    """`send(method, path, body)`: a request of the console's own page, with its session."""

    def run(method, path, body=None):
        program = """async ([method, path, body]) => {
            const content = body === null ? undefined : JSON.stringify(body);
            const headers = {"Content-Type": "application/json"};
            return (await fetch(path, {method, headers, body: content})).json(); }"""
        return page.evaluate(program, [method, path, body])

    return run


@pytest.fixture
def train(page, send):
    """`train(model, algorithm, target)`: a version of a model of iris."""
    page.get_by_role("button", name="iris").click()
    page.get_by_role("heading", name="iris", exact=True).wait_for()
    dataset = page.url.rpartition("/")[2]

    def run(model, algorithm, target="species", **parameters):
        body = {"model": model, "dataset": dataset, "algorithm": {"name": algorithm, **parameters}}
        job = send("POST", "/v1/jobs/train", body | ({"target": target} if target else {}))
        page.goto(f"{page.url.partition('#')[0]}#/jobs/{job['id']}")
        page.get_by_role("link", name="Read the report").wait_for()

    return run


@pytest.fixture
def go(page):
    def to(place, title):
        page.goto(f"{page.url.partition('#')[0]}#/{place}")
        page.get_by_role("heading", level=1, name=title).wait_for()

    return to
