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
def address(api_factory, worker):
    return api_factory(auth="keys")[1]


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
    opened.get_by_role("heading", name="Datasets").wait_for()
    yield opened
    assert errors == []
    assert elsewhere == []
    assert opened.evaluate("window.violations") == []
    context.close()
