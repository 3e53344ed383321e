import asyncio
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from toolcrib import (
    Audio,
    File,
    Image,
    InvalidArgumentsError,
    Link,
    ToolContext,
    ToolFailedError,
    ToolRegistry,
    ToolResult,
    ToolTimeoutError,
    tool,
)
from toolcrib.core.addresses import AddressRules, fence
from toolcrib.frameworks import to_structured_tool


@tool(tags=["math"])
async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first
        b: The second
    """
    return a + b


@tool
def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@pytest.mark.parametrize("made", [add, shout])
def test_it_is_a_structured_tool_with_the_same_description_and_schema(made: Any) -> None:
    structured = to_structured_tool(made)
    assert isinstance(structured, StructuredTool)
    assert structured.name == made.name
    assert structured.description == made.description
    function = convert_to_openai_tool(structured)["function"]
    assert function["parameters"]["properties"].keys() == made.spec.parameters["properties"].keys()


def test_descriptions_of_parameters_are_preserved() -> None:
    function = convert_to_openai_tool(to_structured_tool(add))["function"]
    assert function["parameters"]["properties"]["a"]["description"] == "The first"


async def test_ainvoke() -> None:
    assert await to_structured_tool(add).ainvoke({"a": 1, "b": 2}) == 3
    assert await to_structured_tool(add).ainvoke({"a": 1}) == 2
    assert await to_structured_tool(shout).ainvoke({"text": "hi"}) == "HI"


def test_invoke_without_a_loop() -> None:
    assert to_structured_tool(add).invoke({"a": 1, "b": 2}) == 3
    assert to_structured_tool(shout).invoke({"text": "hi"}) == "HI"


async def test_invoke_inside_a_loop() -> None:
    assert to_structured_tool(add).invoke({"a": 1, "b": 2}) == 3


async def test_a_models_tool_call() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 1, "b": 2}}
    message = await to_structured_tool(add).ainvoke(call)
    assert (message.tool_call_id, message.content) == ("c1", "3")


async def test_validation_is_maintained() -> None:
    for arguments in ({"a": "one"}, {}, {"a": True}):
        with pytest.raises(InvalidArgumentsError, match="'a'"):
            await to_structured_tool(add).ainvoke(arguments)
        with pytest.raises(InvalidArgumentsError, match="'a'"):
            to_structured_tool(add).invoke(arguments)


async def test_parameters_with_names_that_langchain_uses_itself() -> None:
    @tool
    async def odd(config: str, run_manager: int, callbacks: str = "c") -> str:
        """Take what LangChain would keep."""
        return f"{config} {run_manager} {callbacks}"

    assert await to_structured_tool(odd).ainvoke({"config": "a", "run_manager": 1}) == "a 1 c"
    assert to_structured_tool(odd).invoke({"config": "a", "run_manager": 1}) == "a 1 c"


async def test_failures_deadlines_and_results() -> None:
    @tool
    async def result(good: bool) -> Any:
        """Answer with a result."""
        return ToolResult.success_result(7) if good else ToolResult.failure_result("no luck")

    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.sleep(10)

    assert await to_structured_tool(result).ainvoke({"good": True}) == 7
    with pytest.raises(ToolFailedError, match="no luck"):
        await to_structured_tool(result).ainvoke({"good": False})
    with pytest.raises(ToolTimeoutError):
        await to_structured_tool(slow).ainvoke({})


async def test_the_checks_of_a_registry_stay() -> None:
    @tool(safety_level="dangerous")
    async def wipe() -> str:
        """Wipe the disk."""
        return "wiped"

    call = {"type": "tool_call", "id": "c1", "name": "wipe", "args": {}}
    [refused] = ToolRegistry([wipe]).to_langchain_tools()
    message = await refused.ainvoke(call)
    assert message.status == "error" and "'wipe'" in message.content and "approval_required" in message.content
    assert refused.invoke(call) == message
    [approved] = ToolRegistry([wipe], approve=lambda spec, arguments: True).to_langchain_tools()
    assert await approved.ainvoke({}) == "wiped"
    [checked] = ToolRegistry([add]).to_langchain_tools()
    assert "'a'" in await checked.ainvoke({"a": "one"})
    assert "must be an object" in await checked.ainvoke("one")


async def test_what_a_registry_hands_out_tells_what_the_tool_alone_raises() -> None:
    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Sleep."""
        await asyncio.sleep(10)

    registry = ToolRegistry([slow])
    [kept] = registry.to_langchain_tools()
    with pytest.raises(ToolTimeoutError, match="^tool 'slow' passed its deadline") as raised:
        await to_structured_tool(slow).ainvoke({})
    assert raised.value.retryable and not raised.value.still_running
    assert (await kept.ainvoke({})).startswith("tool 'slow' passed its deadline")
    registry.remove("slow")
    assert (await kept.ainvoke({})).startswith("no tool is called 'slow'")


def test_without_a_loop_progress_reaches_callbacks_too() -> None:
    heard: list[tuple[str, Any]] = []

    class Listener(BaseCallbackHandler):
        def on_custom_event(self, name: str, data: Any, **details: Any) -> None:
            heard.append((name, data))

    @tool
    def work(context: ToolContext) -> str:
        """Work."""
        context.progress(0.5, "half")
        return "done"

    [structured] = ToolRegistry([work]).to_langchain_tools()
    assert structured.invoke({}, config={"callbacks": [Listener()]}) == "done"
    assert heard == [("tool_progress", {"tool": "work", "fraction": 0.5, "message": "half"})]


def test_media_that_langchain_has_a_block_for_and_others() -> None:
    @tool
    async def everything() -> list[Any]:
        """All that a result can hold."""
        return [
            "text",
            {"n": 1},
            Image(b"i"),
            Audio(b"a"),
            File(b"f", "text/csv", "a.csv"),
            Link("http://x.test/", "X"),
        ]

    [structured] = ToolRegistry([everything]).to_langchain_tools()
    message = structured.invoke({"type": "tool_call", "id": "c1", "name": "everything", "args": {}})
    assert message.content == [
        {"type": "text", "text": "text"},
        {"type": "text", "text": '{"n": 1}'},
        {"type": "image", "base64": "aQ==", "mime_type": "image/png"},
        {"type": "file", "base64": "YQ==", "mime_type": "audio/wav"},
        {"type": "file", "base64": "Zg==", "mime_type": "text/csv", "filename": "a.csv"},
        {"type": "text", "text": "[X](http://x.test/)"},
    ]


async def test_an_empty_list_and_a_list_of_texts_are_told_as_json() -> None:
    @tool
    async def words(text: str) -> list[str]:
        """Split."""
        return text.split()

    [structured] = ToolRegistry([words]).to_langchain_tools()
    for text, told in (("", "[]"), ("a b", '["a", "b"]')):
        call = {"type": "tool_call", "id": "c1", "name": "words", "args": {"text": text}}
        assert (await structured.ainvoke(call)).content == told


def test_without_langchain_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["langchain_core"] = None
from toolcrib import tool
from toolcrib.frameworks import to_structured_tool
def f() -> None: "d"
try:
    to_structured_tool(tool(f))
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    kind, _, message = done.stdout.partition(" ")
    assert kind == "MissingDependencyError"
    assert message == "langchain-core is not installed; run in Toolcrib's folder: pip install '.[langchain]'\n"


def test_formats_do_not_import_langchain() -> None:
    program = "import sys, toolcrib, toolcrib.frameworks; print('langchain_core' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


async def test_the_address_rules_in_force_hold_also_beside_a_running_loop() -> None:
    rules = AddressRules(public_only=True)

    @tool
    async def public_only() -> bool:
        """Say whether the rules hold here."""
        return AddressRules.in_force() is rules

    with fence(rules):
        assert to_structured_tool(public_only).invoke({}) is True
