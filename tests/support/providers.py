"""The APIs of OpenAI, Anthropic and Gemini on a loopback port, with a model behind them that acts out one conversation.

The providers' own SDKs talk to it, so what they send and read is what the real ones would get and give. The model
wants to know the weather in Paris and in Oslo: it asks for both at once, the second time with an argument of a wrong
name; it corrects itself by what it is told, and answers with what the tools returned. Handed a tool that counts words,
it has some counted instead. As the real ones do, it refuses a conversation in which a call has no answer under its id.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

QUESTION = "How is the weather in Paris and in Oslo?"
ANSWER = "Paris has rain at 18 degrees, Oslo has snow at -4 degrees."


class RefusedError(Exception):
    """The request is not one that a provider takes."""


@dataclass
class Conversation:
    """What a request tells, whoever's words it is in."""

    tools: dict[str, Any] = field(default_factory=dict)
    """Their schemas, by name."""
    calls: dict[str, str] = field(default_factory=dict)
    """The arguments of each call, by its id."""
    answers: dict[str, str] = field(default_factory=dict)

    @property
    def tool(self) -> str:
        """The one that the model calls."""
        return "count_words" if "count_words" in self.tools else "weather"

    def next_calls(self) -> list[tuple[str, dict[str, str]]]:
        """What the model wants now, each with an id; nothing if it knows enough."""
        self.check()
        if self.tool == "count_words":
            return [] if self.calls else [("call_1", {"text": "to be or not to be"})]
        if not self.calls:
            return [("call_1", {"city": "Paris"}), ("call_2", {"town": "Oslo"})]
        if len(self.calls) == 2 and "city" in self.answers["call_2"]:
            return [("call_3", {"city": "Oslo"})]
        return []

    def text(self) -> str:
        if self.tool == "count_words":
            return f"'be' occurs {json.loads(self.answers['call_1'])['be']} times."
        return f"Paris has {self.answers['call_1']}, Oslo has {self.answers['call_3']}."

    def check(self) -> None:
        wanted = {"weather": "city", "count_words": "text"}[self.tool]
        if wanted not in self.tools.get(self.tool, {}).get("properties", {}):
            raise RefusedError(f"there is no tool {self.tool!r} with a {wanted!r}: {self.tools}")
        if unanswered := self.calls.keys() - self.answers.keys():
            raise RefusedError(f"no answer to {sorted(unanswered)}")
        if unasked := self.answers.keys() - self.calls.keys():
            raise RefusedError(f"nobody asked {sorted(unasked)}")


class Chat:
    @staticmethod
    def read(body: dict[str, Any]) -> Conversation:
        told = Conversation({each["function"]["name"]: each["function"]["parameters"] for each in body["tools"]})
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                told.calls[call["id"]] = call["function"]["arguments"]
            if message["role"] == "tool":
                told.answers[message["tool_call_id"]] = message["content"]
        return told

    @staticmethod
    def write(told: Conversation) -> dict[str, Any]:
        calls = [
            {"id": call_id, "type": "function", "function": {"name": told.tool, "arguments": json.dumps(arguments)}}
            for call_id, arguments in told.next_calls()
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls} if calls else None
        message = message or {"role": "assistant", "content": told.text()}
        choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}

    @staticmethod
    def pieces(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The same as a stream: each call's arguments come in two pieces."""
        for index, call in enumerate(whole["choices"][0]["message"].get("tool_calls", ())):
            arguments = call["function"]["arguments"]
            yield {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]}
            for piece in (arguments[:4], arguments[4:]):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


class Responses:
    @staticmethod
    def read(body: dict[str, Any]) -> Conversation:
        told = Conversation({each["name"]: each["parameters"] for each in body["tools"]})
        for item in body["input"]:
            if item.get("type") == "function_call":
                told.calls[item["call_id"]] = item["arguments"]
            elif item.get("type") == "function_call_output":
                told.answers[item["call_id"]] = item["output"]
        return told

    @staticmethod
    def write(told: Conversation) -> dict[str, Any]:
        output: list[dict[str, Any]] = [
            {
                "type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": told.tool,
                "arguments": json.dumps(arguments), "status": "completed",
            }
            for call_id, arguments in told.next_calls()
        ]  # fmt: skip
        if not output:
            content = [{"type": "output_text", "text": told.text(), "annotations": []}]
            output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
        usage = {
            "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
        }  # fmt: skip
        return {
            "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": output,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage,
        }  # fmt: skip


class Messages:
    @staticmethod
    def read(body: dict[str, Any]) -> Conversation:
        told = Conversation({each["name"]: each["input_schema"] for each in body["tools"]})
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "tool_use":
                    told.calls[block["id"]] = json.dumps(block["input"])
                elif block["type"] == "tool_result":
                    told.answers[block["tool_use_id"]] = block["content"]
        return told

    @staticmethod
    def write(told: Conversation) -> dict[str, Any]:
        content: list[dict[str, Any]] = [
            {"type": "tool_use", "id": call_id, "name": told.tool, "input": arguments}
            for call_id, arguments in told.next_calls()
        ] or [{"type": "text", "text": told.text()}]
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "end_turn" if content[0]["type"] == "text" else "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip


class Gemini:
    """Its calls have no ids here, as those of its older models: the answers are matched by their order."""

    @staticmethod
    def read(body: dict[str, Any]) -> Conversation:
        declared = [each for tool in body["tools"] for each in tool["functionDeclarations"]]
        told = Conversation({each["name"]: each.get("parameters", {}) for each in declared})
        for content in body["contents"]:
            for part in content["parts"]:
                if "functionCall" in part:
                    told.calls[f"call_{len(told.calls) + 1}"] = json.dumps(part["functionCall"]["args"])
                elif "functionResponse" in part:
                    response = part["functionResponse"]["response"]
                    told.answers[f"call_{len(told.answers) + 1}"] = str(response.get("output") or response["error"])
        return told

    @staticmethod
    def write(told: Conversation) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [
            {"functionCall": {"name": told.tool, "args": arguments}} for _, arguments in told.next_calls()
        ] or [{"text": told.text()}]
        return {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": parts}}]}


APIS: dict[str, type[Chat | Responses | Messages | Gemini]] = {
    "/chat/completions": Chat,
    "/responses": Responses,
    "/messages": Messages,
    ":generateContent": Gemini,
}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api = next(api for path, api in APIS.items() if self.path.partition("?")[0].endswith(path))
        try:
            answer = api.write(api.read(body))
        except (RefusedError, KeyError, TypeError, AttributeError) as error:
            self._send(400, json.dumps({"error": {"message": f"{type(error).__name__}: {error}"}}))
            return
        if body.get("stream"):
            chunks = [
                {**answer, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
                for delta in Chat.pieces(answer)
            ]
            events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
            self._send(200, events + "data: [DONE]\n\n", "text/event-stream")
        else:
            self._send(200, json.dumps(answer))

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
