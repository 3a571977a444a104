"""For `prometheus_client`: ``REGISTRY.register(CacheCollector({"main": cache}))``. An extra: ``triradix[metrics]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from triradix.metrics.families import Family, families, known
from triradix.protocol import PrefixCache

try:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    raise ImportError(
        "triradix.metrics.collector needs prometheus_client: pip install 'triradix[metrics]' "
        "(triradix.metrics.prometheus_text does without)"
    ) from error


class CacheCollector(Collector):
    """Asks caches for their counts whenever Prometheus does; in between it costs nothing.

    ``caches``: by name, which becomes the label ``cache``. The mapping is read anew each time, so caches may come and
    go. One collector serves a registry: two would give the same metrics twice. TypeError and ValueError as of
    `prometheus_text`, now and at each scrape.
    """

    def __init__(self, caches: Mapping[str, PrefixCache]) -> None:
        known(caches)
        self._caches = caches

    def collect(self) -> Iterable[Metric]:
        """O(caches)."""
        return [_metric(family) for family in families(self._caches)]

    def describe(self) -> Iterable[Metric]:
        """The names alone, so that registering asks no cache."""
        return [_metric(family) for family in families({})]


def _metric(family: Family) -> Metric:
    # The client puts `_total` behind a counter's name itself.
    suffix = "_total" if family.kind == "counter" else ""
    metric = Metric(family.name.removesuffix(suffix), family.help, family.kind)
    for sample in family.samples:
        metric.add_sample(family.name + sample.suffix, sample.labels, sample.value)
    return metric
