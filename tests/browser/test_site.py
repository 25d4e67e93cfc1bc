"""The built site in a real browser: served as a plain file server would, with nothing else in reach."""

import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAGES = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if "_static" not in path.parts)

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}

# In CI a missing browser is a failure, not a skip.
pytestmark = pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason="no Chromium on this machine")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    return browser_type_launch_args | {"executable_path": BROWSER, "args": quiet}


@pytest.fixture(scope="session")
def served():
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def strict(page, served):
    """A page on which any outside request, missing file or script error fails the test."""
    faults = []
    page.on("request", lambda request: request.url.startswith((served, "data:")) or faults.append(request.url))
    page.on("response", lambda response: response.status < 400 or faults.append(f"{response.status} {response.url}"))
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    assert faults == []


def test_the_site_was_built():
    assert (SITE / "index.html").exists()
    assert len(PAGES) > 10


@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_and_never_scrolls_sideways(strict, served, name):
    for width in (1280, 390, 320):
        for scheme in ("light", "dark"):
            strict.set_viewport_size({"width": width, "height": 900})
            strict.emulate_media(color_scheme=scheme)
            strict.goto(served + name)
            strict.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert strict.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme)
            figures = strict.locator(".course-figure .course-scroll")
            assert not figures.evaluate_all("all => all.some(each => each.scrollWidth > each.clientWidth)"), width
            if name.startswith("_modules/") and width != 390:
                continue  # long pages of highlighted code, all of one template: their rules do not depend on the width
            found = Axe().run(strict, options=RULES).response["violations"]
            assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == [], (width, scheme)


def test_search_finds_the_ridge_point(strict, served):
    strict.goto(served + "search.html?q=ridge")
    strict.locator("#search-results li a", has_text=re.compile("tpu-03")).first.wait_for()


def test_a_reveal_stays_shut_until_opened_by_key(strict, served):
    strict.goto(served + "phase-21.html")
    reveal = strict.locator("details.course-reveal").first
    assert reveal.get_attribute("open") is None
    reveal.locator("summary").focus()
    strict.keyboard.press("Enter")
    assert reveal.get_attribute("open") is not None


def test_reveals_and_figures_need_no_script(browser, served):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(served + "lessons/tpu-03.html")
    page.locator("details.course-reveal summary").first.click()
    assert page.locator("details.course-reveal[open]").count() == 1
    assert page.locator("figure.course-figure svg").count() >= 4
    context.close()


def test_the_site_follows_the_system_into_the_dark(strict, served):
    strict.goto(served + "index.html")
    before = strict.evaluate("getComputedStyle(document.body).backgroundColor")
    strict.emulate_media(color_scheme="dark")
    assert strict.evaluate("getComputedStyle(document.body).backgroundColor") != before
