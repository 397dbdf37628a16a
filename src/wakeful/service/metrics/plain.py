"""A counter and a histogram that cost a fraction of the library's, for what is counted with every run.

They have no lock, so they are only for the thread of the event loop.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry


class PlainCounter(Collector):
    """Counts by the values of its labels."""

    def __init__(self, name: str, description: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name = name
        self._description = description
        self._labels = tuple(labels)
        self._counts: dict[tuple[str, ...], int] = {}
        registry.register(self)

    def add(self, *values: str) -> None:
        """Count one more with these values of the labels."""
        self._counts[values] = self._counts.get(values, 0) + 1

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._description, labels=self._labels)
        for values, count in self._counts.items():
            family.add_metric(values, count)
        yield family


class PlainHistogram(Collector):
    """Counts values by bucket."""

    def __init__(self, name: str, description: str, buckets: Sequence[float], registry: CollectorRegistry) -> None:
        self._name = name
        self._description = description
        self._bounds = tuple(buckets)
        self._counts = [0] * (len(buckets) + 1)  # the last: beyond all bounds
        self._sum = 0.0
        registry.register(self)

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1  # a bound belongs to its bucket
        self._sum += value

    def collect(self) -> Iterator[HistogramMetricFamily]:
        buckets: list[tuple[str, float]] = []
        count = 0
        for bound, found in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            count += found
            buckets.append((bound, count))
        yield HistogramMetricFamily(self._name, self._description, buckets=buckets, sum_value=self._sum)
