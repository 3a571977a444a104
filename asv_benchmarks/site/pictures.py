"""Pictures of a site that is made, for the README, by a headless Chromium that $CHROMIUM names.

    python -m asv_benchmarks.site.pictures SITE FOLDER

Exit codes: 0 done; 1 a picture is missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Error as BrowserError

from asv_benchmarks.site import CannotMake


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of this machine; nothing is downloaded."""
    path = os.environ.get("CHROMIUM")
    if not path:
        raise CannotMake("CHROMIUM does not name a Chromium: `.ci/chromium` prints the path of one")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path)
        except BrowserError as error:
            raise CannotMake(f"{path} does not start: {error.message.splitlines()[0]}") from None
        try:
            yield browser
        finally:
            browser.close()


def take(browser: Browser, site: Path, folder: Path) -> None:
    """Write site.png, the page that leads in, and asv.png, a graph, to ``folder``."""
    if not (site / "index.html").exists():
        raise CannotMake(f"there is no site in {site}: `make site` makes it")
    page = browser.new_page(viewport={"width": 1200, "height": 1400})
    page.goto((site / "index.html").resolve().as_uri())
    page.screenshot(path=folder / "site.png")
    graphs = page.locator("#history :is(figcaption, table) a")
    if not graphs.count():
        raise CannotMake("there is no graph to picture yet: `make bench-history` measures")
    page.set_viewport_size({"width": 1200, "height": 640})
    graphs.first.click()
    page.wait_for_selector("#main-graph canvas")
    page.screenshot(path=folder / "asv.png")
    page.close()


def run(arguments: list[str], module: str, what: str, take: Callable[[Browser, Path, Path], None]) -> int:
    """Take pictures of ``what``, the first argument, to the folder that is the second; the exit code."""
    if len(arguments) != 2:
        print(f"usage: python -m {module} {what} FOLDER", file=sys.stderr)
        return 1
    source, folder = map(Path, arguments)
    try:
        with chromium() as browser:
            folder.mkdir(parents=True, exist_ok=True)
            take(browser, source, folder)
    except CannotMake as reason:
        print(f"no pictures: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:], "asv_benchmarks.site.pictures", "SITE", take))
