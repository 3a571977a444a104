"""From the lines of all runs to what can be said of them: medians with their ranges, and which differences are real.

What counts as a difference from end to end is decided here, from the figures, and by one rule. At a point (a workload,
at a concurrency) the noise is the widest range that any one cache has over its repeats, as a ratio of its largest
figure to its smallest. Two caches are apart there if the ratio of their medians is beyond that, and their
repeats do not overlap. Fewer than three repeats have no range to speak of, so nothing is claimed from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from triradix.compare.statistics import paired_ratio

Line = dict[str, Any]

END_TO_END = ("requests/s", "TTFT p50 ms", "TTFT p99 ms")
IN_ENGINE = ("cache µs per request", "share", "share without model", "cache µs per step, p99")
PEER, WITHOUT = "sglang-rust", "none"
"""What the others are compared with: SGLang's default, and no cache at all."""
LEAST_REPEATS = 3


def summed_up(runs: Sequence[Line], calls: Sequence[Line]) -> dict[str, Any]:
    return {
        "runs": len(runs),
        "points": list(_points(runs)),
        "verdicts": list(_verdicts(runs)),
        "ratios": list(_ratios(runs)),
        "calls": list(_calls(runs, calls)),
        "load": _load(runs),
        "had a core": _spread([line["busy s"] / line["wall s"] for line in runs]),
    }


def _load(runs: Sequence[Line]) -> dict[str, float] | None:
    """Of the whole machine, a minute's average, before an engine was started: what else ran."""
    return _spread([line["load before the engine"] for line in runs])


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    return {"least": min(values), "median": median(values), "most": max(values)} if values else None


def _grouped(lines: Sequence[Line], *names: str) -> dict[tuple[Any, ...], list[Line]]:
    groups: dict[tuple[Any, ...], list[Line]] = defaultdict(list)
    for line in lines:
        groups[tuple(line[name] for name in names)].append(line)
    return dict(sorted(groups.items()))


def _points(runs: Sequence[Line]) -> Iterator[Line]:
    """One for each workload, concurrency and cache: of each figure the median, the least and the most."""
    for (workload, concurrency, cache), group in _grouped(runs, "workload", "concurrency", "cache").items():
        point: Line = {"workload": workload, "concurrency": concurrency, "cache": cache, "repeats": len(group)}
        for name in (*END_TO_END, *IN_ENGINE, "hit rate"):
            values = [line[name] for line in group]
            point[name] = {"median": median(values), "least": min(values), "most": max(values)}
        yield point


def _verdicts(runs: Sequence[Line]) -> Iterator[Line]:
    """For each workload and figure from end to end, and each cache against another: where they are apart."""
    caches = sorted({line["cache"] for line in runs})
    pairs = [(cache, other) for other in (WITHOUT, PEER) if other in caches for cache in caches if cache != other]
    for (workload,), group in _grouped(runs, "workload").items():
        points = _grouped(group, "concurrency")
        for name in END_TO_END:
            for cache, other in pairs:
                if (cache, other) == (WITHOUT, PEER):
                    continue  # said the other way round
                found = [_apart(at[0], lines, name, cache, other) for at, lines in points.items()]
                told = [each for each in found if each is not None]
                yield {
                    "workload": workload,
                    "figure": name,
                    "cache": cache,
                    "against": other,
                    "points": len(told),
                    "apart": [each for each in told if each["apart"]],
                }


def _apart(concurrency: int, lines: Sequence[Line], name: str, cache: str, other: str) -> Line | None:
    """None if there are too few repeats of any cache to know the noise."""
    values = {each: [line[name] for line in group] for (each,), group in _grouped(lines, "cache").items()}
    if cache not in values or other not in values or min(map(len, values.values())) < LEAST_REPEATS:
        return None
    noise = max(max(each) / min(each) for each in values.values())
    mine, theirs = values[cache], values[other]
    ratio = median(mine) / median(theirs)
    overlap = min(mine) <= max(theirs) and min(theirs) <= max(mine)
    apart = max(ratio, 1 / ratio) > noise and not overlap
    return {"concurrency": concurrency, "ratio": ratio, "noise": noise, "apart": apart}


def _ratios(runs: Sequence[Line]) -> Iterator[Line]:
    """Time in the cache for a request against SGLang's default, over all pairs of runs of one point and repeat."""
    for (workload,), group in _grouped(runs, "workload").items():
        values: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
        for line in group:
            values[line["cache"]][line["concurrency"], line["repeat"]] = line["cache µs per request"]
        theirs = values.get(PEER, {})
        for cache, ours in values.items():
            both = sorted(ours.keys() & theirs.keys())
            if cache != PEER and both:
                ratio, low, high = paired_ratio([ours[at] for at in both], [theirs[at] for at in both])
                yield {
                    "workload": workload,
                    "cache": cache,
                    "ratio": ratio,
                    "low": low,
                    "high": high,
                    "pairs": len(both),
                }


def _calls(runs: Sequence[Line], calls: Sequence[Line]) -> Iterator[Line]:
    """One for each workload, cache and call: medians over the runs, and its part of all the time in that cache."""
    requests = {
        key: sum(line["requests"] for line in group) for key, group in _grouped(runs, "workload", "cache").items()
    }
    for (workload, cache), all_of_it in _grouped(calls, "workload", "cache").items():
        whole = sum(line["total µs"] for line in all_of_it)
        for (call,), group in _grouped(all_of_it, "call").items():
            total = sum(line["total µs"] for line in group)
            yield {
                "workload": workload,
                "cache": cache,
                "call": call,
                "per request": sum(line["count"] for line in group) / requests[workload, cache],
                "part": total / whole,
                **{name: median(line[name] for line in group) for name in ("mean µs", "p50 µs", "p99 µs")},
            }
