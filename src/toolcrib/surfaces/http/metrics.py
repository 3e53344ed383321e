"""What Prometheus is told. With several workers each writes to a shared folder, and any of them answers for all."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counts by route, never by tool: labels must stay few."""

    def __init__(self, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "toolcrib_http_requests_total", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "toolcrib_http_request_seconds", "Time to the answer.", ("route",), buckets=_BUCKETS, registry=registry
        )
        self._runs = Counter("toolcrib_tool_runs_total", "Tools run.", ("outcome",), registry=registry)
        self.in_flight = Gauge(
            "toolcrib_http_requests_in_flight",
            "Requests being answered.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._outbox = Gauge(
            "toolcrib_outbox_waiting", "Events not delivered yet.", multiprocess_mode="mostrecent", registry=registry
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        info = Gauge("toolcrib_info", "The version.", ("version",), multiprocess_mode="livemax", registry=registry)
        info.labels(version).set(1)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request more. The labels are looked up once, so that a request costs little."""
        key = (method, route, status)
        known = self._known.get(key)
        if known is None:
            known = self._requests.labels(method, route, str(status)), self._seconds.labels(route)
            self._known[key] = known
        counter, histogram = known
        counter.inc()
        histogram.observe(seconds)

    def ran(self, outcome: str) -> None:
        self._runs.labels(outcome).inc()

    def waiting(self, events: int) -> None:
        self._outbox.set(events)

    def text(self) -> bytes:
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
