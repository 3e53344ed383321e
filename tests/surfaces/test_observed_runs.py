"""Runs of the service are observed by the same seam as those of the library, inside the span of their request."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.receiver import Receiver, receiving
from tests.surfaces.conftest import BASE, lifespan

from toolcrib import Binding, OpenTelemetry, ToolSpec
from toolcrib.bootstrap import System
from toolcrib.settings import Settings
from toolcrib.surfaces.service import application_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
HEADERS = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "baggage": "customer=secret"}


class Observed:
    def __init__(self, client: httpx.AsyncClient, exporter: InMemorySpanExporter, receiver: Receiver) -> None:
        self.client = client
        self.receiver = receiver
        self._exporter = exporter

    def span(self, name: str) -> ReadableSpan:
        [span] = [span for span in self._exporter.get_finished_spans() if span.name == name]
        return span


@pytest.fixture
async def observed(settings: Settings, request: pytest.FixtureRequest) -> AsyncIterator[Observed]:
    """A service with one tool that is an HTTP service; the test's ``param`` are settings."""
    tracers, exporter = TracerProvider(shutdown_on_exit=False), InMemorySpanExporter()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    settings = settings.with_changes("test", allowed_addresses=("127.0.0.1",), **getattr(request, "param", {}))
    with receiving() as receiver:
        receiver.answer = lambda _: (200, {"Content-Type": "application/json"}, b'"rain"')
        system = System(settings, observers=[OpenTelemetry(tracer_provider=tracers)])
        app = application_of(system, tracer=tracers.get_tracer("test"))
        system.catalogue.publish(
            ToolSpec(name="weather", description="The weather.", binding=Binding(service_url=receiver.url))
        )
        async with lifespan(app):
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                yield Observed(client, exporter, receiver)


def _ids(span: ReadableSpan) -> tuple[str, str]:
    assert span.context is not None
    return format(span.context.trace_id, "032x"), format(span.context.span_id, "016x")


@pytest.mark.parametrize("observed", [{"telemetry_propagation": True}], indirect=True)
async def test_a_run_is_a_span_inside_its_request_and_its_service_is_told(observed: Observed) -> None:
    answer = await observed.client.post("/tools/weather/run", json={"arguments": {}}, headers=HEADERS)
    assert answer.json()["data"] == "rain"
    served, run = observed.span("POST /tools/{tool_id}/run"), observed.span("execute_tool weather")
    assert run.parent is not None and format(run.parent.span_id, "016x") == _ids(served)[1]
    [received] = observed.receiver.received
    assert received.headers["traceparent"] == "00-{}-{}-01".format(*_ids(run))
    assert _ids(run)[0] == TRACE
    assert "baggage" not in received.headers


async def test_services_are_told_of_no_trace_unless_that_is_set(observed: Observed) -> None:
    await observed.client.post("/tools/weather/run", json={"arguments": {}}, headers=HEADERS)
    [received] = observed.receiver.received
    assert observed.span("execute_tool weather").parent is not None
    assert "traceparent" not in received.headers


async def test_a_call_over_mcp_has_the_id_of_its_request(observed: Observed) -> None:
    pytest.importorskip("mcp")
    call = {"jsonrpc": "2.0", "id": "rpc-7", "method": "tools/call", "params": {"name": "weather", "arguments": {}}}
    headers = {**HEADERS, "accept": "application/json, text/event-stream"}
    answer = await observed.client.post("/mcp", json=call, headers=headers)
    assert answer.status_code == 200, answer.text
    run = observed.span("execute_tool weather")
    assert (run.attributes or {})["gen_ai.tool.call.id"] == "rpc-7"
    assert _ids(run)[0] == TRACE


PROGRAM = """
import asyncio, json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
tracers = TracerProvider()
tracers.add_span_processor(SimpleSpanProcessor(exporter))
if sys.argv[2] == "with":
    trace.set_tracer_provider(tracers)
from toolcrib import ToolSpec
from toolcrib.bootstrap import System
from toolcrib.settings import Settings
settings = Settings(store="memory:", data_dir=sys.argv[1], telemetry_content=True)
with System(settings, {"double": lambda number: 2 * number}) as system:
    binding = {"system_function_rpc_id": "double"}
    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}}
    system.catalogue.publish(ToolSpec(name="double", description="2x", binding=binding, parameters=parameters))
    asyncio.run(system.calls.execute("double", {"number": 21}))
spans = exporter.get_finished_spans()
print(json.dumps([[span.name, span.attributes.get("gen_ai.tool.call.result")] for span in spans]))
"""


@pytest.mark.parametrize(("installed", "spans"), [("with", [["execute_tool double", "42"]]), ("without", [])])
def test_it_is_on_if_an_sdk_is_installed(installed: str, spans: list[Any], tmp_path: Any) -> None:
    words = [sys.executable, "-c", PROGRAM, str(tmp_path), installed]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == spans
