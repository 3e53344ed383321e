"""OpenAI's Responses API: its calls and their answers are items of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import SIMPLE, File, Image, Part, ToolReferences, base64_of, parts_of
from toolcrib.core.json import copied
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.core.schema_facts import followed, listed_values, named_types
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import openai
from toolcrib.formats.provider import BEGUN, IMAGES, Asked, Loss, asked, part_text

NAMES = openai.NAMES
SEARCH_TYPE = "tool_search_call"
SEARCHED = "openai:tool_search"
"""What a ``tool_search_call``, which names nothing, is a call of. No tool can be called that."""
_TITLE = "OpenAI Responses"
_DOCUMENTS = re.compile(
    r"text/.+|application/(pdf|json|xml|rtf|msword|vnd\.ms-(excel|powerpoint)"
    r"|vnd\.openxmlformats-officedocument\..+|vnd\.oasis\.opendocument\.text)"
)
"""The kinds of files that it takes: texts and code, PDF, rich documents, presentations, spreadsheets."""


def definition(spec: ToolSpec, name: str, losses: list[Loss], *, strict: bool = False) -> dict[str, Any]:
    """``strict`` is always there: this API takes a definition without it for a strict one."""
    given = {"type": "function", "strict": False} | openai.function(spec, name, losses, strict=strict)
    if spec.returns:
        if _may_be_text(spec.returns):
            losses.append(Loss(spec.name, "returns", f"{_TITLE} takes the schema of JSON, and a text is sent as it is"))
        else:
            given["output_schema"] = copied(spec.returns)
    return given


def _may_be_text(schema: JsonSchema) -> bool:
    todo: list[Any] = [schema]
    seen: set[int] = set()
    while todo:
        part = followed(todo.pop(), schema)
        if id(part) in seen:
            continue
        seen.add(id(part))
        if not isinstance(part, Mapping):
            return True
        values, kinds = listed_values(part), named_types(part)
        branches = part.get("anyOf") or part.get("oneOf")
        if values is not None:
            may_be = any(isinstance(value, str) for value in values)
        elif kinds:
            may_be = "string" in kinds
        else:
            may_be = not branches
            todo += branches or []
        if may_be:
            return True
    return False


from_definition = openai.from_definition


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``function_call`` item, or a search that is ours to do. Its own id is not the one that its answer names."""
    if call.get("type") == SEARCH_TYPE:
        return asked(SEARCHED, call.get("arguments"), call.get("call_id") or call.get("id"))
    arguments = call.get("arguments")
    if call.get("status") == "incomplete":
        arguments = BEGUN  # however whole it looks
    return asked(call.get("name"), arguments, call.get("call_id") or call.get("id"))


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    if name == SEARCHED:
        return _search_output(call_id, result, losses)
    parts = parts_of(result.data) if result.success and type(result.data) not in SIMPLE else ()
    output: Any
    if any(map(takes, parts)):
        output = [_item(part, name, losses) for part in parts]
    else:
        output = openai.text_of(result, name, losses, _TITLE)
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def takes(part: Part) -> bool:
    if isinstance(part, Image):
        return part.media_type in IMAGES and part.data != b""
    return isinstance(part, File) and _DOCUMENTS.fullmatch(part.media_type) is not None and part.data != b""


def _search_output(call_id: str, result: ToolResult, losses: list[Loss]) -> dict[str, Any]:
    """The definitions that were found. It has no place for a failure: then nothing was found."""
    found = result.data.tools if isinstance(result.data, ToolReferences) else ()
    if not result.success:
        losses.append(Loss(SEARCHED, "result", f"{_TITLE} takes no error of a search: {result.error}"))
    tools = [definition(spec, NAMES.apply(spec.name), losses) | {"defer_loading": True} for spec in found]
    return {
        "type": "tool_search_output", "call_id": call_id, "execution": "client", "status": "completed", "tools": tools,
    }  # fmt: skip


def _item(part: Part, name: str, losses: list[Loss]) -> dict[str, Any]:
    match part:
        case Image(data, media_type) if takes(part):
            return {"type": "input_image", "image_url": _url(data, media_type)}
        case File(data, media_type, filename) if takes(part):
            return {"type": "input_file", "filename": filename or "file", "file_data": _url(data, media_type)}
    return {"type": "input_text", "text": part_text(part, name, losses, _TITLE)}


def _url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64_of(data)}"


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return answers
