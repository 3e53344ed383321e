"""ToolSpec to and from other people's shapes. Pure: one file for each shape."""

from toolcrib.formats.compact import signature, signatures
from toolcrib.formats.deferring import Deferring, HandoverOptions, handed_over
from toolcrib.formats.exchange import from_definition, parse_call, read_call, render_result, together
from toolcrib.formats.handover import Handover, handover, tool_called
from toolcrib.formats.messages import calls_of
from toolcrib.formats.prompt import generate_prompt, tool_instructions
from toolcrib.formats.provider import Asked, Call, Loss
from toolcrib.formats.streamed import StreamedMessage
from toolcrib.formats.table import FORMATS, recognise_format

__all__ = [
    "FORMATS", "Asked", "Call", "Deferring", "Handover", "HandoverOptions", "Loss", "StreamedMessage", "calls_of",
    "from_definition", "generate_prompt", "handed_over", "handover", "parse_call", "read_call", "recognise_format",
    "render_result", "signature", "signatures", "together", "tool_called", "tool_instructions",
]  # fmt: skip
