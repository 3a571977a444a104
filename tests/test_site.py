"""The site without a browser: what is rewritten, what is copied, and what is said when something is missing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from site_samples import COMMITS, git, make_samples

from asv_benchmarks.site import CannotMake, libraries, offline
from asv_benchmarks.site.__main__ import main
from asv_benchmarks.site.graphs import commits, gather, publish
from asv_benchmarks.site.history import history_part
from asv_benchmarks.site.lead import commits_page
from asv_benchmarks.site.libraries import COPIES, LICENCES, Libraries, fetch, holds
from asv_benchmarks.site.make import Places, make_site
from asv_benchmarks.site.offline import data_to_scripts, refuse_other_hosts, rewrite
from asv_benchmarks.site.pictures import chromium
from asv_benchmarks.site.swap import MARKER, fresh, locked
from triradix import IMPLEMENTATIONS

PAGE = """<!doctype html><html><head><title>asv</title>
<script src="https://a.example/jquery-3.3.1.min.js" integrity="{jquery}" crossorigin="anonymous" onerror="x()"></script>
<script src="//b.example/flot/0.8.3/jquery.flot.min.js" integrity="sha256-other"></script>
<link rel="stylesheet" href="https://c.example/bootstrap@3.1.1/dist/css/bootstrap.min.css">
<script language="javascript"
        src="asv.js"></script>
</head><body><ul><li id="nav-li-" class="active"></li></ul></body></html>"""


def checksum(content: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}"


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Stand-ins for all packages: each file holds its own path."""
    folder = tmp_path / "node_modules"
    for package, path in {*((copy.package, copy.path) for copy in COPIES.values()), *LICENCES.items()}:
        file = folder / package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{package}/{path}")
    (folder / "bootstrap" / "dist" / "fonts").mkdir()
    (folder / "bootstrap" / "dist" / "fonts" / "font.woff").write_text("a font")
    return folder


@pytest.fixture
def copies(tmp_path: Path, modules: Path) -> Libraries:
    return Libraries(modules, tmp_path / "copies")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return make_samples(tmp_path_factory.mktemp("samples"))


@pytest.fixture
def places(shared: Places, tmp_path: Path) -> Places:
    """Everything measured, and no way to fetch the libraries."""
    return replace(shared, out=tmp_path / "site", libraries=tmp_path / "libraries")


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """PATH with a stand-in for npm alone, whose script the test gives; none before it does."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def stand_in(script: str) -> None:
        (folder / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "npm").chmod(0o755)

    yield stand_in


def test_local_copies_stand_for_what_asv_loads(copies: Libraries, modules: Path, tmp_path: Path) -> None:
    jquery = (modules / "jquery" / "dist" / "jquery.min.js").read_bytes()
    page = rewrite(PAGE.format(jquery=checksum(jquery)), copies)
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert loaded == [
        "libraries/jquery/dist/jquery.min.js",
        "data.js",
        "offline.js",
        "libraries/flot/jquery.flot.js",
        "libraries/bootstrap/dist/css/bootstrap.min.css",
        "asv.js",
        "offline.css",
        "../index.html",
    ]
    assert "integrity" not in page
    assert "onerror" not in page
    assert 'name="viewport"' in page
    assert '<link rel="stylesheet" href="libraries/bootstrap' in page
    for path in loaded:
        if path.startswith("libraries/"):
            assert (tmp_path / "copies" / path.removeprefix("libraries/")).is_file()
    assert (tmp_path / "copies" / "bootstrap" / "dist" / "fonts" / "font.woff").is_file()


def test_each_copy_has_its_licence_beside_it(copies: Libraries, tmp_path: Path) -> None:
    for end in COPIES:
        copies.copy(f"https://a.example/{end}", None)
    copied = copies.copied()
    assert [one.name for one in copied] == sorted(LICENCES)
    for one in copied:
        assert (tmp_path / "copies" / one.licence).is_file()
        assert re.fullmatch(r"\d+\.\d+\.\d+", one.version)


def test_what_asv_installed_here_loads_is_known() -> None:
    """A new asv may name other scripts: this fails then, before the site does."""
    spec = find_spec("asv")
    assert spec is not None and spec.origin is not None
    page = (Path(spec.origin).parent / "www" / "index.html").read_text(encoding="utf-8")
    addresses = re.findall(r'(?:src|href)="(https?://[^"]*)"\s+integrity', page)
    assert len(addresses) == len(COPIES)
    assert [one for one in addresses if not one.endswith(tuple(f"/{end}" for end in COPIES))] == []


def test_the_pins_are_exact_and_checked() -> None:
    wanted = json.loads((libraries.HERE / "package.json").read_text())["dependencies"]
    lock = json.loads((libraries.HERE / "package-lock.json").read_text())["packages"]
    assert set(wanted) == set(LICENCES) == {copy.package for copy in COPIES.values()}
    assert {name.removeprefix("node_modules/") for name in lock if name} == set(wanted)
    for name, version in wanted.items():
        pin = lock[f"node_modules/{name}"]
        assert pin["version"] == version
        assert pin["integrity"].startswith("sha512-")
        assert "resolved" not in pin


def test_a_script_that_is_not_known_is_named(copies: Libraries) -> None:
    page = PAGE.replace("jquery-3.3.1", "jquery-4.0.0")
    with pytest.raises(CannotMake, match=r"load https://a\.example/jquery-4\.0\.0\.min\.js, of which no local copy"):
        rewrite(page, copies)


def test_a_copy_with_another_checksum_is_refused(copies: Libraries) -> None:
    with pytest.raises(CannotMake, match=r"copy of https://a\.example/jquery-3\.3\.1\.min\.js is not the file"):
        rewrite(PAGE.format(jquery=checksum(b"something else")), copies)


def test_any_of_several_checksums_will_do() -> None:
    assert holds(f"sha256-other {checksum(b'this')}", b"this")
    assert not holds("sha512-other", b"this")


@pytest.mark.parametrize("part", ["jquery-3.3.1.min.js", "</head>", '<li id="nav-li-"'])
def test_a_page_of_another_form_is_refused(copies: Libraries, part: str) -> None:
    page = PAGE.replace(' integrity="{jquery}"', "").replace(part, "flot/0.8.3/jquery.flot.min.js")
    with pytest.raises(CannotMake, match="not as it was"):
        rewrite(page, copies)


def test_data_becomes_scripts(tmp_path: Path) -> None:
    files = {
        "index.json": '{"benchmarks": {}}\n',
        "graphs/a b/one.json": "[[1, 2.0]]",
        f"{offline.LIBRARIES}/x/y.json": "{}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    data_to_scripts(tmp_path)
    assert (tmp_path / "index.json.js").read_text() == 'document.currentScript.data = {"benchmarks": {}};\n'
    assert not (tmp_path / "index.json").exists()
    listed, far_apart = (tmp_path / "data.js").read_text().splitlines()
    assert listed == 'window.asvData = ["graphs/a b/one.json", "index.json"];'
    assert far_apart == "window.asvFarApart = [];"
    assert (tmp_path / offline.LIBRARIES / "x/y.json").exists()


def test_graphs_whose_values_lie_far_apart_are_listed(tmp_path: Path) -> None:
    graphs: dict[str, list[Any]] = {
        "a/near": [[1, [1.0, None, 19.0]]],
        "a/far": [[1, [1.0, 2.0]], [2, [None, 20.0]]],
        "a/over_machines": [[1, 1.0]],
        "b/over_machines": [[1, 30.0]],
        "a/down_to_nothing": [[1, [0.0, 30.0]]],
        "a/not_measured": [[1, [None]]],
    }
    (tmp_path / "index.json").write_text(json.dumps({"benchmarks": {name.partition("/")[2]: {} for name in graphs}}))
    graphs["a/summary"] = [{"name": "near"}]  # asv's list of benchmarks, which is no graph
    for name, points in graphs.items():
        (tmp_path / "graphs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "graphs" / f"{name}.json").write_text(json.dumps(points))
    data_to_scripts(tmp_path)
    assert 'window.asvFarApart = ["far", "over_machines"];' in (tmp_path / "data.js").read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<img src="https://x.example/i.png">'),
        ("a.html", '<script src="//x.example/s.js"></script>'),
        ("a.html", '<link href="http://x.example/s.css">'),
        ("a.html", '<p style="background: url(https://x.example/i.png)">'),
        ("a.html", "<style>@import 'https://x.example/s.css';</style>"),
        ("a.html", "<script>fetch('https://x.example/d.json')</script>"),
        ("a.svg", '<svg><image xlink:href="https://x.example/i.png"/></svg>'),
        ("a.css", "p { background: url('//x.example/i.png') }"),
        ("a.js", 'load("https://x.example/d.json")'),
    ],
)
def test_a_page_that_refers_to_another_host_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_text(text)
    with pytest.raises(CannotMake, match=rf"deep/{re.escape(name)} refers to another host: (https?:)?//x\.example/"):
        refuse_other_hosts(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<a href="https://x.example">to follow</a> <img src="i.png"> // no comment'),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><style>p {}</style></svg>'),
        ("a.js", "// see https://x.example\nload('d.json')"),
        ("a.json.js", 'document.currentScript.data = {"code": "get(\'https://x.example\')"};'),
        (f"{offline.LIBRARIES}/a.js", 'var site = "https://x.example";'),
    ],
)
def test_what_is_only_text_is_let_be(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    refuse_other_hosts(tmp_path)


def test_without_npm_it_is_said_what_to_install(npm: Any, tmp_path: Path) -> None:
    with pytest.raises(CannotMake, match=r"npm is needed once.*\(Debian, Ubuntu: the package npm\)$"):
        fetch(tmp_path / "cache")


def test_what_npm_says_is_passed_on(npm: Any, tmp_path: Path) -> None:
    npm('echo "npm error code ENOTFOUND" >&2; echo "npm error network no such host" >&2; exit 1')
    with pytest.raises(CannotMake, match=r"npm cannot fetch .*: network no such host$"):
        fetch(tmp_path / "cache")


def test_where_the_scripts_cannot_be_kept_is_said(npm: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotMake, match=r"nowhere to keep their scripts: .*file/cache: Not a directory$"):
        fetch(tmp_path / "file" / "cache")


def test_packages_are_fetched_once_for_each_change_of_the_pins(npm: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    npm('/bin/mkdir node_modules && echo {} >node_modules/.package-lock.json && echo "$@" >>calls')
    for _ in range(2):
        assert fetch(cache) == cache / "node_modules"
    assert len((cache / "calls").read_text().splitlines()) == 1
    assert "--ignore-scripts" in (cache / "calls").read_text()
    (cache / "package-lock.json").write_text("{}")
    fetch(cache)
    assert len((cache / "calls").read_text().splitlines()) == 2


def test_a_site_of_nothing_says_how_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], places: Places
) -> None:
    nothing = replace(places, made=tmp_path / "made", results=(tmp_path / "history",))
    monkeypatch.setattr("asv_benchmarks.site.make.Places", lambda out: replace(nothing, out=out))
    assert main(["--out", str(tmp_path / "site")]) == 0
    page = (tmp_path / "site" / "index.html").read_text()
    said = capsys.readouterr().err
    for command in ("make compare", "make replay", "make bench-history", "make profile"):
        assert f"Not measured yet: <code>{command}</code>" in page
        assert f"not measured yet, `{command}` does\n" in said
    assert said.count("\n") == 4
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [MARKER, "index.html"]


def no_network(cache: Path) -> Path:
    raise CannotMake("npm cannot fetch <anything>")


def test_without_the_libraries_the_rest_is_made(monkeypatch: pytest.MonkeyPatch, places: Places) -> None:
    monkeypatch.setattr("asv_benchmarks.site.make.fetch", no_network)
    parts, problems = make_site(places)
    page = (places.out / "index.html").read_text()
    assert problems == ["npm cannot fetch <anything>"]
    assert '<p class="absent">npm cannot fetch &lt;anything&gt;.</p>' in page
    assert [part.name for part in parts if not part.body] == ["history"]
    assert {path.name for path in places.out.iterdir()} == {
        MARKER,
        "index.html",
        "compare.html",
        "compare.json",
        "replay.html",
        "replay.json",
        "profiles",
    }


def test_what_is_measured_is_shown_with_its_origin(monkeypatch: pytest.MonkeyPatch, places: Places) -> None:
    monkeypatch.setattr("asv_benchmarks.site.make.fetch", no_network)
    make_site(places)
    page = (places.out / "index.html").read_text()
    for words in (
        "Bars missed, peers ahead: 1 of 2 rows",
        "rust takes 1.5 times as long",
        'id="compare"',
        "This was a quick run",
        "0123456789ab-dirty",
        "triradix compare --quick",
        "--requests 60",
        "profiles/rust.svg",
        "A CPU, 2 cores, CPython 3.11",
    ):
        assert words in page, words


def test_what_was_sampled_and_what_was_not_stand_apart(monkeypatch: pytest.MonkeyPatch, places: Places) -> None:
    monkeypatch.setattr("asv_benchmarks.site.make.fetch", no_network)
    parts, _ = make_site(places)
    (body,) = [part.body for part in parts if part.name == "gil"]
    groups = re.findall(r'<th scope="colgroup" colspan="(\d)">(.*?)</th>', body)
    assert groups == [("4", "sampled by py-spy"), ("5", "not profiled")]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", body)
    assert len(rows) == 2 * len(IMPLEMENTATIONS)  # for the fewest and the most threads
    cells = re.findall(r"<td.*?>(.*?)</td>", rows[0])
    assert cells == ["1", "20%", "25%", "60%", "10%", "40%", "100,000", "100", "100 µs", "50%"]


@pytest.mark.parametrize(
    ("file", "command", "content"),
    [
        ("compare.json", "make compare", "{"),
        ("compare.json", "make compare", "[]"),
        ("compare.json", "make compare", '{"systems": []}'),
        ("replay.json", "make replay", '{"trace": null}'),
        ("profiles/summary.json", "make profile", '{"load": {}, "implementations": {"rust": {}}}'),
    ],
)
def test_what_cannot_be_read_is_said_and_the_rest_is_made(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    places: Places,
    tmp_path: Path,
    file: str,
    command: str,
    content: str,
) -> None:
    made = tmp_path / "made"
    shutil.copytree(places.made, made)
    (made / file).write_text(content)
    broken = replace(places, made=made, results=())
    monkeypatch.setattr("asv_benchmarks.site.make.Places", lambda out: replace(broken, out=out))
    assert main(["--out", str(tmp_path / "site")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2  # and that asv has not measured anything
    assert f"`{command}`" in said[1]
    page = (tmp_path / "site" / "index.html").read_text()
    assert page.count('class="absent"') == 2


# The place of the site: nothing of others is lost there, and nothing half made stays.


def all_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def make(place: Path, name: str) -> None:
    with fresh(place) as (made, work):
        (work / "thing").touch()
        (made / name).mkdir()
        (made / name / "page").write_text(name)


def test_a_folder_that_cannot_be_made_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    assert main(["--out", str(file / "site")]) == 1
    assert capsys.readouterr().err == f"site: {file / 'site'} cannot be written: {file}: it is no folder\n"
    assert main(["--out", str(file)]) == 1
    assert capsys.readouterr().err == f"site: {file} is no folder; name another\n"
    assert file.read_text() == "text"


@pytest.mark.parametrize("files", [["thesis.tex"], ["index.html", "photos/one.jpg"], ["index.html", MARKER]])
def test_a_folder_with_something_else_is_let_be(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, files: list[str]
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = all_in(tmp_path)
    assert main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"site: {tmp_path} holds something else than a site of this command; name another folder, or remove it\n"
    )
    assert all_in(tmp_path) == before


@pytest.mark.parametrize("name", ["notes.txt", "one/notes.txt"])
def test_what_is_put_into_a_site_is_let_be(tmp_path: Path, name: str) -> None:
    site = tmp_path / "site"
    make(site, "one")
    (site / name).write_text("mine")
    with pytest.raises(CannotMake, match=f"^{re.escape(str(site))} also holds {name}, which is not of the site and"):
        make(site, "two")
    assert all_in(tmp_path) == {"site", f"site/{name}", "site/one", "site/one/page", f"site/{MARKER}"}


def test_a_site_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()  # an empty folder is as good as none
    for name in ("one", "two"):
        make(site, name)
    assert all_in(tmp_path) == {"site", "site/two", "site/two/page", f"site/{MARKER}"}


def test_a_link_to_a_site_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "far" / "site")
    for name in ("one", "two"):
        make(tmp_path / "link", name)
    assert (tmp_path / "link").is_symlink()
    assert all_in(tmp_path / "far") == {"site", "site/two", "site/two/page", f"site/{MARKER}"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError])
def test_what_does_not_come_to_its_end_changes_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    make(tmp_path / "site", "one")
    before = all_in(tmp_path)
    for place in ("site", "other"):
        with pytest.raises(error), fresh(tmp_path / place) as (made, _):
            (made / "half").touch()
            raise error
    assert all_in(tmp_path) == before


def test_two_at_once_make_a_whole_site_each(tmp_path: Path) -> None:
    site = tmp_path / "site"
    with fresh(site) as (first, work):
        make(site, "second")
        make(tmp_path / "other", "third")
        assert first.is_dir() and work.is_dir()  # no leftovers: their run is alive
        (first / "first").touch()
    assert all_in(site) == {"first", MARKER}
    assert all_in(tmp_path / "other") == {"third", "third/page", MARKER}


def test_what_a_killed_run_has_left_is_removed(tmp_path: Path) -> None:
    left, mine = tmp_path / ".site.killed", tmp_path / ".site.mine"
    for folder in (left, mine):
        (folder / "made" / "asv").mkdir(parents=True)
    (left / MARKER).touch()
    make(tmp_path / "site", "one")
    assert not left.exists() and mine.exists()


def test_what_is_put_there_meanwhile_is_let_be(tmp_path: Path) -> None:
    with pytest.raises(CannotMake), fresh(tmp_path / "site"):
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "thesis.tex").touch()
    assert all_in(tmp_path) == {"site", "site/thesis.tex"}


def test_the_libraries_are_fetched_by_one_process_at_a_time(npm: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    npm("/bin/mkdir node_modules && echo {} >node_modules/.package-lock.json")
    cache.mkdir()
    with ThreadPoolExecutor() as threads:
        with locked(cache):
            waiting = threads.submit(fetch, cache)
            assert not wait([waiting], 0.2).done
            assert not (cache / "node_modules").exists()
        assert waiting.result() == cache / "node_modules"


def test_without_git_it_is_said_what_to_install(npm: Any, places: Places) -> None:
    parts, problems = make_site(places)
    assert problems == [
        "git is needed for what was measured over the commits, and is not on PATH; "
        "install it (Debian, Ubuntu: the package git)"
    ]
    assert [part.name for part in parts if not part.body] == ["history"]


def test_ctrl_c_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("asv_benchmarks.site.make.lead_page", interrupted)
    nothing = Places(tmp_path / "site", tmp_path / "made", results=())
    monkeypatch.setattr("asv_benchmarks.site.make.Places", lambda out: nothing)
    assert main(["--out", str(tmp_path / "site")]) == 130
    assert capsys.readouterr().err == "site: stopped\n"
    assert all_in(tmp_path) == set()


def test_results_of_all_folders_are_gathered(tmp_path: Path) -> None:
    for folder, names, described in (
        ("kept", ("anvil/one", "anvil/two"), {"a": {"params": [["1", "2"]]}, "b": {"params": []}, "gone": {}}),
        ("here", ("anvil/two", "forge/one"), {"b": {"params": [], "code": "new"}, "version": 2}),
    ):
        for name in names:
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            rows = {"a": [[1.0, None], [["1", "2"]]], "b": [[2.0], []]}
            document = {"from": folder, "result_columns": ["result", "params"], "results": rows}
            (tmp_path / folder / f"{name}.json").write_text(json.dumps(document))
        (tmp_path / folder / "benchmarks.json").write_text(json.dumps(described))
    into = tmp_path / "into"
    assert gather([tmp_path / "kept", tmp_path / "here", tmp_path / "none"], into)
    found = {path.relative_to(into).as_posix(): json.loads(path.read_text())["from"] for path in into.glob("*/*.json")}
    assert found == {"anvil/one.json": "kept", "anvil/two.json": "here", "forge/one.json": "here"}
    # No size 2: asv would show an empty graph for what was never measured.
    kept = {"a": {"params": [["1"]]}, "b": {"params": [], "code": "new"}, "version": 2}
    assert json.loads((into / "benchmarks.json").read_text()) == kept
    assert not gather([tmp_path / "none"], into)


def test_results_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "results" / "anvil").mkdir(parents=True)
    (tmp_path / "results" / "anvil" / "one.json").write_text("{")
    with pytest.raises(CannotMake, match=r"^asv's results cannot be read: one\.json: "):
        gather([tmp_path / "results"], tmp_path / "into")


def test_the_headlines_are_drawn_and_every_graph_is_linked(places: Places, tmp_path: Path) -> None:
    pages = places.out / "asv"
    index = publish(places.config, places.results, tmp_path / "work", pages)
    assert index is not None
    part = history_part(index, pages)
    # Two sizes of a hot match, an eviction, memory: of the machine that has measured all of them.
    assert part.body.count("<figure>") == 4
    assert part.body.count('<path class="curve') == 4 * len(IMPLEMENTATIONS)
    assert f"4 benchmarks on {COMMITS} commits" in part.body
    assert "machine=anvil" in part.body
    assert "machine=bellows" not in part.body
    assert "p-leaves=100000" in part.body
    newest = git(places.config.parent, "rev-parse", "HEAD")[:8]
    assert part.made["newest commit"] == newest
    assert "<table" not in part.body
    rows = commits(index, places.config.parent)
    assert rows[0][0] == newest
    assert len(rows) == COMMITS
    assert f'<tr id="{newest}">' in commits_page(rows)
    assert "Change &lt;number&gt; 3" in commits_page(rows)


def test_one_commit_makes_a_table_instead_of_charts(places: Places, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(places.results[-1], results)
    newest = git(places.config.parent, "rev-parse", "HEAD")[:8]
    for path in results.glob("*/*-*.json"):
        if not path.name.startswith(newest):
            path.unlink()
    pages = places.out / "asv"
    index = publish(places.config, [results], tmp_path / "work", pages)
    assert index is not None
    body = history_part(index, pages).body
    assert "4 benchmarks on 1 commit;" in body
    assert "<figure>" not in body
    rows = re.findall(r"<tr>.*?</tr>", body)
    assert len(rows) == 1 + 4
    assert re.findall(r"<td>(.*?)</td>", rows[1]) == ["73.6 µs", "92 µs", "110 µs"]
    assert "page size 1, tokens 1024" in rows[1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"branches": ["elsewhere"]},
            r"^asv looks at the branch elsewhere, which is not in this repository; make it",
        ),
        ({"repo": "nowhere"}, r"^asv looks at the branch main, which is not in"),
    ],
)
def test_what_asv_says_is_passed_on(places: Places, tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    config = places.config.with_name(f"{tmp_path.name}.json")
    config.write_text(json.dumps(json.loads(places.config.read_text()) | change))
    with pytest.raises(CannotMake, match=sentence):
        publish(config, places.results, tmp_path / "work", places.out / "asv")


def test_results_without_their_benchmarks_are_said(places: Places, tmp_path: Path) -> None:
    (tmp_path / "results" / "anvil").mkdir(parents=True)
    (tmp_path / "results" / "anvil" / "one.json").write_text("{}")
    with pytest.raises(CannotMake, match=r"no benchmarks\.json beside them"):
        publish(places.config, [tmp_path / "results"], tmp_path / "work", places.out)


def test_pictures_want_a_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(CannotMake, match="CHROMIUM does not name a Chromium"), chromium():
        pass
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(CannotMake, match=r"/nowhere/chromium does not start"), chromium():
        pass
