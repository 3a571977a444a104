"""Pictures of the report, for the README, by a headless Chromium that $CHROMIUM names.

    python -m profiles.picture REPORT FOLDER

Exit codes: 0 done; 1 there is no report, or no browser.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.pictures import run


def take(browser: Browser, report: Path, folder: Path) -> None:
    """Write profiles.png, the figures and curves, and flamegraphs.png to ``folder``."""
    if not report.exists():
        raise CannotMake(f"{report} is not there: `make profile` makes it")
    page = browser.new_page(viewport={"width": 1400, "height": 1240})
    page.goto(report.resolve().as_uri())
    below = page.locator(".figures").first.evaluate("figures => figures.getBoundingClientRect().bottom")
    top: Any = {"x": 0, "y": 0, "width": 1400, "height": below + 24}
    page.screenshot(path=folder / "profiles.png", full_page=True, clip=top)
    page.locator("[name=kind]").select_option("idle")
    page.locator("[name=matchers]").select_option(index=1)
    page.get_by_role("searchbox").fill("pthread_cond_timedwait")
    page.locator(".controls").evaluate("controls => scrollTo(0, controls.offsetTop)")
    page.screenshot(path=folder / "flamegraphs.png")
    page.close()


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:], "profiles.picture", "REPORT", take))
