"""A real Chromium before the real server."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright

from tests.servers.bridge import Bridge

USER, PASSWORD = "operator", "a long enough password"
SIZES = {"desktop": (1440, 900), "phone": (390, 844)}


@contextmanager
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine: the operator's pages are not tried in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A page that remembers what went wrong on it."""

    def __init__(self, context: BrowserContext, bridge: Bridge) -> None:
        self.page: Page = context.new_page()
        self.url = bridge.url
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        self.page.on("dialog", self._dismiss)

    def sign_in(self) -> None:
        self.go("/admin/")
        self.page.fill("input[name=username]", USER)
        self.page.fill("input[name=password]", PASSWORD)
        self.page.click("button[type=submit]")
        self.page.wait_for_url("**/admin/")

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append("a dialog opened")
        dialog.dismiss()

    def go(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    @property
    def overflow(self) -> int:
        """By how much the page is wider than the window."""
        width = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return int(width)


@contextmanager
def visitor(
    browser: Browser, bridge: Bridge, size: str = "desktop", scheme: Literal["light", "dark"] = "light"
) -> Iterator[Visitor]:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    try:
        came = Visitor(context, bridge)
        came.sign_in()
        yield came
    finally:
        context.close()
