"""Each kind of content in a result, as each provider's own SDK reads it; what it does not take is a loss."""

from __future__ import annotations

import base64
import json
from typing import Any

import mcp.types
import pytest
from anthropic.types import ToolResultBlockParam
from google.genai import types as gemini
from openai.types.chat import ChatCompletionToolMessageParam
from openai.types.responses.response_input_param import FunctionCallOutput
from tests.support.sdks import require_taken

from toolcrib import Audio, File, Image, Link, ToolResult
from toolcrib.core.content import Json, Text
from toolcrib.formats import render_result
from toolcrib.formats.provider import Loss

DATA = b"\x89PNG\r\n\x1a\n\xff\xfe"
BASE64 = base64.b64encode(DATA).decode()
PARTS: dict[str, Any] = {
    "text": Text("said"),
    "json": Json({"a": [1]}),
    "image": Image(DATA),
    "bitmap": Image(DATA, "image/bmp"),
    "audio": Audio(DATA, "audio/mpeg"),
    "pdf": File(DATA, "application/pdf", "a.pdf"),
    "file": File(DATA, "text/csv", "a.csv"),
    "plain": File(DATA, "text/plain", "a.txt"),
    "archive": File(DATA, "application/zip", "a.zip"),
    "link": Link("https://example.org", "There"),
}
MEDIA = PARTS.keys() - {"text", "json", "link"}
AS_BASE64 = {
    "openai": MEDIA,
    "openrouter": MEDIA,
    "mistral": MEDIA,
    "openai-responses": MEDIA - {"image", "pdf", "file", "plain"},
    "anthropic": MEDIA - {"image", "pdf"},
    "gemini": MEDIA - {"image", "pdf", "plain"},
    "mcp": set(),
}
"""What the API refuses, and with it the request, is sent as base64."""


def read(speaker: str, answer: dict[str, Any]) -> None:
    """By the SDK, strictly: a dict without the fields that a type has would pass for it."""
    match speaker:
        case "openai" | "openrouter" | "mistral":
            require_taken(ChatCompletionToolMessageParam, answer)
            assert isinstance(answer["content"], str)
        case "openai-responses":
            require_taken(FunctionCallOutput, answer)
        case "anthropic":
            require_taken(ToolResultBlockParam, answer)
        case "gemini":
            gemini.Part.model_validate(answer)
        case "mcp":
            mcp.types.CallToolResult.model_validate(answer)


@pytest.mark.parametrize("speaker", AS_BASE64)
@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("among", [False, True])
def test_every_kind_of_content(speaker: str, kind: str, among: bool) -> None:
    """Alone, and in a list with text."""
    part = PARTS[kind]
    losses: list[Loss] = []
    result = ToolResult(True, ["before", part] if among else part)
    answer = render_result(speaker, "call_1", result, name="shown", losses=losses)
    read(speaker, answer)
    told = json.dumps(answer)
    assert bool(losses) is (kind in AS_BASE64[speaker]), losses
    assert (BASE64 in told) is (kind in MEDIA)
    if among:
        assert "before" in told
    for word in {"text": ["said"], "json": ["a", "[1]"], "link": ["https://example.org", "There"]}.get(kind, []):
        assert word in told
    for loss in losses:
        assert loss.tool == "shown" and loss.field == "result" and "base64" in loss.reason


@pytest.mark.parametrize("speaker", AS_BASE64)
def test_text_and_json_are_no_objects_of_ours(speaker: str) -> None:
    """``Text`` and ``Json`` are rendered as what is in them, wherever they stand."""
    for data in (Text("said"), [Text("said")], [Text("said"), Json({"a": 1})], Json({"a": 1})):
        told = json.dumps(render_result(speaker, "c", ToolResult(True, data), name="t"))
        assert '"value"' not in told and '\\"value\\"' not in told
        assert '"type": "json"' not in told and '\\"type\\"' not in told


def test_the_blocks_of_each_provider() -> None:
    result = ToolResult(True, ["a", Image(DATA), File(DATA, "application/pdf", "a.pdf"), Audio(DATA), Link("x:y")])
    blocks = {speaker: render_result(speaker, "c", result, name="t") for speaker in AS_BASE64}
    assert [block["type"] for block in blocks["openai-responses"]["output"]] == [
        "input_text", "input_image", "input_file", "input_text", "input_text",
    ]  # fmt: skip
    assert [block["type"] for block in blocks["anthropic"]["content"]] == [
        "text", "image", "document", "text", "text",
    ]  # fmt: skip
    assert [part["inlineData"]["mimeType"] for part in blocks["gemini"]["functionResponse"]["parts"]] == [
        "image/png", "application/pdf",
    ]  # fmt: skip
    assert [block["type"] for block in blocks["mcp"]["content"]] == [
        "text", "image", "resource", "audio", "resource_link",
    ]  # fmt: skip


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_beside_an_image_does_not_cost_the_request(blank: str) -> None:
    """Anthropic refuses a request in which a text is blank."""
    answer = render_result("anthropic", "c", ToolResult(True, [blank, Image(DATA), Text(blank)]))
    assert [block["type"] for block in answer["content"]] == ["image"]


@pytest.mark.parametrize("speaker", ["openai-responses", "anthropic", "gemini"])
@pytest.mark.parametrize("part", [Image(b""), File(b"", "application/pdf", "a.pdf")])
def test_what_is_empty_is_no_image_and_no_file(speaker: str, part: Any) -> None:
    losses: list[Loss] = []
    told = json.dumps(render_result(speaker, "c", ToolResult(True, part), name="t", losses=losses))
    assert part.media_type in told and losses
    assert not any(block in told for block in ("input_image", "input_file", '"source"', "inlineData"))
