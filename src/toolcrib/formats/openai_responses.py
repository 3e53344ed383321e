"""OpenAI's Responses API: its calls and their answers are items of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import SIMPLE, File, Image, Part, base64_of, parts_of
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import openai
from toolcrib.formats.provider import Asked, Loss, asked, part_text

NAMES = openai.NAMES
_TITLE = "OpenAI Responses"


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    return {"type": "function", **openai.definition(spec, name, losses)["function"]}


from_definition = openai.from_definition


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``function_call`` item. Its own id is not the one that its answer names."""
    return asked(call.get("name"), call.get("arguments"), call.get("call_id") or call.get("id"))


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    parts = parts_of(result.data) if result.success and type(result.data) not in SIMPLE else ()
    output: Any
    if any(isinstance(part, Image | File) for part in parts):
        output = [_item(part, name, losses) for part in parts]
    else:
        output = openai.text_of(result, name, losses, _TITLE)
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _item(part: Part, name: str, losses: list[Loss]) -> dict[str, Any]:
    match part:
        case Image(data, media_type):
            return {"type": "input_image", "image_url": _url(data, media_type)}
        case File(data, media_type, filename):
            return {"type": "input_file", "filename": filename or "file", "file_data": _url(data, media_type)}
    return {"type": "input_text", "text": part_text(part, name, losses, _TITLE)}


def _url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64_of(data)}"


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return answers
