"""Does the suite find faults? Plants them one at a time in a copy of the reference, and runs the fast tests against it.

``python tests/mutants.py`` runs all of them, ``--list`` lists them, ``NAME …`` runs some. Every fault is an exact piece of source that
must stand in its file exactly once: a fault that does not apply any more is an error, not a pass. Ends with 1 if a
fault survives.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
REFERENCE = TESTS.parent / "reference"
QUICK = ["test_cases.py", "test_random_walk.py", "test_nodes.py", "test_results.py", "test_keys.py", "test_create.py"]
HANGS = 120  # seconds of CPU time, of about 10 that all tests take: a fault that makes a call go on for ever is caught


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str


MUTANTS = [
    # What a call touches
    Mutant("match-refreshes-nothing", "tree", "self.write(run, depth, counts.clock)\n", "run.birth_at(depth)\n"),
    Mutant(
        "match-refreshes-whole-run",
        "tree",
        "self.write(run, depth, counts.clock)\n",
        "(run.birth_at(depth), self.write(run, run.end, counts.clock))[0]\n",
    ),
    Mutant(
        "resume-of-nothing-refreshes-nothing",
        "tree",
        "self.write(run, depth, counts.clock)\n",
        "(self.write(run, depth, counts.clock) if depth > start or not start else run.birth_at(depth))\n",
    ),
    Mutant("peek-refreshes", "cache", "self._tree.walk(run, key.base, key, goal)[1]", "self._tree.match(run, key.base, key, goal)[0]"),
    Mutant("insert-does-not-refresh", "tree", "self.write(run, depth, counts.clock, priority, hits)", "self.write(run, depth, 0, priority, hits)"),
    Mutant("priority-is-min", "tree", "mark.priority = max(mark.priority, priority)", "mark.priority = min(mark.priority, priority)"),
    Mutant("inserted-len-ignored", "tree", "if hits and chunk > 0:", "if hits and chunk < 0:"),
    Mutant("inserted-len-one-page-short", "tree", "min(depth, inserted - inserted % self.page_size)", "min(depth, inserted - inserted % self.page_size - self.page_size)"),
    Mutant("match-counts-as-hit", "tree", "self.write(run, depth, counts.clock)\n", "self.write(run, depth, counts.clock, hits=1)\n"),
    # Folding and pruning
    Mutant("hits-not-folded", "marks", "self.hits += gone.hits", "self.hits += 0"),
    Mutant("last-not-folded", "marks", "self.last = max(self.last, gone.last)", "self.last = max(self.last, 0)"),
    Mutant("priority-not-folded", "marks", "self.priority = max(self.priority, gone.priority)", "self.priority = max(self.priority, INT64_MIN)"),
    Mutant("prune-forgets-hits", "marks", "and not self.hits\n", "and True\n"),
    Mutant("prune-forgets-locks", "marks", "and not self.locks\n", "and True\n"),
    Mutant("prune-forgets-births", "marks", "self.birth is deeper.birth\n", "True\n"),
    Mutant("prune-forgets-priority", "marks", "and self.priority <= deeper.priority\n", "and True\n"),
    # Pages
    Mutant("match-cuts-no-page", "tree", "depth -= depth % self.page_size", "depth -= 0"),
    Mutant("key-not-cut-to-pages", "cache", "base + units - units % tree.page_size, namespace", "base + units, namespace"),
    Mutant("bigram-counts-tokens", "cache", "units = max(len(words) // 4 - tree.overlap, 0)", "units = len(words) // 4"),
    Mutant("bigram-join-unchecked", "cache", "and words[:4] != run.span.last_token(base)", "and False"),
    Mutant("wrong-slots-stored", "tree", "slots[depth - start : goal - start].copy()", "slots[: goal - depth].copy()"),
    Mutant("slots-not-copied", "tree", "slots[depth - start : goal - start].copy()", "slots[depth - start : goal - start]"),
    Mutant("path-from-a-page", "cache", "path_slots(self._find(node), start, node", "path_slots(self._find(node), start - start % self.page_size, node"),
    # Namespaces
    Mutant("salt-forgotten", "tree", "space = self.spaces.get(namespace)", "space = self.spaces.get((namespace[0], None))"),
    Mutant("empty-space-kept", "tree", "del self.spaces[space.namespace]", "pass"),
    Mutant("evict-namespace-takes-others", "eviction", "source = space or tree.queue.smallest()", "source = tree.queue.smallest()"),
    Mutant("start-of-any-namespace", "cache", "if extra_key is not None and namespace != node._namespace:", "if False:"),
    # Eviction
    Mutant("slots-sorted", "eviction", "pages[::-1].reshape(-1)\n", "pages[::-1].reshape(-1).copy()\n    reversed_slots.sort()\n"),
    Mutant("first-page-first", "eviction", "pages[::-1].reshape(-1)\n", "pages.reshape(-1)\n"),
    Mutant("last-slot-first", "eviction", "pages[::-1].reshape(-1)\n", "slots[::-1].copy()\n"),
    Mutant("overshoot", "eviction", "top = max(top, run.end - pages * tree.page_size)", "pages += 0"),
    Mutant("no-cascade", "eviction", "        else:\n            tree.offer(parent)\n", "        else:\n            pass\n"),
    Mutant("cut-run-not-offered", "eviction", "gone.end = top\n        tree.offer(run)\n", "gone.end = top\n"),
    Mutant("lfu-without-recency", "eviction", "(mark.hits, mark.last)", "(mark.hits, -mark.last)"),
    Mutant("slru-off-by-one", "eviction", "mark.hits >= slru_threshold", "mark.hits > slru_threshold"),
    Mutant("fifo-by-use", "eviction", "(mark.birth.creation,)", "(mark.last,)"),
    Mutant("filo-by-use", "eviction", "(-mark.birth.creation,)", "(-mark.last,)"),
    Mutant("mru-is-lru", "eviction", "(-mark.last,)", "(mark.last,)"),
    Mutant("evicted-not-counted", "eviction", "tree.counts.evicted_tokens += freed", "tree.counts.evicted_tokens += 0"),
    # Handles
    Mutant("handle-survives-eviction", "births", "run if run.birth_at(depth) is birth else None", "run"),
    Mutant("birth-never-ends", "tree", "birth.anchor = None\n        self.counts.births -= 1", "self.counts.births -= 1"),
    Mutant("anchor-not-moved-up", "eviction", "birth.anchor = into", "pass"),
    Mutant("split-moves-all-anchors", "tree", "self._move_anchors(upper.marks, run, upper, run.marks[0].birth)", "self._move_anchors(upper.marks, run, upper, None)"),
    Mutant("handles-equal-by-place", "results", "self._birth is other._birth\n", "(self._birth is None) is (other._birth is None)\n"),
    Mutant("hash-by-identity", "results", "hash((self._birth and self._birth.creation, self._length, self._namespace))", "id(self)"),
    Mutant("roots-survive-reset", "tree", "self.epoch = object()", "self.epoch = Counts"),
    Mutant("foreign-node-accepted", "cache", "not isinstance(node, Node) or node._cache is not self", "not isinstance(node, Node)"),
    # Locks
    Mutant("lock-not-inherited", "tree", "upper.locked_end = min(run.locked_end, depth)", "upper.locked_end = run.start"),
    Mutant("locked-child-forgotten", "tree", "upper.locked_children = int(run.locked_end > depth)", "upper.locked_children = 0"),
    Mutant("lock-lost-in-merge", "tree", "run.locked_end = upper.locked_end\n", "pass\n"),
    Mutant("lock-stops-at-run", "locks", "if locked_before or run.parent is None or run.parent.is_root:", "if True:"),
    Mutant("over-release-accepted", "locks", "if mark.end != depth or not mark.locks:", "if mark.end != depth:"),
    Mutant("unlocked-not-offered", "locks", "        tree.offer(run)\n", "        pass\n"),
    Mutant("protected-not-counted-down", "locks", "tree.counts.protected -= freed", "tree.counts.protected -= 0"),
    # Hashes and events
    Mutant("wrong-parent-hash", "events", "// tree.page_size - 1]", "// tree.page_size]"),
    Mutant("digests-not-split", "tree", "run.digests[:pages], run.digests[pages:]", "run.digests[:pages], run.digests"),
    Mutant("bigram-hash-swapped", "hashing", "(tokens[:-1], tokens[1:])", "(tokens[1:], tokens[:-1])"),
    Mutant("seed-counts-characters", "hashing", "len(text).to_bytes", "len(part).to_bytes"),
    Mutant("event-order", "eviction", "digests += reversed(run.digests[(top - run.start) // tree.page_size :])", "digests += run.digests[(top - run.start) // tree.page_size :]"),
    Mutant("event-without-namespace", "events", "None if namespace == DEFAULT_NAMESPACE else namespace", "None"),
    Mutant("events-not-cleared", "cache", "self._tree.events = []", "pass"),
    Mutant("reset-says-nothing", "cache", "old.events.append(AllBlocksCleared())", "pass"),
    # Arguments, statistics, results
    Mutant("failed-insert-counts", "cache", "slots = _slots(values, len(words) // 4)\n", "self._tree.counts.inserts += 1\n        slots = _slots(values, len(words) // 4)\n        self._tree.counts.inserts -= 1\n"),
    Mutant("failed-match-ticks", "cache", 'raise ValueError("with bigram', 'tree.counts.lookups += 1\n                raise ValueError("with bigram'),
    Mutant("values-length-unchecked", "cache", "if given != tokens:", "if given < tokens:"),
    Mutant("threads-unchecked", "cache", "    as_threads(threads)\n", ""),
    Mutant("hit-tokens-from-root", "tree", "counts.hit_tokens += depth - start", "counts.hit_tokens += depth"),
    Mutant("lookup-tokens-from-root", "tree", "counts.lookup_tokens += goal - start", "counts.lookup_tokens += goal"),
    Mutant("lengths-writable", "results", "self._lengths.flags.writeable = False", "pass"),
    Mutant("stale-node-peeks", "cache", "if node._epoch is self._tree.epoch:", "if True:"),
]  # fmt: skip


class Stale(Exception):
    """A fault that does not apply to the source as it is."""


def plant(mutant: Mutant | None, folder: Path) -> None:
    """A copy of the reference under the name ``mutant``, with the fault in it."""
    package = folder / "mutant"
    shutil.copytree(REFERENCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in package.glob("*.py"):
        source = path.read_text("utf-8")
        if mutant is not None and path.stem == mutant.file:
            source = planted(mutant, source)
        path.write_text(source.replace("triradix.reference", "mutant"), "utf-8")


def planted(mutant: Mutant, source: str) -> str:
    if source.count(mutant.old) != 1:
        raise Stale(f"{mutant.name}: stands {source.count(mutant.old)} times in {mutant.file}.py: {mutant.old!r}")
    return source.replace(mutant.old, mutant.new)


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (HANGS, HANGS + 10))


def first_failure(mutant: Mutant | None) -> str | None:
    """The test that catches the fault; None if all pass."""
    with tempfile.TemporaryDirectory() as name:
        plant(mutant, Path(name))
        command = [
            sys.executable, "-m", "pytest", *(str(TESTS / file) for file in QUICK), "-x", "-q", "--tb=no", "-p", "no:cacheprovider",
            "-p", "no:xdist", "--rootdir", str(TESTS.parent), "--implementation", "mutant:RadixCache", "--walks", "150", "--no-shrink",
            "--deselect", str(TESTS / "test_create.py::test_nothing_stands_in_for_what_is_missing"),
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([name, os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=name, preexec_fn=limit_cpu)
    if done.returncode == -signal.SIGXCPU:
        return f"a call that goes on after {HANGS} s"
    if done.returncode == 0:
        return None
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode != 1 or not told:
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return told[0].partition("::")[2][:90]


def run(mutants: Iterable[Mutant], jobs: int) -> list[Mutant]:
    """Those that survive."""
    survivors = []
    mutants = list(mutants)
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, caught in zip(mutants, pool.map(first_failure, mutants), strict=True):
            print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant.name:36} {caught or ''}", flush=True)
            if not caught:
                survivors.append(mutant)
    return survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--list", action="store_true", help="name them and do nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    if options.list:
        print(*(mutant.name for mutant in chosen), sep="\n")
        return 0
    for mutant in chosen:
        planted(mutant, (REFERENCE / f"{mutant.file}.py").read_text("utf-8"))
    sound = first_failure(None)
    if sound is not None:
        print(f"the reference without any fault fails {sound}")
        return 1
    survivors = run(chosen, options.jobs)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} faults caught")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
