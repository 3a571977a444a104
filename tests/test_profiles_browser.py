"""The profiles' pages and pictures in a headless Chromium, as files: `make browser-test`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from profile_samples import make_profiles

from asv_benchmarks.site import CannotMake
from asv_benchmarks.site.pictures import chromium
from profiles.__main__ import main
from profiles.picture import take

pytestmark = pytest.mark.browser

WIDTHS = "all => all.map(box => box.getBoundingClientRect().width)"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    make_profiles(folder)
    assert main(["report", "--out", str(folder)]) == 0
    names = [folder / f"{name}-0123456789ab-4-idle" for name in ("reference", "rust")]
    assert main(["compare", *map(str, names), "--out", str(folder / "two.html")]) == 0
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may load nothing but its own file, and on which nothing goes wrong."""
    wrong: list[str] = []
    asked: list[str] = []
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert wrong == []
    assert len([url for url in asked if not url.startswith(("data:", "about:"))]) == 1
    page.close()


def shown(page: Page) -> list[str]:
    return page.locator(".graphs figure:visible figcaption b").all_inner_texts()


def test_the_report_shows_the_chosen_recordings_side_by_side(page: Page, recorded: Path) -> None:
    page.goto((recorded / "report.html").as_uri())
    trees = ["reference", "cython", "rust"]
    pairs = ["from reference to cython", "from reference to rust", "from cython to rust"]
    assert shown(page) == [*trees, *pairs]
    tops = page.locator(".graphs figure:visible").evaluate_all("all => all.slice(0, 3).map(f => f.offsetTop)")
    assert len(set(tops)) == 1  # side by side
    assert page.locator(".graphs figure:visible small").first.inner_text().startswith("py-spy record --gil")
    page.locator("[name=kind]").select_option("idle")
    page.locator("[name=matchers]").select_option("4")
    assert shown(page) == [*trees, *pairs]
    assert "--native --idle" in page.locator(".graphs figure:visible small").first.inner_text()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_click_zooms_and_the_top_box_goes_back(page: Page, recorded: Path) -> None:
    page.goto((recorded / "report.html").as_uri())
    graph = page.locator(".graphs figure:visible .flames").first
    whole = graph.bounding_box()
    assert whole is not None
    before = graph.locator(".box").evaluate_all(WIDTHS)
    box = graph.locator(".box", has_text="schedule").last
    box.click()
    boxes = graph.locator(".box:visible")
    assert boxes.count() < len(before)
    zoomed = box.bounding_box()
    assert zoomed is not None and zoomed["width"] == pytest.approx(whole["width"], abs=3)
    graph.locator(".box").first.click()
    assert graph.locator(".box").evaluate_all(WIDTHS) == before
    box.focus()
    page.keyboard.press("Enter")
    assert boxes.count() < len(before)
    page.get_by_role("button", name="all back to full width").click()
    assert graph.locator(".box").evaluate_all(WIDTHS) == before


def test_a_search_marks_what_it_finds_and_says_how_much(page: Page, recorded: Path) -> None:
    page.goto((recorded / "report.html").as_uri())
    page.locator("[name=matchers]").select_option("4")
    page.get_by_role("searchbox").fill("^(match|insert)")
    figure = page.locator(".graphs figure:visible").first
    assert figure.locator(".box.found").count() == 2
    assert figure.locator(".share").inner_text() == " found: 72.2 %"  # (4 · 30 + 10) of 180
    page.get_by_role("searchbox").fill("match|walk")
    assert figure.locator(".share").inner_text() == " found: 66.7 %"  # what is below counts once
    page.get_by_role("searchbox").fill("(")
    assert "no regular expression" in figure.locator(".share").inner_text()
    page.get_by_role("searchbox").fill("")
    assert figure.locator(".box.found").count() == 0 and figure.locator(".share").inner_text() == ""


def test_two_recordings_on_a_page(page: Page, recorded: Path) -> None:
    page.goto((recorded / "two.html").as_uri())
    assert len(shown(page)) == 3
    page.get_by_role("searchbox").fill("walk.rs")
    assert page.locator(".box.found").count() == 2  # in one of them and in the difference
    fills = page.locator(".box.found rect").evaluate_all("all => all.map(rect => getComputedStyle(rect).fill)")
    assert fills == ["rgb(228, 63, 196)"] * 2


def test_a_picture_of_its_own_zooms_and_searches(page: Page, recorded: Path) -> None:
    page.goto((recorded / "rust-0123456789ab-4-gil.svg").as_uri())
    box = page.locator(".box", has_text="schedule").last
    before = box.bounding_box()
    box.click()
    after = box.bounding_box()
    assert before is not None and after is not None and after["width"] > 2 * before["width"]
    page.on("dialog", lambda dialog: dialog.accept("walk"))
    page.locator("#search").click()
    assert page.locator("#search").text_content() == "walk: 66.7 %"
    assert page.locator(".box.found").count() == 1


def test_pictures(browser: Browser, recorded: Path, tmp_path: Path) -> None:
    take(browser, recorded / "report.html", tmp_path)
    for name in ("profiles.png", "flamegraphs.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    with pytest.raises(CannotMake, match="is not there: `make profile` makes it"):
        take(browser, tmp_path / "report.html", tmp_path)
