"""The APIs of OpenAI, Anthropic and Gemini on a loopback port, with a model behind them that acts out one conversation.

The providers' own SDKs talk to it, so what they send and read is what the real ones would get and give; the shapes of
that are those of ``toolcrib.testing``. The model wants to know the weather in Paris and in Oslo: it asks for both at
once, the second time with an argument of a wrong name; it corrects itself by what it is told, and answers with what the
tools returned. Handed a tool that counts words, it has some counted instead. As the real ones do, it refuses a
conversation in which a call has no answer under its id. Tools that are deferred it finds by the provider's own search,
or by ``search_tools`` if that is what it is handed.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from toolcrib.testing import ConversationRefusedError, ScriptedCall, call
from toolcrib.testing.conversation import read_conversation
from toolcrib.testing.handed import schemas_of
from toolcrib.testing.script import Turn, turn_of
from toolcrib.testing.shapes import shape_named

QUESTION = "How is the weather in Paris and in Oslo?"
ANSWER = "Paris has rain at 18 degrees, Oslo has snow at -4 degrees."

APIS = {
    "/chat/completions": "openai",
    "/responses": "openai-responses",
    "/messages": "anthropic",
    ":generateContent": "gemini",
}


class RefusedError(Exception):
    """The request is not one that this model is made for."""


def next_turn(format: str, body: dict[str, Any]) -> Turn:
    """What the model says to a request. In Gemini's shape its calls have no ids, as those of its older models."""
    shape = shape_named(format)
    told = read_conversation(shape, body.get("messages") or body.get("input") or body.get("contents"))
    answers = [str(each.answer) for each in told.exchanges]
    tools = schemas_of(body["tools"])
    says = _says_searching(answers) if "search_tools" in tools else _says(tools, answers)
    return turn_of(says, _no_id if format == "gemini" else shape.call_id, made=len(told.exchanges))


def _no_id(number: int) -> str:
    return ""


def _says(tools: dict[str, Any], answers: list[str]) -> str | list[ScriptedCall]:
    if "count_words" in tools:
        _require(tools, "count_words", "text")
        if not answers:
            return [call("count_words", text="to be or not to be")]
        return f"'be' occurs {json.loads(answers[0])['be']} times."
    _require(tools, "weather", "city")
    if not answers:
        return [call("weather", city="Paris"), call("weather", town="Oslo")]
    if len(answers) == 2 and "city" in answers[1]:
        return [call("weather", city="Oslo")]
    return f"Paris has {answers[0]}, Oslo has {answers[-1]}."


def _says_searching(answers: list[str]) -> str | list[ScriptedCall]:
    """The same by way of our own search, which has to find the tool."""
    if not answers:
        return [call("search_tools", query="How is the weather in a city?")]
    if "weather(city: str)" not in answers[0]:
        raise RefusedError(f"the weather was not found: {answers[0]}")
    says = _says({"weather": {"properties": {"city": {}}}}, answers[1:])
    return says if isinstance(says, str) else [call("call_tool", name=each.name, arguments=each.value) for each in says]


def with_their_search(format: str, body: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """The response, with the provider's search before the first call if the tool is deferred."""
    listed = [one for each in body["tools"] for one in (each["tools"] if each.get("type") == "namespace" else [each])]
    deferred = {each["name"] for each in listed if each.get("defer_loading")}
    if deferred and len(deferred) == len(listed):
        raise RefusedError("at least one tool must not be deferred")
    if "weather" not in deferred or len(body.get("messages") or body["input"]) > 1:
        return response
    if format == "anthropic":
        found = [{"type": "tool_reference", "tool_name": "weather"}]
        result = {"type": "tool_search_tool_search_result", "tool_references": found}
        query = {"query": "city"}
        search = [
            {"type": "server_tool_use", "id": "s_1", "name": "tool_search_tool_bm25", "input": query},
            {"type": "tool_search_tool_result", "tool_use_id": "s_1", "content": result},
        ]
        return response | {"content": [*search, *response["content"]]}
    how: dict[str, Any] = {"execution": "server", "call_id": None, "status": "completed"}
    search = [
        {"type": "tool_search_call", "id": "ts_1", "arguments": {"paths": ["city"]}, **how},
        {"type": "tool_search_output", "id": "to_1", "tools": [], **how},
    ]
    return response | {"output": [*search, *response["output"]]}


def _require(tools: dict[str, Any], name: str, argument: str) -> None:
    if argument not in tools.get(name, {}).get("properties", {}):
        raise RefusedError(f"there is no tool {name!r} with a {argument!r}: {tools}")


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        speaks = next(name for path, name in APIS.items() if self.path.partition("?")[0].endswith(path))
        try:
            turn = next_turn(speaks, body)
            whole = shape_named(speaks).response(turn)
            if speaks in {"anthropic", "openai-responses"}:
                whole = with_their_search(speaks, body, whole)
        except (RefusedError, ConversationRefusedError, KeyError, TypeError, AttributeError) as error:
            self._send(400, json.dumps({"error": {"message": f"{type(error).__name__}: {error}"}}))
            return
        if body.get("stream"):
            events = "".join(f"data: {json.dumps(event)}\n\n" for event in shape_named(speaks).events(turn))
            self._send(200, events + "data: [DONE]\n\n", "text/event-stream")
        else:
            self._send(200, json.dumps(whole))

    def _send(self, status: int, text: str, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: it would mix with what is tested."""


@contextlib.contextmanager
def scripted_providers() -> Iterator[dict[str, str]]:
    """The environment in which the SDKs find the APIs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield {
            "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": base, "GEMINI_API_KEY": "none",
        }  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
