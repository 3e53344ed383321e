"""A brick as a tool: its parameters are those of the item it takes and its settings, its result is plain JSON."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define.function import running
from toolcrib.stacking.brick import AnyBrick, Secrets
from toolcrib.stacking.items import Item, Request, Stored
from toolcrib.stacking.shapes import answer_from, items_from, parameters_for
from toolcrib.stacking.step import Step

Place = Callable[[str], str]
"""The path that a caller's name of a file stands for; DeniedError if there is none."""

_SECONDS = 120.0


def tool_spec(brick: type[AnyBrick]) -> ToolSpec:
    """The brick's spec as that of a tool: with parameters, and bound to the brick by its name."""
    own = brick.spec
    changes: dict[str, Any] = {"parameters": _parameters(brick), "binding": {"python": own.name}}
    if own.timeout_seconds is None:
        changes["timeout_seconds"] = _SECONDS
    if issubclass(brick.gives, Stored) and own.safety_level is SafetyLevel.SAFE:
        changes["safety_level"] = SafetyLevel.LOW_RISK
    return own.with_changes(**changes)


def brick_tool(brick: type[AnyBrick], *, secrets: Secrets | Mapping[str, str] | None = None, place: Place) -> Tool:
    """The tool that opens the brick for each call. ``place`` decides about the files that its callers name.

    What ``brick.private`` lists is not the caller's to choose.
    """
    spec = tool_spec(brick)
    settings = frozenset(brick.Config.model_fields).intersection(spec.parameters["properties"])

    async def call(**arguments: Any) -> dict[str, Any]:
        config = {name: arguments[name] for name in settings & arguments.keys()}
        named: dict[str, Any] = {}
        for name in brick.files:
            if config.get(name):
                config[name] = place(config[name])
                named[config[name]] = arguments[name]
        made = brick(config, secrets=secrets)  # type: ignore[arg-type]
        for error in made.missing():
            raise error
        answer = await _run(made, items_from(brick.takes, arguments))
        for stored in answer.get("stored", ()):  # by the name that the caller gave, not the folder it is in
            stored["where"] = named.get(stored["where"], stored["where"])
        return answer

    return running(spec, call)


async def _run(brick: AnyBrick, items: list[Item]) -> dict[str, Any]:
    ending = threading.Event()
    step = Step(brick, 1, ending.is_set)
    given: list[Item] = []
    followed: list[Request] = []
    try:
        await step.open()
        if step.is_batched:
            given += await step.put(items)
        for item in () if step.is_batched else items:
            more, links = await step(item)
            given += more
            followed += links
    finally:
        ending.set()
        await step.close()
    return answer_from(brick.gives, given, followed)


def _parameters(brick: type[AnyBrick]) -> dict[str, Any]:
    properties, required = parameters_for(brick.takes)
    schema = brick.Config.model_json_schema()
    settings = {name: _plain(one) for name, one in schema.get("properties", {}).items() if name not in brick.private}
    wanted = [*required, *(name for name in schema.get("required", ()) if name in settings)]
    made = {
        "type": "object",
        "properties": {**properties, **{name: one for name, one in settings.items() if name not in properties}},
        "required": list(dict.fromkeys(wanted)),
        "additionalProperties": False,
    }
    return {**made, "$defs": schema["$defs"]} if "$defs" in schema else made


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without the title, which only says the name again."""
    return {key: value for key, value in schema.items() if key != "title"}
