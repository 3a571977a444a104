"""What caches count, for Prometheus: as text (`prometheus_text`) or through its client (`triradix.metrics.collector`).

>>> import triradix
>>> from triradix.metrics import prometheus_text
>>> cache = triradix.create("reference")
>>> _ = cache.insert([1, 2, 3], [0, 1, 2])
>>> print(*[line for line in prometheus_text({"main": cache}).splitlines() if "inserted" in line], sep="\\n")
# HELP triradix_inserted_tokens_total Tokens that an insert added.
# TYPE triradix_inserted_tokens_total counter
triradix_inserted_tokens_total{cache="main"} 3
"""

from triradix.metrics.exposition import prometheus_text
from triradix.metrics.latencies import timed

__all__ = ["prometheus_text", "timed"]
