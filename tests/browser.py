"""A real Chromium for tests of pages. It makes no requests of its own."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

QUIET = ("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MISSING = "NO CHROMIUM: the page was not tried in a browser; `apt-get install chromium`"


@contextmanager
def open_chromium() -> Iterator[Any]:
    """A browser that playwright controls; the test is skipped, with a warning, if there is none."""
    path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if path is None:
        warnings.warn(MISSING, stacklevel=1)
        pytest.skip(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *QUIET])
        yield chromium
        chromium.close()
