"""Headless Chromium with a log of everything that went wrong in a page."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

FLAGS = [
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Every name but loopback fails at once, so that a machine with internet and one
    # without behave the same and a CDN dependency shows as a failed request.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]

MAC = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
]


@dataclass
class Log:
    """What a page complained about, in order."""

    console: list[str] = field(default_factory=list)  # console.error and console.warn
    exceptions: list[str] = field(default_factory=list)  # uncaught errors
    failed: list[str] = field(default_factory=list)  # requests that got no answer
    http: list[str] = field(default_factory=list)  # answers with status >= 400

    def attach(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda e: self.exceptions.append(str(e)))
        page.on("requestfailed", lambda r: self.failed.append(f"{r.failure} {r.url}"))
        page.on("response", lambda r: r.status >= 400 and self.http.append(f"{r.status} {r.url}"))

    def clear(self) -> None:
        for complaints in (self.console, self.exceptions, self.failed, self.http):
            complaints.clear()

    def _on_console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.console.append(f"{message.type}: {message.text}")

    def problems(self, ignore: tuple[str, ...] = ()) -> list[str]:
        """Errors (not warnings) that contain none of the `ignore` strings."""
        found = [c for c in self.console if c.startswith("error")]
        found += self.exceptions + self.failed + self.http
        return [p for p in found if not any(i in p for i in ignore)]

    def offsite(self) -> list[str]:
        """Requests for anything but this machine (all of them failed)."""
        return [f for f in self.failed if "ERR_NAME_NOT_RESOLVED" in f]


def chromium_path() -> str:
    names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", *MAC]
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    if not path:
        raise RuntimeError("no Chromium found: install Chromium or Google Chrome, or set CHROMIUM to its path")
    return path


class Browser:
    """One Chromium process with a fresh profile; `open` gives a page and its log."""

    def __init__(self, size: tuple[int, int] = (1280, 900), timeout_s: float = 60):
        # Chromium's own sandbox refuses to run as root.
        flags = FLAGS + (["--no-sandbox"] if os.geteuid() == 0 else [])
        self._playwright = sync_playwright().start()
        self._chromium = self._playwright.chromium.launch(executable_path=chromium_path(), args=flags)
        self._context: BrowserContext = self._chromium.new_context(viewport={"width": size[0], "height": size[1]})
        self._context.set_default_timeout(timeout_s * 1000)

    @property
    def version(self) -> str:
        return self._chromium.version

    def open(self, url: str | None = None) -> tuple[Page, Log]:
        page, log = self._context.new_page(), Log()
        log.attach(page)
        if url:
            page.goto(url, wait_until="domcontentloaded")
        return page, log

    def close(self) -> None:
        self._context.close()
        self._chromium.close()
        self._playwright.stop()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exc) -> None:
        self.close()


def screenshot(target, path: str | Path) -> Path:
    """PNG of a page or of one element (a Locator)."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    target.screenshot(path=str(path))
    return path
