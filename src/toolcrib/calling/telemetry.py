"""Calls as spans and as a histogram of OpenTelemetry, under the names of its conventions for generative AI.

``opentelemetry`` is imported when the first :class:`OpenTelemetry` is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any

from toolcrib.calling.observing import TRACE, Observed
from toolcrib.core.errors import MissingDependencyError
from toolcrib.core.json import as_text, encodable
from toolcrib.core.masking import REDACTION, without_marked

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

DURATION = "gen_ai.execute_tool.duration"
_OPERATION = "execute_tool"
_OTHER = "_OTHER"
"""Stands for the names of tools that there are not, of which callers can invent any number."""
_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LONGEST_NAME, _LONGEST_CONTENT = 200, 16_000

_Begun = tuple["Span", Token["Context"], Token[Callable[[], Mapping[str, str]] | None]]


class OpenTelemetry:
    """An observer of calls: ``registry.observe(OpenTelemetry())``.

    Each call becomes a span ``execute_tool {name}`` and a record of the histogram ``gen_ai.execute_tool.duration``.
    Without providers those count that the program has set. Arguments, results and the sentences of errors are left
    out unless ``content`` is true; then ``redact`` is given each of them first, and what it returns is kept: it masks
    what :class:`toolcrib.layers.Redaction` does unless another is given. Spans that a tool makes are children of its
    call's, in every isolation. Needs the extra ``telemetry``.
    """

    def __init__(
        self,
        *,
        content: bool = False,
        redact: Callable[[Any], Any] = REDACTION,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            from opentelemetry import context, metrics, propagate, trace
        except ImportError:
            raise MissingDependencyError("OpenTelemetry", extra="telemetry") from None
        self._context, self._propagate, self._trace = context, propagate, trace
        self._tracer = trace.get_tracer("toolcrib", tracer_provider=tracer_provider)
        self._duration = metrics.get_meter("toolcrib", meter_provider=meter_provider).create_histogram(
            DURATION,
            unit="s",
            description="How long calls of tools took.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._content = content
        self._redact = redact

    def begin(self, call: Observed) -> _Begun:
        name = _short(call.name)
        attributes = {"gen_ai.operation.name": _OPERATION, "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        if call.context.call_id:
            attributes["gen_ai.tool.call.id"] = _short(call.context.call_id)
        span = self._tracer.start_span(f"{_OPERATION} {name}", attributes=attributes)
        token = self._context.attach(self._trace.set_span_in_context(span))
        return span, token, TRACE.set(self._headers)

    def end(self, begun: _Begun, call: Observed) -> None:
        span, token, before = begun
        try:
            self._measure(call)
            self._describe(span, call)
        finally:
            span.end()
            TRACE.reset(before)
            self._context.detach(token)

    def _describe(self, span: Span, call: Observed) -> None:
        if not span.is_recording():
            return
        if call.spec is None:
            span.update_name(_OPERATION)
        else:
            span.set_attribute("gen_ai.tool.description", call.spec.description)
        if error_type := _short(call.error_type):
            span.set_attribute("error.type", error_type)
            span.set_status(self._trace.StatusCode.ERROR)
        if self._content:
            self._tell_content(span, call)

    def _tell_content(self, span: Span, call: Observed) -> None:
        if call.result is not None and call.result.error:  # it may quote the arguments
            span.set_status(self._trace.StatusCode.ERROR, self._text(call.result.error))
        if call.spec is None:
            return
        if call.arguments is not None:
            shown = without_marked(call.spec.parameters, call.arguments)
            span.set_attribute("gen_ai.tool.call.arguments", self._text(shown))
        if call.result is not None and call.result.success:
            shown = without_marked(call.spec.returns, call.result.data)
            span.set_attribute("gen_ai.tool.call.result", self._text(shown))

    def _measure(self, call: Observed) -> None:
        attributes = {
            "gen_ai.operation.name": _OPERATION,
            "gen_ai.tool.name": call.spec.name if call.spec is not None else _OTHER,
        }
        if error_type := _short(call.error_type):
            attributes["error.type"] = error_type
        self._duration.record(call.seconds, attributes)

    def _text(self, value: Any) -> str:
        text = as_text(self._redact(value))
        return text if len(text) <= _LONGEST_CONTENT else text[:_LONGEST_CONTENT] + "..."

    def _headers(self) -> Mapping[str, str]:
        headers: dict[str, str] = {}
        self._propagate.inject(headers)
        return headers


def _short(text: object) -> str:
    """As an exporter can send it, whatever a model or a tool made up: an odd text costs all that is sent with it."""
    return encodable(str(text)[:_LONGEST_NAME])
