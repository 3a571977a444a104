"""A picture of the report, for the README, by a headless Chromium that $CHROMIUM names.

python -m profiles.picture REPORT PICTURE
"""

from __future__ import annotations

import sys
from pathlib import Path

from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.pictures import chromium


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m profiles.picture REPORT PICTURE", file=sys.stderr)
        return 1
    report, picture = map(Path, arguments)
    try:
        if not report.exists():
            raise CannotMake(f"{report} is not there: `make profile` makes it")
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.goto(report.resolve().as_uri())
            page.locator("[name=kind]").select_option("idle")
            page.get_by_role("searchbox").fill("walk|compare")
            page.screenshot(path=picture, full_page=True)
    except CannotMake as reason:
        print(f"picture: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
