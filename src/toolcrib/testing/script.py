"""What a scripted model says: texts and calls, turn by turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolcrib.core.errors import ToolValidationError, shown
from toolcrib.core.json import as_text


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call that a model makes, or that a test expects; :func:`call` makes one.

    ``arguments`` is text if the model's words are given as they are; ``call_id`` is None until the model draws one.
    """

    name: str
    arguments: Mapping[str, Any] | str
    call_id: str | None = None

    @property
    def text(self) -> str:
        """The arguments as providers send them: the JSON text of an object, or whatever the model said."""
        return self.arguments if isinstance(self.arguments, str) else as_text(dict(self.arguments))

    @property
    def value(self) -> Any:
        """The arguments where a provider sends an object; words that are none go through as text."""
        if not isinstance(self.arguments, str):
            return json.loads(self.text)
        try:
            return json.loads(self.arguments)
        except ValueError:
            return self.arguments

    def __str__(self) -> str:
        if isinstance(self.arguments, str):
            return f"{self.name}(raw={self.arguments!r})"
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


def call(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    raw: str | None = None,
    call_id: str | None = None,
    **more: Any,
) -> ScriptedCall:
    """A call: ``call("weather", city="Paris")``, or ``call("weather", {"raw": 1})`` for names that are taken here.

    ``raw`` is what the model says instead of arguments, such as JSON that is broken. ``call_id`` is the call's id,
    empty for a provider that sends none.
    """
    if raw is not None:
        if arguments is not None or more:
            raise ToolValidationError(f"the call of {name!r} has raw and other arguments; it can have one of them")
        return ScriptedCall(name, raw, call_id)
    if not isinstance(arguments, Mapping | None):
        raise ToolValidationError(f"the arguments of {name!r} are a mapping, not {shown(arguments)}; raw= takes text")
    return ScriptedCall(name, {**(arguments or {}), **more}, call_id)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a model says at once: a text, calls, or both."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()


def turn_of(said: Any, call_id: Callable[[int], str], made: int = 0) -> Turn:
    """A step of a script as a turn. Calls without an id get ``call_id(n)``, where ``made`` calls came before."""
    texts: list[str] = []
    calls: list[ScriptedCall] = []
    for part in said if isinstance(said, Sequence) and not isinstance(said, str) else [said]:
        if isinstance(part, ScriptedCall):
            number = made + len(calls) + 1
            calls.append(part if part.call_id is not None else replace(part, call_id=call_id(number)))
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise ToolValidationError(
                f"a model says text or calls, not {shown(part)}; write call('a_tool', argument='value')"
            )
    return Turn("".join(texts), tuple(calls))
