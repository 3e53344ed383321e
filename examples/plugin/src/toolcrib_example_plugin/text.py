"""Every public tool of this module is found, because an entry point names the module."""

from toolcrib import BaseTool, tool


@tool(category="text")
def reverse(text: str) -> str:
    """Write a text backwards."""
    return text[::-1]


class Shout(BaseTool):
    """Write a text in capitals."""

    category = "text"

    async def execute(self, text: str, marks: int = 1) -> str:
        return text.upper() + "!" * marks
