"""ToolSpec to and from other people's shapes. Pure: one file for each shape."""

from toolcrib.formats.compact import signature, signatures
from toolcrib.formats.exchange import from_definition, parse_call, render_result
from toolcrib.formats.handover import Handover, handover, tool_called
from toolcrib.formats.langchain import to_structured_tool
from toolcrib.formats.prompt import generate_prompt, tool_instructions
from toolcrib.formats.provider import Call, Loss
from toolcrib.formats.table import FORMATS, recognise_format

__all__ = [
    "FORMATS", "Call", "Handover", "Loss", "from_definition", "generate_prompt", "handover", "parse_call",
    "recognise_format", "render_result", "signature", "signatures", "to_structured_tool", "tool_called",
    "tool_instructions",
]  # fmt: skip
