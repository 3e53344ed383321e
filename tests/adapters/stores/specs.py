"""Documents as a catalogue stores them."""

from typing import Any

from toolcrib.core.spec import ToolSpec


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return ToolSpec.parse({"name": name, "description": f"the tool {name}", **fields}).to_dict()
