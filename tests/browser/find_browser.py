"""Find a Chromium for the browser tests; run as a program, print it or say what to do and exit with 1."""

import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser():
    """Return the path of a Chromium, one of the system or Playwright's own, or None."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


if __name__ == "__main__":
    browser = find_browser()
    if browser is None:
        sys.exit(f"No browser found: neither {', '.join(NAMES)} nor Playwright's own; 'playwright install chromium'.")
    sys.stdout.write(f"{browser}\n")
