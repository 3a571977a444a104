"""Which benchmarks a profile runs: shell patterns for ``module.Class.method(parameter, parameter, …)``.

The full profile runs everything. The other two take from it, so that a figure means the same in each.
"""

from fnmatch import translate

HISTORY = (
    "match.HotMatch.*(*, 1, 1024)",
    "match.HotMatch.*(*, 1, 131072)",
    "match.ResumedMatch.*(*, 1, 131072)",
    "match.SharedPromptMatch.*(*, 1, 2048)",
    "match.FanOutMatch.*(*, 1, 50000)",
    "insert.FreshInsert.*(*, 1, 1024)",
    "insert.SharedPromptInsert.*(*, 1, 2048)",
    "evict.EvictByPolicy.*(*, 'lru', 100000)",
    "lock.Lock.*(*, 64)",
    "batch.BatchMatch.*(*, 10000, 1)",
    "keys.KeyForm.*(*, 'list', 8192)",
    "replay.TraceReplay.*(*, 'built-in workload')",
    "memory.BytesPerToken.*(*, 'counted')",
    "memory.BytesPerNode.*(*, 'counted')",
    "threads.GilHeld.*(*, 'batches of 10,000 keys')",
    "threads.ThreadScaling.*(*, 'no writes')",
)
"""The headlines, for each of the three: what is measured over many commits, and kept."""

SHORT = (
    *HISTORY,
    "match.HotMatch.*(*, 1, 128)",
    "match.HotMatch.*(*, 16, *)",
    "match.ColdMatch.*(*, 1, 256)",
    "match.Miss.*(*, 1, *)",
    "match.SharedPromptMatch.*(*, 16, 2048)",
    "match.NestedMatch.*(*)",
    "match.FanOutMatch.*(*, 1, 1)",
    "insert.FreshInsert.*(*, 16, 8192)",
    "insert.DuplicateInsert.*(*, 1, 1024)",
    "insert.ResumedInsert.*(*, 1, 8192)",
    "evict.EvictByPolicy.*(*, 10000)",
    "evict.FullCache.*(*, 10000)",
    "lock.Unlock.*(*, 64)",
    "batch.BatchMatch.*(*, 10000, 2)",
    "batch.WaitingQueue.*(*)",
    "keys.KeyForm.*(*, 128)",
    "hashes.InsertWithEvents.*(*, 16, *)",
    "hashes.BlockHashes.*(*, 16, *)",
    "memory.BytesPerToken.*(*)",
    "collector.GcPauses.track_longest_pause(*)",
    "threads.ThreadScaling.*(*, '1 write in 20')",
    "threads.SharedCache.*(*, 2, '1 write in 20')",
)
"""Every kind of work once: for "did my change make it slower?"."""

PROFILES: dict[str, tuple[str, ...]] = {"full": ("*",), "short": SHORT, "history": HISTORY}


def regexes(patterns: tuple[str, ...]) -> list[str]:
    """What asv's ``--bench`` takes: it searches anywhere in the name, a pattern stands for the whole."""
    return ["^" + translate(pattern) for pattern in patterns]
