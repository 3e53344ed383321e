"""What Prometheus is told. With several workers each writes to a shared folder, and any of them answers for all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FOLDER = "toolcrib-metrics-"
_LOCK = "owner.lock"
_NEW_SECONDS = 60.0
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


@contextmanager
def shared_folder() -> Iterator[None]:
    """The folder that several workers write to, for as long as their parent serves.

    A parent that was killed could not remove its own: its lock is gone with it, so the next start removes it.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    try:
        with FileLock(folder / _LOCK):
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
            yield
    finally:
        os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    """Remove the folders that nobody holds any more. A new one may not have its lock yet."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        try:
            status = folder.lstat()
            ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if not ours or not stat.S_ISDIR(status.st_mode) or time.time() - status.st_mtime < _NEW_SECONDS:
                continue
            with FileLock(folder / _LOCK, timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
        except (OSError, Timeout):  # somebody lives there, or it is gone already
            continue
