"""Who observes calls is told of each, whatever becomes of it: with the real OpenTelemetry SDK, in memory."""

import asyncio
import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names  # noqa: PLC2701 - the only place
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import SecretStr

from toolcrib import MissingDependencyError, OpenTelemetry, ToolContext, ToolRegistry, ToolResult, tool
from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.calling.observing import Observed
from toolcrib.core.json import MASK
from toolcrib.ports import Decision, Policy, PolicyRequest


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def fail() -> None:
    """Fail."""
    raise ValueError("the secret is 42")


@tool(timeout_seconds=0.05)
async def hang() -> None:
    """Never end."""
    await asyncio.Event().wait()


@tool(safety_level="dangerous")
async def erase() -> None:
    """Erase everything."""


@tool
async def lie() -> int:
    """Return something else than a number."""
    return "no number"  # type: ignore[return-value]


@tool
def where() -> str:
    """The span that a tool sees as the current one."""
    return format(trace.get_current_span().get_span_context().span_id, "016x")


@tool(isolation="process")
def where_in_a_process() -> str:
    """The parent of a span that is made in the process of the tool."""
    with TracerProvider().get_tracer("tool").start_as_current_span("own") as span:
        assert isinstance(span, ReadableSpan) and span.parent is not None
        return format(span.parent.span_id, "016x") + format(span.parent.trace_id, "032x")


class Telemetry:
    """A registry that is observed, and what was told of it."""

    def __init__(
        self, tools: list[Any], exporter: SpanExporter | None = None, policy: Policy | None = None, **options: Any
    ) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(exporter or self.exporter))
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.registry = ToolRegistry(tools, policy=policy)
        self.registry.observe(OpenTelemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options))

    @property
    def span(self) -> ReadableSpan:
        [span] = self.exporter.get_finished_spans()
        return span

    @property
    def said(self) -> dict[str, Any]:
        return dict(self.span.attributes or {})

    def points(self) -> dict[tuple[Any, Any], int]:
        """How many calls the histogram counted, by tool and error."""
        data = self.reader.get_metrics_data()
        assert data is not None
        [metric] = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        assert (metric.name, metric.unit) == ("gen_ai.execute_tool.duration", "s")
        found: dict[tuple[Any, Any], int] = {}
        for point in metric.data.data_points:
            assert isinstance(point, HistogramDataPoint) and point.attributes is not None
            assert point.attributes[names.GEN_AI_OPERATION_NAME] == "execute_tool"
            found[point.attributes[names.GEN_AI_TOOL_NAME], point.attributes.get(ERROR_TYPE)] = point.count
        return found


async def test_a_call_is_a_span_and_a_measurement() -> None:
    told = Telemetry([add])
    await told.registry.execute("add", {"a": 1, "b": 2}, context=ToolContext(call_id="call_1"))
    assert (told.span.name, told.span.kind) == ("execute_tool add", SpanKind.INTERNAL)
    assert told.span.status.status_code is StatusCode.UNSET
    assert told.said == {
        names.GEN_AI_OPERATION_NAME: names.GenAiOperationNameValues.EXECUTE_TOOL.value,
        names.GEN_AI_TOOL_NAME: "add",
        names.GEN_AI_TOOL_TYPE: "function",
        names.GEN_AI_TOOL_CALL_ID: "call_1",
        names.GEN_AI_TOOL_DESCRIPTION: "Add two numbers.",
    }
    assert told.points() == {("add", None): 1}


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("fail", {}, "tool_failed"),
        ("hang", {}, "timeout"),
        ("erase", {}, "approval_required"),
        ("add", {"a": "one"}, "invalid_arguments"),
        ("lie", {}, "invalid_output"),
    ],
)
async def test_what_goes_wrong_is_told_by_its_code_and_nothing_else(name: str, arguments: Any, error: str) -> None:
    told = Telemetry([add, fail, hang, erase, lie])
    result = await told.registry.execute(name, arguments)
    assert told.span.name == f"execute_tool {name}"
    assert told.said[ERROR_TYPE] == result.error_code == error
    assert (told.span.status.status_code, told.span.status.description) == (StatusCode.ERROR, None)
    assert told.points() == {(name, error): 1}
    assert not told.span.events  # an exception's message may quote what it was called with
    assert "secret" not in told.span.to_json()


class _Nobody:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(False, "not today", "weekdays")


class _BrokenPolicy(_Nobody):
    def decide(self, request: PolicyRequest) -> Decision:
        raise ZeroDivisionError("policy broke")


@pytest.mark.parametrize(("policy", "error"), [(_Nobody(), "denied"), (_BrokenPolicy(), "error")])
async def test_a_call_that_the_policy_refuses_or_breaks_is_told(policy: _Nobody, error: str) -> None:
    told = Telemetry([add], policy=policy)
    await told.registry.execute("add", {"a": 1, "b": 2})
    assert (told.said[ERROR_TYPE], told.said[names.GEN_AI_TOOL_DESCRIPTION]) == (error, "Add two numbers.")
    assert told.points() == {("add", error): 1}
    assert told.registry.usage()["add"].errors_by_code == {error: 1}
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_invented_names_do_not_multiply_the_metric() -> None:
    told = Telemetry([add])
    for number in range(5):
        await told.registry.execute(f"invented-{number}" + "x" * 5000)
    spans = told.exporter.get_finished_spans()
    assert {span.name for span in spans} == {"execute_tool"}
    assert all(len(str((span.attributes or {})[names.GEN_AI_TOOL_NAME])) == 200 for span in spans)
    assert told.points() == {("_OTHER", "tool_not_found"): 5}


async def test_names_ids_and_codes_can_be_sent_whatever_they_are() -> None:
    @tool
    async def refuse(code: str) -> ToolResult:
        """Refuse."""
        return ToolResult.failure_result("no", "\ud800" + "x" * 5000)

    told = Telemetry([refuse], content=True)
    context = ToolContext(call_id="\ud800")
    await told.registry.execute("\ud800", context=context)
    await told.registry.execute("refuse", {"code": "1"}, context=context)
    for span in told.exporter.get_finished_spans():
        for text in (span.name, *(span.attributes or {}).values()):
            assert len(str(text).encode()) <= 200
    assert {error for _, error in told.points()} == {"tool_not_found", "?" + "x" * 199}


async def test_a_cancelled_call_ends_its_span() -> None:
    entered = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait to be cancelled."""
        entered.set()
        await asyncio.Event().wait()

    told = Telemetry([wait])
    task = asyncio.create_task(told.registry.execute("wait"))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (told.said[ERROR_TYPE], told.span.status.status_code) == ("cancelled", StatusCode.ERROR)
    assert told.registry.usage()["wait"].errors_by_code == {"cancelled": 1}
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_spans_of_a_tool_are_children_in_every_isolation() -> None:
    told = Telemetry([where, where_in_a_process, tool(name="inline", isolation="inline")(where.function)])
    with told.tracers.get_tracer("agent").start_as_current_span("turn") as turn:
        for name in ("where", "inline"):
            assert (await told.registry.execute(name)).data == _id(told.exporter.get_finished_spans()[-1])
        said = (await told.registry.execute("where_in_a_process")).data
        assert trace.get_current_span() is turn
    *calls, _ = told.exporter.get_finished_spans()
    assert said == _id(calls[-1]) + format(turn.get_span_context().trace_id, "032x")
    assert [call.parent and call.parent.span_id for call in calls] == [turn.get_span_context().span_id] * 3


def _id(span: ReadableSpan) -> str:
    assert span.context is not None
    return format(span.context.span_id, "016x")


async def test_a_process_is_told_of_no_trace_if_nobody_observes() -> None:
    result = await ToolRegistry([where_in_a_process]).execute("where_in_a_process")
    assert "AssertionError" in (result.error or "")


async def test_calls_at_once_do_not_mix_their_spans() -> None:
    told = Telemetry([add])
    await asyncio.gather(*(told.registry.execute("add", {"a": n, "b": 0}) for n in range(50)))
    spans = told.exporter.get_finished_spans()
    assert len({_id(span) for span in spans}) == 50
    assert all(span.parent is None for span in spans)
    assert told.points() == {("add", None): 50}


async def test_content_only_when_asked_and_redacted() -> None:
    @tool
    async def login(user: str, password: str) -> dict[str, str]:
        """Log in."""
        return {"user": user, "token": "t0p"}

    def redact(value: Any) -> Any:
        hide = ("password", "token")
        return {k: "***" if k in hide else v for k, v in value.items()} if isinstance(value, dict) else "(text)"

    told = Telemetry([login, fail], content=True, redact=redact)
    await told.registry.execute("login", {"user": "ada", "password": "pw"})
    assert json.loads(told.said[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == {"user": "ada", "password": "***"}
    assert json.loads(told.said[names.GEN_AI_TOOL_CALL_RESULT]) == {"user": "ada", "token": "***"}
    await told.registry.execute("fail")
    assert told.exporter.get_finished_spans()[-1].status.description == "(text)"


async def test_content_has_no_secrets_also_if_nobody_thinks_of_them() -> None:
    @tool
    async def login(user: str, password: str, pin: SecretStr) -> str:
        """Log in."""
        return f"{user} has token=t0p-{password}"

    told = Telemetry([login], content=True)
    await told.registry.execute("login", {"user": "ada", "password": "pw", "pin": "1234"})
    shown = {"user": "ada", "password": MASK, "pin": MASK}
    assert json.loads(told.said[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == shown
    assert told.said[names.GEN_AI_TOOL_CALL_RESULT] == f"ada has token={MASK}"


async def test_what_the_schema_of_a_result_marks_is_not_told() -> None:
    @tool(returns={"properties": {"code": {"type": "string", "format": "password"}}})
    async def door_code() -> Any:
        """Say the code of a door."""
        return {"door": "north", "code": "4711"}

    told = Telemetry([door_code], content=True)
    await told.registry.execute("door_code")
    assert json.loads(told.said[names.GEN_AI_TOOL_CALL_RESULT]) == {"door": "north", "code": MASK}


async def test_arguments_are_told_as_they_were_whatever_the_tool_does_to_them() -> None:
    @tool
    async def add_one(numbers: list[int]) -> list[int]:
        """Add a number."""
        numbers.append(1)
        return numbers

    told = Telemetry([add_one], content=True)
    await told.registry.execute("add_one", {"numbers": [7]})
    assert json.loads(told.said[names.GEN_AI_TOOL_CALL_ARGUMENTS]) == {"numbers": [7]}


async def test_what_cannot_be_redacted_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    def broken(value: Any) -> Any:
        raise RuntimeError("no mask")

    told = Telemetry([add], content=True, redact=broken)
    assert (await told.registry.execute("add", {"a": 20, "b": 22})).data == 42
    assert names.GEN_AI_TOOL_CALL_ARGUMENTS not in told.said
    assert told.points() == {("add", None): 1}
    assert "an observer of calls raised" in caplog.text


async def test_content_is_bounded() -> None:
    @tool
    async def much() -> str:
        """Say much."""
        return "x" * 1_000_000

    told = Telemetry([much], content=True)
    await told.registry.execute("much")
    assert len(told.said[names.GEN_AI_TOOL_CALL_RESULT]) < 20_000


class _Broken(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        raise OSError("no collector")


async def test_an_exporter_that_raises_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    told = Telemetry([add], exporter=_Broken())
    assert (await told.registry.execute("add", {"a": 1, "b": 2})).data == 3


class _Hostile:
    def begin(self, call: Observed) -> Any:
        raise RuntimeError("begin")

    def end(self, begun: Any, call: Observed) -> None:
        raise RuntimeError("end")


class _HostileAtTheEnd(_Hostile):
    def begin(self, call: Observed) -> Any:
        return None


async def test_an_observer_that_raises_harms_neither_calls_nor_other_observers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = Telemetry([add])
    told.registry.observe(_Hostile())
    told.registry.observe(_HostileAtTheEnd())
    assert (await told.registry.execute("add", {"a": 1, "b": 2})).data == 3
    assert told.span.name == "execute_tool add"
    assert caplog.text.count("an observer of calls raised") == 2


class _Notes:
    """An observer that a user writes."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, Any, str, ToolResult | None]] = []

    def begin(self, call: Observed) -> float:
        return len(self.ends)

    def end(self, begun: int, call: Observed) -> None:
        assert begun == len(self.ends)
        self.ends.append((call.name, call.arguments, call.error_type, call.result))


async def test_observers_are_told_of_calls_that_a_conversation_refuses() -> None:
    notes = _Notes()
    registry = ToolRegistry([add], audit=MemoryAudit())
    registry.observe(notes)
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{broken"}},
        {"id": "c2", "type": "function", "function": {"name": "nothing", "arguments": "{}"}},
        {"id": "c3", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}},
    ]
    await registry.execute_calls({"role": "assistant", "tool_calls": calls})
    assert [(name, arguments, error) for name, arguments, error, _ in notes.ends] == [
        ("add", None, "invalid_arguments"),
        ("nothing", None, "tool_not_found"),
        ("add", {"a": 1, "b": 2}, ""),
    ]


async def test_the_call_id_of_a_model_reaches_spans_and_tools() -> None:
    @tool
    async def which(context: ToolContext) -> str:
        """The id of the call."""
        return context.call_id

    call = {"type": "tool_use", "id": "toolu_7", "name": "which", "input": {}}
    [answer] = await ToolRegistry([which]).execute_calls([call])
    assert answer["content"][0]["content"] == "toolu_7"
    told = Telemetry([which])
    await told.registry.execute_call("anthropic", call)
    assert told.said[names.GEN_AI_TOOL_CALL_ID] == "toolu_7"


async def test_without_an_sdk_nothing_is_recorded_and_nothing_breaks() -> None:
    registry = ToolRegistry([add])
    registry.observe(OpenTelemetry())
    assert (await registry.execute("add", {"a": 1, "b": 2})).data == 3


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingDependencyError, match=r"telemetry"):
        OpenTelemetry()


def test_nothing_of_opentelemetry_is_imported_unless_asked() -> None:
    program = """
import sys
from toolcrib import ToolRegistry, tool
@tool
async def add(a: int, b: int) -> int:
    "Add."
    return a + b
registry = ToolRegistry([add])
assert registry.execute_sync("add", {"a": 1, "b": 2}).data == 3 and registry.usage()["add"].calls == 1
sys.exit("opentelemetry" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# The logger in the context


@tool(isolation="inline")
async def log_inline(context: ToolContext) -> None:
    """Log."""
    context.logger.info("at %d %s", 50, "percent", extra={"page": 3})


@tool
def log_in_a_thread(context: ToolContext) -> None:
    """Log."""
    context.logger.info("at %d %s", 50, "percent", extra={"page": 3})


@tool(isolation="process")
def log_in_a_process(context: ToolContext) -> None:
    """Log."""
    context.logger.debug("not wanted")
    context.logger.info("at %d %s", 50, "percent", extra={"page": 3})
    logging.getLogger(f"toolcrib.tools.{context.tool}").warning("by its name")
    try:
        raise ValueError("over there")
    except ValueError:
        context.logger.exception("failed", extra={"lambda": lambda: None})


@pytest.mark.parametrize("kind", [log_inline, log_in_a_thread, log_in_a_process])
async def test_a_tool_logs_under_its_name_in_every_isolation(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, f"toolcrib.tools.{kind.name}")
    registry = ToolRegistry([kind])
    result = await registry.execute(kind.name, context=ToolContext("ada", call_id="call_9"))
    assert result.success, result
    first = caplog.records[0]
    assert (first.name, first.levelname, first.getMessage()) == (f"toolcrib.tools.{kind.name}", "INFO", "at 50 percent")
    seen = {name: getattr(first, name) for name in ("tool", "call_id", "principal", "page")}
    assert seen == {"tool": kind.name, "call_id": "call_9", "principal": "ada", "page": 3}
    assert first.funcName == kind.name
    if kind is log_in_a_process:
        assert [record.getMessage() for record in caplog.records[1:]] == ["by its name", "failed"]
        assert "ValueError: over there" in (caplog.records[2].exc_text or "")
        assert first.process != logging.LogRecord("", 0, "", 0, "", (), None).process


async def test_level_and_filters_of_the_tools_logger_hold(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("toolcrib.tools.log_inline")
    registry = ToolRegistry([log_inline])

    def reject(record: logging.LogRecord) -> bool:
        return False

    caplog.set_level(logging.WARNING, logger.name)
    await registry.execute("log_inline")
    assert not caplog.records
    caplog.set_level(logging.INFO, logger.name)
    logger.addFilter(reject)
    await registry.execute("log_inline")
    logger.removeFilter(reject)
    assert not caplog.records
    await registry.execute("log_inline")
    assert [record.message for record in caplog.records] == ["at 50 percent"]


def test_a_context_made_by_hand_has_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    context = ToolContext()
    assert isinstance(context.logger, logging.Logger)
    context.logger.warning("by hand")
    assert caplog.records[0].name == "toolcrib.tools"
