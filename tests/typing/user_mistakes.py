"""Mistakes that mypy and pyright must catch: each line that is one says so."""

from toolcrib import Tool, ToolContext, ToolRegistry, tool
from toolcrib.define import make_tool


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(tags=["demo"])
async def who(context: ToolContext, greeting: str) -> str:
    """Say who calls."""
    return greeting + context.principal


class Files:
    @tool
    def read(self, path: str) -> str:
        """Read."""
        return path

    @tool(timeout_second=5)  # mistake: timeout_seconds
    def write(self, path: str) -> str:
        """Write."""
        return path

    @tool(examples="none")  # mistake: a list of examples
    async def wait(self, *paths: int) -> str:
        """Wait."""
        return str(paths)


add("x", b=2)  # mistake: a is a number
add(1, zzz=3)  # mistake: there is no zzz
add()  # mistake: a is missing
text: str = add(1)  # mistake: it is a number
Files().read(1)  # mistake: path is text
Files().read("a", "b")  # mistake: there is one parameter
Files().wait("a")  # mistake: paths are numbers
Files.read("a")  # mistake: there is no instance
tool("more", timeout_seconds=1)(Files().read)(1)  # mistake: path is text, under another name too
ToolRegistry().register(add)("x")  # mistake: a is a number, after registering too


def use_as_a_tool_of_text() -> Tool[[str], int]:
    return add  # mistake: it does not take text


@tool(timeout_second=5)  # mistake: timeout_seconds
def slow() -> None:
    """Wait."""


@tool(timeout_seconds="5")  # mistake: a number
def slower() -> None:
    """Wait."""


@tool(tags="demo")  # mistake: a list
def slowest() -> None:
    """Wait."""


@tool(isolation="thraed")  # mistake: no such isolation
def isolated() -> None:
    """Wait."""


@tool(safety_level="dangeruos")  # mistake: no such level
def dangerous() -> None:
    """Wait."""


make_tool(text.upper, description="Upper.", timeout_second=5)  # mistake: timeout_seconds


async def call() -> int:
    return await who(ToolContext(), "Hi")  # mistake: it is text
