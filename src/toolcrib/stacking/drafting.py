"""From a stack to a pipeline: the order in which the items fit, settings to begin with, and the file of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.core.errors import IncompatibleError, ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.stacking.brick import AnyBrick
from toolcrib.stacking.checking import stands_in
from toolcrib.stacking.definition import PipelineDefinition
from toolcrib.stacking.installed import all_bricks, no_brick
from toolcrib.stacking.items import Item, Request
from toolcrib.stacking.pipeline import Bricks, Pipeline

if TYPE_CHECKING:
    from toolcrib.stacking.planner import Stack


def drafted(
    stack: Stack,
    *,
    start: str | Sequence[str],
    config: Mapping[str, Mapping[str, Any]],
    bricks: Bricks | None,
    **settings: Any,
) -> Pipeline:
    """The stack as a pipeline; see ``Stack.pipeline``."""
    known = all_bricks() if bricks is None else bricks
    unknown = next((name for name in config if name not in stack.names), None)
    if unknown is not None:
        raise ToolNotFoundError(unknown, stack.names)
    row, others = _ordered(stack.tools, known)
    fields: dict[str, Any] = {"name": "-".join(stack.names)[:60], "strict": stack.strict}
    if others:
        spare = [{"tool": name, "config": _settings(known[name], config.get(name, {}))} for name in others]
        fields["error_handling"] = {"error": {"retry_with": spare}}
    making = {key: settings.pop(key) for key in ("secrets", "specs_of") if key in settings}
    steps = [{"tool": name, "config": _settings(known[name], config.get(name, {}))} for name in row]
    addresses = [start] if isinstance(start, str) else list(start)
    definition = PipelineDefinition.parse(fields | {"start": addresses, "steps": steps} | settings)
    return Pipeline(definition, known, **making)


def _settings(brick: type[AnyBrick], given: Mapping[str, Any]) -> dict[str, Any]:
    return {**brick.example, **given}


def _ordered(tools: Sequence[ToolSpec], bricks: Bricks) -> tuple[list[str], list[str]]:
    """The names in a row in which the items fit, and those that can stand in for one of them.

    What gives the same as it takes comes as soon as it can; then what leads on to the next kind of item.
    """
    left = {tool.name: _brick(tool.name, bricks) for tool in tools}
    row: list[str] = []
    given: type[Item] = Request
    while fitting := [name for name, brick in left.items() if issubclass(given, brick.takes)]:
        chosen = min(fitting, key=lambda name: (left[name].gives is not given, fitting.index(name)))
        row.append(chosen)
        given = left.pop(chosen).gives
    others = [name for name, brick in left.items() if any(stands_in(brick, bricks[step]) for step in row)]
    lost = next((name for name in left if name not in others), None)
    if lost is not None:
        raise IncompatibleError(_misfit(lost, left[lost], row, given))
    return row, others


def _brick(name: str, bricks: Bricks) -> type[AnyBrick]:
    if name not in bricks:
        raise IncompatibleError(no_brick(name))
    return bricks[name]


def _misfit(name: str, brick: type[AnyBrick], row: Sequence[str], given: type[Item]) -> str:
    before = f"behind {row[-1]!r} comes a {given.__name__}" if row else "a pipeline begins with a Request"
    hint = {
        "Page": "; want a capability too of a tool that fetches, such as 'http_requests'",
        "Record": "; want a capability too of a tool that reads pages, such as 'html_parsing'",
    }.get(brick.takes.__name__, "")
    return f"the stack makes no pipeline: {before}, but {name!r} takes a {brick.takes.__name__}{hint}"


# The file


def as_toml(pipeline: Pipeline, bricks: Bricks) -> str:
    """The definition for somebody who will edit it: the further settings of each step stand there as comments."""
    definition = pipeline.definition
    lines = [
        "# Lines that begin with '#' show what else can be set, and what holds if it is not.",
        f"name = {_toml(definition.name)}",
        "# the addresses to begin with",
        f"start = {_toml(definition.start)}",
        *([] if not definition.strict else ["strict = true"]),
    ]
    for step in definition.ordered_steps:
        brick = bricks[step.tool]
        lines += ["", f"# {_comment(brick.spec.description)}", "[[steps]]", f"tool = {_toml(step.tool)}"]
        lines += [*_settings_lines(brick, step.config)]
    for kind, remedy in definition.error_handling.items():
        lines += ["", f"[error_handling.{kind}]", *(f"{key} = {_toml(value)}" for key, value in remedy.items())]
    return "\n".join(lines) + "\n"


def as_json_text(pipeline: Pipeline) -> str:
    """The definition as JSON, without what has its default."""
    plain = pipeline.definition.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"name": pipeline.name, "start": [], **plain}, ensure_ascii=False, indent=2) + "\n"


_EMPTY: Mapping[Any, Any] = {"object": {}, "array": []}


def _settings_lines(brick: type[AnyBrick], config: Mapping[str, Any]) -> Iterator[str]:
    schema = brick.Config.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        said = _comment(field.get("description", ""))
        if name in config:
            yield f"config.{_key(name)} = {_toml(config[name])}{f'  # {said}' if said else ''}"
        else:
            usual = field.get("default", _EMPTY.get(field.get("type"), ""))
            yield f"# config.{_key(name)} = {_toml(usual)}{f'  # {said}' if said else ''}"
    for name in config.keys() - schema.get("properties", {}).keys():
        yield f"config.{_key(name)} = {_toml(config[name])}"


def _comment(text: str) -> str:
    """On one line, and of letters that a comment may hold: a tool is described by anybody."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _toml(value: Any) -> str:
    """A JSON value as TOML writes it on one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items() if one is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)
