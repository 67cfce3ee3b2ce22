"""Chromium without a window: for tests of pages, and for pictures of them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

FLAGS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-device-scale-factor=1", "--hide-scrollbars",
)  # fmt: skip
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """Chromium with a page, and what that page said and asked for."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1280, *, dark: bool = False, height: int = 900) -> None:
        """Open a page in a window of that size, and wait until its timeline is drawn."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        # A jump that is animated would make clicks miss.
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self.driver.get("data:,")
        self.errors(), self.requests()
        self.driver.get(page.as_uri())
        self.wait("return document.getElementById('chart').dataset.ready === 'yes'")

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until a script gives something true."""
        end = time.monotonic() + 20
        while not self.run(condition):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}")
            time.sleep(0.02)

    def find(self, selector: str) -> Any:
        """The first element that a CSS selector fits."""
        return self.driver.find_element("css selector", selector)

    def click(self, selector: str) -> None:
        """Scroll to an element and click on it."""
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.find(selector).text)

    def range(self) -> tuple[float, float]:
        """What the timeline shows, in ms."""
        begin, end = self.run("return chakraTimeline.range()")
        return begin, end

    def errors(self) -> list[str]:
        """What the page complained about since the last call."""
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if entry["level"] != "INFO"]

    def requests(self) -> list[str]:
        """Addresses that pages asked for since the last call, but for data in the page itself."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return [url for url in found if not url.startswith(("data:", "chrome"))]


def missing() -> str | None:
    """What is not installed here, if anything."""
    try:
        import selenium.webdriver  # noqa: F401
    except ImportError:
        return "no selenium here (pip install selenium)"
    if _binary() is None or shutil.which("chromedriver") is None:
        return "no Chromium with its driver here (Debian: chromium, chromium-driver)"
    return None


def _binary() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser whose profile lies in a directory, which should be new."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(_binary())
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
