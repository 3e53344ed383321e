"""A model that says what a test has written down, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.core.errors import ToolcribError
from toolcrib.core.json import as_json
from toolcrib.formats.plain import plain
from toolcrib.testing.conversation import Conversation, read_conversation
from toolcrib.testing.handed import schemas_of
from toolcrib.testing.script import ScriptedCall, Turn, turn_of
from toolcrib.testing.shapes import shape_named


class ScriptEndedError(ToolcribError, AssertionError):
    """The model was asked once more than its script has turns."""

    code = "script_ended"


@dataclass(frozen=True, slots=True)
class Request:
    """What the model was asked: copies, so that what happens to the conversation later does not show."""

    messages: list[Any]
    tools: list[Any]
    conversation: Conversation

    @property
    def tool_names(self) -> list[str]:
        """The names under which tools were handed over, whatever the format."""
        return list(schemas_of(self.tools))

    @property
    def answers(self) -> dict[str, Any]:
        """What the model was told until now: the answer to each of its calls, by the call's id."""
        return {each.call_id: each.answer for each in self.conversation.exchanges}


class ScriptedModel:
    """``await model(messages, tools)`` returns the next turn of ``script`` as a provider's assistant message.

        model = ScriptedModel([call("weather", city="Paris"), [call("f"), call("g")], "The end."], format="anthropic")

    A turn is a text, a call, a list of both, an exception to raise, or a function from the :class:`Request` to one of
    these. Of OpenAI Responses the message is the list of output items. ``as_sdk`` makes it an object of the provider's
    SDK; of OpenAI Responses that is the response.

    As a provider does, it refuses a conversation in which a call has no answer under its id, or an answer no call.
    """

    def __init__(self, script: Iterable[Any] | ScriptedCall, *, format: str = "openai", as_sdk: bool = False) -> None:
        self.format = format
        self.as_sdk = as_sdk
        self.requests: list[Request] = []
        self._shape = shape_named(format)
        self._script = [script] if isinstance(script, str | ScriptedCall) else list(script)
        self._calls = 0
        for said in self._script:
            if not (isinstance(said, BaseException) or callable(said)):
                turn_of(said, self._shape.call_id)

    @property
    def remaining(self) -> int:
        """How many turns have not been asked for."""
        return max(0, len(self._script) - len(self.requests))

    async def __call__(self, messages: Any, tools: Any = ()) -> Any:
        turn = self._next(messages, tools)
        return self._shape.sdk(turn) if self.as_sdk else self._shape.message(turn)

    async def stream(self, messages: Any, tools: Any = ()) -> AsyncIterator[dict[str, Any]]:
        """The next turn as the provider's events, which :class:`toolcrib.formats.StreamedMessage` puts together."""
        for event in self._shape.events(self._next(messages, tools)):
            yield event

    def _next(self, messages: Any, tools: Any) -> Turn:
        request = Request(_copied(messages), _copied(tools), read_conversation(self._shape, messages))
        place = len(self.requests)
        if place >= len(self._script):
            raise ScriptEndedError(
                f"the model was asked once more than its script has turns ({len(self._script)}); "
                f"the last it was told: {str(request.messages[-1:])[1:-1]:.200}"
            )
        self.requests.append(request)
        said = self._script[place]
        if callable(said) and not isinstance(said, BaseException):
            said = said(request)
        if isinstance(said, BaseException):
            raise said
        turn = turn_of(said, self._shape.call_id, self._calls)
        self._calls += len(turn.calls)
        return turn

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.format!r}, turns left: {self.remaining} of {len(self._script)}>"


def _copied(things: Any) -> list[Any]:
    listed = [things] if isinstance(things, str | Mapping) or not isinstance(things, Iterable) else list(things)
    return [as_json(_bodies(each)) if _is_data(each) else each for each in listed]


def _is_data(thing: Any) -> bool:
    return isinstance(thing, Mapping | Sequence) or hasattr(thing, "model_dump")


def _bodies(thing: Any) -> Any:
    """SDK objects as mappings, also in lists."""
    if isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        return [_bodies(each) for each in thing]
    body = plain(thing)
    return thing if body is None else {key: _bodies(value) for key, value in body.items()}
