"""The site in a headless Chromium, as files and from a server: `make browser-test`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from playwright.sync_api import Browser, Page
from site_samples import COMMITS, make_samples

from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.make import make_site
from asv_benchmarks.site.pictures import chromium, take
from triradix import IMPLEMENTATIONS

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
MATCH = "asv/index.html#match.HotMatch.time_one_match"
ROUTES = ("asv/index.html#/summarylist", "asv/index.html#/regressions", MATCH, f"{MATCH}?x-axis=tokens")
BLANK = (
    "canvas => !new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)"
)
BLANK += ".some(pixel => pixel)"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    places = make_samples(tmp_path_factory.mktemp("samples"))
    parts, problems = make_site(places)
    assert problems == []
    assert all(part.body for part in parts)
    return places.out.resolve()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(params=["file", "http"])
def base(request: pytest.FixtureRequest, site: Path) -> str:
    return site.as_uri() if request.param == "file" else str(request.getfixturevalue("server"))


class Watched:
    """A page and everything that went wrong on it."""

    def __init__(self, browser: Browser, base: str, **options: Any) -> None:
        self._base = base
        self.page: Page = browser.new_page(**options)
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"failed: {request.url}"))
        self.page.on("response", self._look_at_answer)
        self.page.on("request", self._look)

    def _look(self, request: Any) -> None:
        if not request.url.startswith((f"{self._base}/", "data:", "about:")):
            self.wrong.append(f"elsewhere: {request.url}")

    def _look_at_answer(self, answer: Any) -> None:
        if answer.status >= 400:
            self.wrong.append(f"{answer.status}: {answer.url}")

    def open(self, address: str) -> Page:
        self.page.goto("about:blank")  # else only the part after # would change
        self.page.goto(f"{self._base}/{address}")
        self.page.wait_for_load_state("networkidle")
        return self.page


def pages_of(site: Path) -> list[str]:
    return [*(path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))), *ROUTES]


def blank_canvases(page: Page, within: str) -> list[bool]:
    canvases = page.locator(f"{within} canvas.flot-base")
    return [canvases.nth(at).evaluate(BLANK) for at in range(canvases.count())]


def test_every_page_is_whole(browser: Browser, site: Path, base: str) -> None:
    watched = Watched(browser, base, viewport=PHONE)
    assert {"index.html", "commits.html", "compare.html", "replay.html", "asv/index.html"} <= set(pages_of(site))
    for address in pages_of(site):
        page = watched.open(address)
        assert watched.wrong == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address
        assert len(page.inner_text("body")) > 40, address
        if address.startswith("asv/"):
            assert not page.locator("#error").is_visible(), address
    watched.page.close()


def test_graphs_draw_every_series(browser: Browser, base: str) -> None:
    watched = Watched(browser, base)
    shown = "&p-tokens=1024&p-page size=1"
    for query, series in ((f"machine=anvil{shown}", 3), (f"machine=anvil&machine=bellows{shown}", 6)):
        page = watched.open(f"{MATCH}?{query}")
        assert page.evaluate("$('#main-graph').data('plot').getData().length") == series
        assert page.evaluate("$('#main-graph').data('plot').getData()[0].data.length") == COMMITS
        assert page.locator("#main-graph .legendLabel").count() == series
        assert blank_canvases(page, "#main-graph") == blank_canvases(page, "#overview") == [False]
    assert watched.wrong == []
    watched.page.close()


def test_the_grid_draws_each_benchmark(browser: Browser, base: str) -> None:
    watched = Watched(browser, base)
    page = watched.open("asv/index.html")
    assert blank_canvases(page, "#summarygrid-display") == [False] * page.locator(".benchmark-container").count()
    assert page.locator(".benchmark-container").count() == 4
    page.get_by_text("All figures").click()
    assert page.title().startswith("triradix")
    assert watched.wrong == []
    watched.page.close()


def test_a_graph_whose_values_lie_far_apart_begins_logarithmic(browser: Browser, base: str) -> None:
    watched = Watched(browser, base)

    def logarithmic() -> bool:
        page.wait_for_selector("#main-graph canvas")
        return "active" in (page.locator("#log-scale").get_attribute("class") or "")

    page = watched.open("asv/index.html#evict.EvictByPolicy.time_evict_512_tokens?machine=anvil")
    assert logarithmic()
    page.locator("#log-scale").click()
    page.wait_for_timeout(100)
    assert not logarithmic(), "the reader's choice holds"
    page = watched.open(MATCH)
    assert not logarithmic()
    assert watched.wrong == []
    watched.page.close()


def test_a_table_that_is_cut_off_says_so(browser: Browser, base: str) -> None:
    """On a phone: a shadow at the side where columns are hidden, and the row's name stays in sight."""
    watched = Watched(browser, base, viewport=PHONE)
    page = watched.open("compare.html")
    wide = page.locator(".wide").first
    assert wide.evaluate("box => box.scrollWidth > box.clientWidth")
    assert "gradient" in wide.evaluate("box => getComputedStyle(box).backgroundImage")
    name = wide.locator("tbody th").first
    before = name.bounding_box()
    wide.evaluate("box => box.scrollLeft = 60")
    assert name.bounding_box() == before
    assert watched.wrong == []
    watched.page.close()


def test_labels_of_charts_are_whole_and_apart(browser: Browser, site: Path) -> None:
    watched = Watched(browser, site.as_uri())
    wrong = """all => all.flatMap(chart => {
        const boxes = [...chart.querySelectorAll("text")].map(text => text.getBBox());
        const below = boxes.filter(box => box.y > 200).sort((a, b) => a.x - b.x);
        return [...boxes.filter(box => box.x < 0 || box.x + box.width > chart.viewBox.baseVal.width),
            ...below.filter((box, at) => at && box.x < below[at - 1].x + below[at - 1].width)].map(box => box.x);
    })"""
    for address in ("index.html", "compare.html", "replay.html"):
        page = watched.open(address)
        charts = page.locator("svg.chart")
        assert charts.count() > 0, address
        assert charts.evaluate_all(wrong) == [], address
    watched.page.close()


def test_the_list_sorts_by_value(browser: Browser, base: str) -> None:
    watched = Watched(browser, base)
    page = watched.open("asv/index.html#/summarylist?machine=anvil")
    orders = []
    for _ in range(2):
        page.get_by_role("columnheader", name="Value").click()
        page.wait_for_timeout(100)
        orders.append(page.locator("#summarylist-body tbody tr td:first-child").all_inner_texts())
    assert len(orders[0]) == 28
    values = page.locator("#summarylist-body tbody td.value").evaluate_all(
        "all => all.map(td => $(td).data('sort-value'))"
    )
    assert values in (sorted(values), sorted(values, reverse=True))
    assert orders[0] != orders[1]
    assert watched.wrong == []
    watched.page.close()


def test_what_was_not_measured_is_said(browser: Browser, base: str) -> None:
    watched = Watched(browser, base)
    page = watched.open("asv/index.html#evict.EvictByPolicy.time_evict_512_tokens?machine=bellows")
    page.wait_for_selector("#error-message", state="visible")
    assert "No data for this combination" in page.inner_text("#error-message")
    assert watched.wrong == []
    watched.page.close()


def test_every_link_leads_somewhere(browser: Browser, site: Path) -> None:
    watched = Watched(browser, site.as_uri())
    seen = 0
    for address in pages_of(site):
        page = watched.open(address)
        for link in page.locator("a[href]").evaluate_all("all => all.map(a => a.href)"):
            where, fragment = urldefrag(urljoin(page.url, link))
            if where.startswith("https://github.com/"):
                continue  # asv's own home, to be followed by whoever is online
            target = Path(unquote(where.removeprefix("file://")))
            assert target.is_file(), f"{address}: {link}"
            if fragment and target.parent == site:
                assert f'id="{fragment}"' in target.read_text(encoding="utf-8"), f"{address}: {link}"
            seen += 1
    assert seen > 50
    watched.page.close()


def test_the_page_that_leads_in(browser: Browser, site: Path, base: str) -> None:
    watched = Watched(browser, base)
    page = watched.open("index.html")
    charts = page.locator("section svg.chart")
    assert charts.count() == 9  # two of the comparison, three of the replay, four of the commits
    assert [charts.nth(at).locator("path.curve").count() for at in range(9)] == [5, 4, 3, 3, 2, 3, 3, 3, 3]
    assert page.locator("section img").evaluate_all("all => all.every(img => img.complete && img.naturalWidth)")
    charts.nth(5).hover()
    readout = charts.nth(5).locator("xpath=..").locator(".readout")
    assert re.match(r"[0-9a-f]{8}: reference .* µs · cython .* · rust ", readout.inner_text())
    page.locator("figcaption a").first.click()
    page.wait_for_selector("#main-graph canvas")
    assert page.locator("#main-graph .legendLabel").count() == len(IMPLEMENTATIONS)
    assert watched.wrong == []
    watched.page.close()


def test_pictures(browser: Browser, site: Path, tmp_path: Path) -> None:
    take(browser, site, tmp_path)
    for name in ("site.png", "asv.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(CannotMake, match=r"there is no site in .*nowhere: `make site` makes it"):
        take(browser, tmp_path / "nowhere", tmp_path)
