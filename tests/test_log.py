"""What the trees tell under TRIRADIX_LOG: the same kinds of things in the same words, and nothing unless asked."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import triradix
from triradix import IntegrityError, log

LINE = re.compile(r"^\d\d:\d\d:\d\d (\w+) +(triradix\.\w+\.\w+): (.*)$")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    log.configure("off", "stderr")


@contextmanager
def handled(handle: Callable[[logging.LogRecord], bool]) -> Iterator[None]:
    """Everything is told to ``handle``."""
    logger = logging.getLogger("triradix")
    handler = logging.Handler()
    handler.handle = handle  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(1)
    log.configure("trace", "logging")
    try:
        yield
    finally:
        log.configure("off", "stderr")
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def busy(cache: Any) -> None:
    """Branches, reads in the middle, evictions that leave sparse memory and only children, a lock, a reset."""
    for i in range(60):
        cache.insert([i, *range(1000)], list(range(1001)))
    for i in range(0, 60, 2):
        cache.insert([i, *range(400), 7], list(range(402)))
    for _ in range(500):
        cache.evict(100)
    cache.reset()
    cache.insert([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    node = cache.insert([1, 2, 9], [0, 1, 2]).node
    cache.inc_lock_ref(node)
    cache.evict(100)
    cache.reset()


def faulty(cache: Any) -> None:
    """A check that fails, and where there is such a thing an internal error."""
    cache._miscount()
    with pytest.raises(IntegrityError):
        cache.check()
    cache.reset()
    if hasattr(cache, "_fail"):
        with pytest.raises(IntegrityError):
            cache._fail(changing=True)
        with pytest.raises(IntegrityError, match="an earlier call"):
            cache.evict(1)  # tells nothing new
        cache.reset()
    cache.check()


def of(tree: str) -> list[log.Kind]:
    """What that tree tells of: internal errors are Rust's alone (`test_internal_errors.py` says why)."""
    return [kind for bit, kind in enumerate(log.KINDS) if tree == "rust" or 1 << bit != log.FAILED]


def told(captured: str) -> list[tuple[str, str, str]]:
    found = [LINE.match(line) for line in captured.splitlines()]
    assert all(found), captured
    return [(line[1], line[2], line[3]) for line in found if line]


def test_silent_unless_asked(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    cache = triradix.create(own_implementation)
    busy(cache)
    faulty(cache)
    assert capsys.readouterr() == ("", "")


def test_every_kind_of_thing_is_told(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("trace")
    cache = triradix.create(own_implementation)
    busy(cache)
    faulty(cache)
    lines = told(capsys.readouterr().err)
    assert {name.split(".")[1] for _, name, _ in lines} == {own_implementation}
    for kind in of(own_implementation):
        pattern = re.escape(kind.text).replace(r"\{0\}", r"\d+").replace(r"\{1\}", r"\d+")
        level, name = log.LEVELS[kind.level].upper(), f"triradix.{own_implementation}.{kind.part}"
        assert any(line[:2] == (level, name) and re.fullmatch(pattern, line[2]) for line in lines), kind


def test_the_numbers(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("trace")
    cache = triradix.create(own_implementation)
    cache.insert([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    cache.insert([1, 2, 7], [0, 1, 2])
    cache.evict(2)
    cache.reset()
    text = [line for _, _, line in told(capsys.readouterr().err)]
    assert text[0] == "made a run of 5 units below depth 0"
    assert "split a run at depth 2; 3 units stay below" in text
    assert "made a run of 2 units below depth 0" in text
    assert "made a run of 1 units below depth 2" in text
    assert "evicted 2 units; 4 are left" in text
    assert text[-1] == "reset: 4 units dropped"
    cache.insert([1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    cache.insert([1, 2, 9], [0, 1, 2])
    capsys.readouterr()
    cache.evict(1)  # of the older branch, three units long
    cache.evict(2)
    text = [line for _, _, line in told(capsys.readouterr().err)]
    assert [line for line in text if line.startswith("evicted")] == [
        "evicted 1 units; 5 are left",
        "evicted 2 units; 3 are left",
    ]
    assert "gave back a run below depth 2" in text
    assert "merged 2 units with the 1 below them" in text


def test_as_many_runs_as_it_counts(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is told to be made and given back is what `stats` counts."""
    log.configure("trace")
    cache = triradix.create(own_implementation)
    for i in range(60):
        cache.insert([i % 7, i % 5, *range(i)], list(range(i + 2)))
        cache.match_prefix([i % 7, i % 5, *range(i // 2)])
        if i % 9 == 0:
            cache.evict(30)
    empty = triradix.create(own_implementation).stats()["nodes"]
    cache.insert([1], [1])  # hands over what matches left
    text = [line for _, _, line in told(capsys.readouterr().err)]
    made = sum(line.startswith("made") for line in text)
    gone = sum(line.startswith("gave") for line in text)
    roots = cache.stats()["nodes"] - (made - gone) - empty
    assert roots in (0, 1), (made, gone, cache.stats())
    assert sum(line.startswith("split") for line in text) > 5


@pytest.mark.parametrize(
    ("levels", "parts"),
    [
        ("{tree}.eviction=debug", {"eviction"}),
        ("{tree}=debug,{tree}.merge=off", {"tree", "split", "eviction", "span"}),
        ("trace,{tree}=info", {"tree", "eviction"}),
        (" {tree} = INFO , off", {"tree", "eviction"}),
        ("error", set()),
        ("warn", {"eviction"}),
        ("warn,{tree}.eviction=error", set()),
        ("{other}=trace", set()),
    ],
)
def test_levels_of_parts(
    own_implementation: str, levels: str, parts: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = next(tree for tree in log.TREES if tree != own_implementation)
    log.configure(levels.format(tree=own_implementation, other=other))
    busy(triradix.create(own_implementation))
    assert {name.split(".")[2] for _, name, _ in told(capsys.readouterr().err)} == parts


def test_an_eviction_that_locks_keep_short(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("warn")
    cache = triradix.create(own_implementation, page_size=2)

    def evicted(*arguments: Any) -> list[str]:
        (cache.evict if len(arguments) == 1 else cache.evict_namespace)(*arguments)
        return [f"{level} {text}" for level, _, text in told(capsys.readouterr().err)]

    locked = cache.insert([1, 2, 3, 4], [0, 1, 2, 3], extra_key="mine").node
    cache.inc_lock_ref(locked)
    cache.insert([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], extra_key="mine")
    assert evicted(1) == []  # a whole page: more than enough
    assert evicted(1) == ["WARN evicted 0 of the 1 units that were asked for: locks hold the rest"]
    cache.insert([1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5], extra_key="mine")
    assert evicted("mine", 9) == ["WARN evicted 2 of the 9 units that were asked for: locks hold the rest"]
    cache.insert([8, 9], [6, 7])
    assert evicted(None, 9) == []  # nothing there is locked: the namespace had no more
    assert evicted("nobody's", 9) == []
    assert evicted("mine", None) == []
    assert evicted(2**63 - 1) == evicted(2**70) == []
    assert evicted(0) == []
    cache.dec_lock_ref(locked)
    assert evicted(100) == []
    cache.check()


def test_what_is_the_fault_of_a_tree(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("error")
    cache = triradix.create(own_implementation)
    faulty(cache)
    errors = [kind for kind in of(own_implementation) if kind.level == log.ERROR]
    tree = f"triradix.{own_implementation}"
    assert told(capsys.readouterr().err) == [("ERROR", f"{tree}.{kind.part}", kind.text) for kind in errors]
    # What is the caller's to handle is not.
    with pytest.raises(TypeError):
        cache.insert("text", [1])
    node = cache.insert([1], [1]).node
    cache.reset()
    with pytest.raises(triradix.StaleNodeError):
        cache.inc_lock_ref(node)
    assert capsys.readouterr().err == ""


def test_through_logging(
    own_implementation: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    log.configure("trace", "logging")
    caplog.set_level(1)
    cache = triradix.create(own_implementation)
    busy(cache)
    faulty(cache)
    assert capsys.readouterr().err == ""
    assert {record.name for record in caplog.records} == {f"triradix.{own_implementation}.{part}" for part in log.PARTS}
    told_at = {(record.name.split(".")[2], record.levelno) for record in caplog.records}
    levels = {log.ERROR: 40, log.WARN: 30, log.INFO: 20, log.DEBUG: 10, log.TRACE: 5}
    assert told_at == {(kind.part, levels[kind.level]) for kind in of(own_implementation)}


def test_a_handler_may_use_the_cache_and_may_raise(own_implementation: str) -> None:
    cache = triradix.create(own_implementation)
    seen: list[int] = []

    def nosy(record: logging.LogRecord) -> bool:
        seen.append(cache.total_size())
        cache.check()
        raise OSError("the disk is full")

    with handled(nosy):
        busy(cache)
    assert len(seen) > 100
    assert cache.total_size() == 0


def test_what_is_asked_for_no_more_is_not_told(own_implementation: str) -> None:
    """Also what was noted before: here by a call whose first note turns the log off."""
    told: list[str] = []

    def enough(record: logging.LogRecord) -> bool:
        told.append(record.getMessage())
        log.configure("off", "logging")
        return True

    with handled(enough):
        cache = triradix.create(own_implementation)
        log.configure("off")
        cache.insert([1, 2, 3], [1, 2, 3])
        log.configure("trace", "logging")
        cache.insert([1, 2, 4], [1, 2, 4])  # splits a run and makes another
    assert len(told) == 1


def test_answers_are_the_same_with_a_log(own_implementation: str, capsys: pytest.CaptureFixture[str]) -> None:
    from functools import partial

    from triradix.doctor.self_test import ANSWERS, walk

    log.configure("trace")
    assert walk(partial(triradix.create, own_implementation)) == ANSWERS
    assert told(capsys.readouterr().err)


WRONG = [
    ("loud", "TRIRADIX_LOG: 'loud' is no level; allowed: off, error, warn, info, debug, trace"),
    (
        "c=debug",
        "TRIRADIX_LOG: nothing is called 'c'; allowed: reference, cython, rust, and of each the parts "
        "tree, split, merge, eviction, span, node, check, such as rust.tree",
    ),
    ("rust.=debug", "TRIRADIX_LOG: nothing is called 'rust.'"),
    ("=debug", "TRIRADIX_LOG: nothing is called ''"),
    ("rust.core=debug", "TRIRADIX_LOG: nothing is called 'rust.core'"),
    ("rust=", "TRIRADIX_LOG: '' is no level"),
]


def test_of_two_that_configure_at_once_one_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the other comes while the first tells the trees, as a signal handler or another thread may."""
    masks: dict[str, int] = {}
    others = ["trace"]

    def listener(tree: str, mask: int) -> None:
        if others:
            log.configure(others.pop(), "stderr")
        masks[tree] = mask

    monkeypatch.setattr(log, "_listeners", {tree: partial(listener, tree) for tree in log.TREES})
    log.configure("warn", "logging")
    assert {log.shown(tree) for tree in log.TREES} == {"trace"}
    assert set(masks.values()) == {(1 << len(log.KINDS)) - 1}


@pytest.mark.parametrize(("levels", "complaint"), WRONG)
def test_what_is_no_level(levels: str, complaint: str) -> None:
    log.configure("rust=debug")
    with pytest.raises(ValueError, match=re.escape(complaint)):
        log.configure(levels)
    assert log.shown("rust") == "debug"
    with pytest.raises(ValueError, match="TRIRADIX_LOG_TO is 'syslog'; allowed: stderr, logging"):
        log.configure("trace", "syslog")
    assert log.shown("rust") == "debug"


@pytest.mark.parametrize("wrong", [5, b"debug", ["debug"], ("debug",), True, 1.0])
def test_what_is_no_text(wrong: Any) -> None:
    log.configure("rust=debug")
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=f"levels must be a str or None, not {kind}"):
        log.configure(wrong)
    with pytest.raises(TypeError, match=f"to must be a str or None, not {kind}"):
        log.configure("trace", wrong)
    assert log.shown("rust") == "debug"


def test_every_part_that_is_allowed(own_implementation: str) -> None:
    for part in log.PARTS:
        log.configure(f"{own_implementation}.{part}=trace")
        assert log.shown(own_implementation) == f"off ({part} trace)"


CALLS: dict[str, tuple[str, Any]] = {
    "insert": ("made", lambda cache: cache.insert([1, 2, 8], [7, 8, 9], "a")),
    "evict": ("evicted", lambda cache: cache.evict(2)),
    "evict that is short": ("locks hold", lambda cache: cache.evict(100)),
    "evict_namespace": ("evicted", lambda cache: cache.evict_namespace("a")),
    "reset": ("reset", lambda cache: cache.reset()),
    "check": ("broken", lambda cache: (cache._miscount(), cache.check())),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_a_handler_may_not_drop(own_implementation: str, call: str, error: type[BaseException]) -> None:
    """It comes out of the call, which is done: the cache is that of the same calls without a handler."""
    caught, run = CALLS[call]
    caches = [triradix.create(own_implementation) for _ in range(2)]
    for cache in caches:
        cache.inc_lock_ref(cache.insert([1, 2, 3, 4], [0, 1, 2, 3]).node)
        for end in (5, 6):
            cache.insert([1, 2, end, 9], [0, 1, end, end + 10], "a")
    one, twin = caches
    heard: list[str] = []

    def interrupt(record: logging.LogRecord) -> bool:
        heard.append(record.getMessage())
        if caught in heard[-1]:
            raise error(3)
        return True

    if call == "check":
        with pytest.raises(IntegrityError):
            run(twin)
    else:
        run(twin)
    with handled(interrupt), pytest.raises(error) as raised:
        run(one)
    assert sum(caught in line for line in heard) == 1
    assert raised.value.args == (3,)
    if sys.version_info >= (3, 11):
        assert raised.value.__notes__ == [log.DONE]
    if call == "check":
        return  # both are broken
    assert sorted(one.all_indices()) == sorted(twin.all_indices())
    counts = [{**cache.stats(), "memory_bytes": 0} for cache in (one, twin)]
    assert counts[0] == counts[1]
    one.check()
    assert one.insert([1, 2, 8, 9], [7, 8, 9, 10], "a").length == twin.insert([1, 2, 8, 9], [7, 8, 9, 10], "a").length
    assert one.evict(3).indices.tolist() == twin.evict(3).indices.tolist()


def test_what_a_handler_may_not_drop_when_the_call_has_failed() -> None:
    """Then nothing says that it is done, and the cache says what is left of it."""
    cache: Any = triradix.create("rust")

    def interrupt(record: logging.LogRecord) -> bool:
        raise KeyboardInterrupt

    with handled(interrupt), pytest.raises(KeyboardInterrupt) as raised:
        cache._fail(changing=True)
    assert not getattr(raised.value, "__notes__", [])
    with pytest.raises(IntegrityError, match="an earlier call"):
        cache.evict(1)
    cache.reset()
    cache.check()


def environment(implementation: str, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script = f"import triradix\ncache = triradix.create({implementation!r})\n{script}"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **variables}
    )


def test_the_environment(own_implementation: str) -> None:
    script = "cache.insert([1, 2], [3, 4]); cache.reset()"
    done = environment(own_implementation, script, TRIRADIX_LOG="info")
    assert [line[1:] for line in told(done.stderr)] == [
        (f"triradix.{own_implementation}.tree", "reset: 2 units dropped")
    ]
    script = f"import logging; logging.basicConfig(level=10, format='%(name)s %(message)s')\n{script}"
    done = environment(own_implementation, script, TRIRADIX_LOG="info", TRIRADIX_LOG_TO="logging")
    assert done.stderr == f"triradix.{own_implementation}.tree reset: 2 units dropped\n"
    done = environment(own_implementation, script, TRIRADIX_LOG="")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_wrong_environment(own_implementation: str) -> None:
    done = environment(own_implementation, "", TRIRADIX_LOG="debgu")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ValueError: TRIRADIX_LOG: 'debgu' is no level; allowed: off, ")


def test_what_is_shown() -> None:
    log.configure("rust=debug,rust.node=trace,cython.eviction=info")
    assert [log.shown(tree) for tree in log.TREES] == ["off", "off (eviction info)", "debug (node trace)"]
