"""A browser, and pages in it that must not go wrong."""

import pytest
from playwright.sync_api import sync_playwright

from browser.find_browser import find_browser

WIDTHS = {"desktop": (1280, 900), "phone": (375, 800)}


@pytest.fixture(scope="session")
def browser():
    path = find_browser()
    assert path is not None, "no Chromium: run 'playwright install chromium'"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page at a width; at the end nothing may have gone wrong in it, and nothing but the page was asked for."""
    contexts, troubles = [], []

    def open_page(path, size="desktop", **options):
        width, height = WIDTHS[size]
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        own = (path.as_uri(), "blob:")  # a file that the page itself has made
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith(own) else troubles.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
