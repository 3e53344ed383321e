"""A conversation as a provider reads it: which calls were made, how each was answered, and what it would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolcrib.core.errors import Answer, Exit, ToolcribError
from toolcrib.formats.exchange import read_call
from toolcrib.formats.messages import calls_of
from toolcrib.formats.plain import plain
from toolcrib.testing.shapes import Shape


class ConversationRefusedError(ToolcribError, ValueError):
    """A conversation that no provider takes: a call without its answer, or an answer that nobody asked for."""

    code = "conversation_refused"
    answer = Answer(400, -32602, Exit.INVALID, "Conversation refused")


@dataclass(slots=True)
class Exchange:
    """A call in a conversation. ``arguments`` are as the model said them."""

    name: str
    arguments: Any
    call_id: str
    answered: bool = False
    answer: Any = None


@dataclass(slots=True)
class Conversation:
    exchanges: list[Exchange] = field(default_factory=list)

    def _open(self) -> list[Exchange]:
        return [each for each in self.exchanges if not each.answered]

    def close(self, call_id: str, answer: Any) -> None:
        """Answer the first open call of that id."""
        for each in self._open():
            if each.call_id == call_id:
                each.answered, each.answer = True, answer
                return
        raise ConversationRefusedError(f"the answer under the id {call_id!r:.80} is to no call that waits for one")

    def require_answers(self) -> None:
        if waiting := [f"{each.call_id!r:.80} ({each.name})" for each in self._open()]:
            raise ConversationRefusedError(f"there is no answer under the id of each call: {', '.join(waiting)}")


def read_conversation(shape: Shape, messages: Any) -> Conversation:
    """The calls in ``messages`` with their answers, or ConversationRefusedError if the provider would not take them."""
    told = Conversation()
    for body in _each(messages):
        answers = list(shape.answers(body))
        for call_id, answer in answers:
            told.close(call_id, answer)
        if shape.ANSWERED_NEXT and not answers:
            told.require_answers()
        told.exchanges += _calls_in(shape, body)
    told.require_answers()
    return told


def _each(messages: Any) -> Iterator[Mapping[str, Any]]:
    """The messages one by one. A response of OpenAI, and a list, stand for the items in them; texts are let pass."""
    for message in messages if _is_list(messages) else [messages]:
        if _is_list(message):
            yield from _each(message)
        elif (body := plain(message)) is not None:
            if body.get("object") == "response":
                yield from _each(body.get("output") or [])
            else:
                yield body


def _is_list(thing: object) -> bool:
    return isinstance(thing, Sequence) and not isinstance(thing, str | bytes)


def _calls_in(shape: Shape, body: Mapping[str, Any]) -> list[Exchange]:
    speaker, calls = calls_of(body)
    if calls and speaker != shape.FORMAT:
        raise ConversationRefusedError(
            f"a message is in the shape of {speaker!r}, which a model that speaks {shape.FORMAT!r} does not take"
        )
    asked = [read_call(speaker, each) for each in calls]
    return [Exchange(each.exported_name, each.arguments, each.call_id) for each in asked]
