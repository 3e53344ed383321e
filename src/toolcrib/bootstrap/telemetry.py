"""OpenTelemetry, if this process was started with an SDK of it."""

from __future__ import annotations

import sys

from toolcrib.calling.observing import Observer
from toolcrib.settings import Settings


def open_observers(settings: Settings) -> tuple[Observer, ...]:
    """Spans and metrics of runs, if somebody installed an SDK to send them to: it has imported the API then."""
    if sys.modules.get("opentelemetry") is None:
        return ()
    from opentelemetry import metrics, trace

    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    silent = isinstance(tracers, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    if silent and type(meters).__module__.startswith("opentelemetry.metrics."):
        return ()
    from toolcrib.calling.telemetry import OpenTelemetry

    return (OpenTelemetry(content=settings.telemetry_content),)
