"""A model finds tools and calls what it found: what it is told, by whom it may be found, and what goes wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message, ToolResultBlockParam
from openai.types.responses import ResponseToolSearchCall
from openai.types.responses.response_input_param import ResponseInputItemParam
from pydantic import TypeAdapter

from toolcrib import ToolContext, ToolRegistry, ToolValidationError, tool
from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.core.limits import TokenLimits
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Runner, Tool
from toolcrib.ports import Decision, PolicyRequest


@tool(tags=["public"])
async def resize_image(path: str, width: int = 100) -> str:
    """Make a picture smaller."""
    return f"{path}@{width}"


@tool(name="image.crop", tags=["public"])
async def crop(path: str) -> str:
    """Cut a picture."""
    return f"{path} cut"


@tool(tags=["internal"])
async def delete_image(path: str) -> str:
    """Delete a picture."""
    return f"{path} is gone"


@tool(safety_level="dangerous")
async def publish_image(path: str) -> str:
    """Publish a picture."""
    return f"{path} is public"


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return "rain"


TOOLS = [resize_image, crop, delete_image, publish_image, weather]
WISH = "find a tool that can resize pictures"


class NoDeleting:
    """Lets nobody delete."""

    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(not request.tool.startswith("delete"), rule="no_deleting", reason="it is gone for good")


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry(TOOLS)


def chat(name: str, /, **arguments: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def asked(registry: ToolRegistry, name: str, /, *, context: ToolContext | None = None, **arguments: Any) -> str:
    """What a model of OpenAI Chat reads in answer to a call."""
    given = {} if context is None else {"context": context}
    [answer] = await registry.execute_calls(chat(name, **arguments), **given)  # type: ignore[arg-type]
    assert answer["tool_call_id"] == "c1"
    return str(answer["content"])


async def found(registry: ToolRegistry, query: str = "picture", **given: Any) -> list[str]:
    text = await asked(registry, "search_tools", query=query, limit=50, **given)
    return sorted(line.partition("(")[0] for line in text.splitlines() if "(" in line)


# What is found, in each provider's words


async def test_after_deferring_the_search_is_understood_at_once(registry: ToolRegistry) -> None:
    registry.definitions("openai", defer=True)
    text = await asked(registry, "search_tools", query=WISH, limit=1)
    assert text == "resize_image(path: str, width: int = 100) - Make a picture smaller."
    assert await asked(registry, "call_tool", name="resize_image", arguments={"path": "a", "width": 3}) == "a@3"
    assert len(registry) == len(TOOLS), "nothing was registered"


async def test_what_was_never_handed_over_is_refused(registry: ToolRegistry) -> None:
    registry.definitions("anthropic", defer=True)
    never: list[tuple[str, dict[str, Any]]] = [("search_tools", {"query": "a"}), ("call_tool", {"name": "weather"})]
    for name, arguments in never:
        assert json.loads(await asked(registry, name, **arguments))["error_code"] == "tool_not_found"
        assert (await registry.execute(name, arguments)).error_code == "tool_not_found"
    registry.definitions("anthropic", defer=True, search="own")
    assert "weather" in await asked(registry, "search_tools", query="weather")
    assert json.loads(await asked(registry, "call_tool", name="weather"))["error_code"] == "tool_not_found"


async def test_it_may_be_registered_in_two_lines_too(registry: ToolRegistry) -> None:
    registry.register(registry.search_tool(limit=2))
    registry.register(registry.call_tool())
    assert len((await asked(registry, "search_tools", query=WISH)).splitlines()) == 2
    result = await registry.execute("call_tool", {"name": "image.crop", "arguments": {"path": "a"}})
    assert (result.data, result.metadata["tool"]) == ("a cut", "image.crop")
    assert await found(registry, "tools search call") == [], "it does not find itself"


async def test_anthropic_gets_references_under_the_names_that_it_knows(registry: ToolRegistry) -> None:
    registry.definitions("anthropic", defer=True, search="own")
    call = {"type": "tool_use", "id": "t1", "name": "search_tools", "input": {"query": "cut", "limit": 2}}
    [message] = await registry.execute_calls([call])
    [block] = message["content"]
    assert block["content"] == [{"type": "tool_reference", "tool_name": "image_crop"}]
    TypeAdapter(ToolResultBlockParam).validate_python(block)
    [message] = await registry.execute_calls([{**call, "input": {"query": "zebra"}}])
    assert message["content"][0] == {
        "type": "tool_result", "tool_use_id": "t1", "is_error": False,
        "content": "No tool was found for 'zebra'; search again in other words.",
    }  # fmt: skip
    [message] = await registry.execute_calls([{**call, "input": {}}])
    assert message["content"][0]["is_error"] and "'query'" in message["content"][0]["content"]


async def test_a_search_of_responses_is_answered_by_definitions(registry: ToolRegistry) -> None:
    registry.definitions("openai-responses", defer=True, search="own")
    item = ResponseToolSearchCall.model_validate(
        {
            "type": "tool_search_call",
            "id": "ts_1",
            "call_id": "call_1",
            "execution": "client",
            "arguments": {"query": "cut", "limit": 1},
            "status": "completed",
        }
    )
    then = {"type": "function_call", "call_id": "call_2", "name": "image_crop", "arguments": '{"path": "a"}'}
    for search in (item, item.model_dump()):
        output, ran = await registry.execute_calls([search, then])
        assert (output["type"], output["call_id"]) == ("tool_search_output", "call_1")
        [definition] = output["tools"]
        assert (definition["name"], definition["defer_loading"]) == ("image_crop", True)
        assert ran == {"type": "function_call_output", "call_id": "call_2", "output": "a cut"}
        TypeAdapter(ResponseInputItemParam).validate_python(
            {**output, "tools": [{"strict": None, **each} for each in output["tools"]]}
        )
    assert await registry.execute_call("openai-responses", item) == output
    assert await registry.execute_call("openai", item) == output
    wrong = item.model_copy(update={"arguments": {"goal": "cut"}})
    [output] = await registry.execute_calls([wrong])
    assert (output["call_id"], output["tools"]) == ("call_1", []), "there is no place for an error"


async def test_a_search_of_responses_that_was_never_handed_over_finds_nothing(registry: ToolRegistry) -> None:
    item = {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {"query": "picture"}}
    [output] = await registry.execute_calls([item])
    assert (output["type"], output["tools"]) == ("tool_search_output", [])


async def test_gemini_and_mcp_get_signatures(registry: ToolRegistry) -> None:
    registry.definitions("gemini", defer=True)
    [turn] = await registry.execute_calls(
        {"parts": [{"functionCall": {"name": "search_tools", "args": {"query": "cut"}}}]}
    )
    assert turn["parts"][0]["functionResponse"]["response"] == {"output": "image.crop(path: str) - Cut a picture."}
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_tools", "arguments": {"query": "cut"}},
    }
    answer = await registry.execute_call("mcp", request)
    assert answer["content"] == [{"type": "text", "text": "image.crop(path: str) - Cut a picture."}]
    assert (await registry.execute("search_tools", {"query": "cut"})).to_json()["data"] == answer["content"][0]["text"]


@pytest.mark.parametrize("dumped", [False, True])
async def test_the_search_of_a_provider_is_left_alone(dumped: bool, registry: ToolRegistry) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    references = [{"type": "tool_reference", "tool_name": "weather"}]
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "weather"}},
        {
            "type": "tool_search_tool_result", "tool_use_id": "s1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": references},
        },
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
    ]  # fmt: skip
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "usage": usage}
    message = Message.model_validate({**body, "content": blocks})
    [answer] = await registry.execute_calls(message.model_dump() if dumped else message)
    assert [(block["tool_use_id"], block["content"]) for block in answer["content"]] == [("t1", "rain")]
    alone = Message.model_validate({**body, "content": blocks[:2]})
    assert await registry.execute_calls(alone.model_dump() if dumped else alone) == []
    hosted = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["crm"]}}
    assert await registry.execute_calls([hosted]) == []
    called = {
        "type": "function_call",
        "call_id": "c",
        "name": "weather",
        "namespace": "crm",
        "arguments": '{"city":"a"}',
    }
    assert [each["output"] for each in await registry.execute_calls([hosted, called])] == ["rain"]


# Nothing that the caller may not run is found


async def test_a_policy_hides() -> None:
    registry = ToolRegistry(TOOLS, policy=NoDeleting())
    registry.definitions("openai", defer=True)
    assert await found(registry) == ["image.crop", "resize_image"]
    assert await found(registry, "delete") == []
    nothing = await asked(registry, "search_tools", query="delete")
    assert nothing == "No tool was found for 'delete'; search again in other words."


async def test_hidden_tools_do_not_use_up_the_limit() -> None:
    many = [tool(name=f"delete_{number}")(delete_image.function) for number in range(40)]
    registry = ToolRegistry([*many, crop], policy=NoDeleting())
    registry.definitions("openai", defer=True)
    assert (await asked(registry, "search_tools", query="delete picture", limit=1)).startswith("image.crop(")


@pytest.mark.parametrize(
    ("limits", "seen"),
    [
        (TokenLimits(tags=("public",)), ["image.crop", "resize_image"]),
        (TokenLimits(tools=("delete_image",)), ["delete_image"]),
        (TokenLimits(actions=("read",)), []),
    ],
)
async def test_the_limits_of_a_token_hide(limits: TokenLimits, seen: list[str], registry: ToolRegistry) -> None:
    """The search itself needs no leave: it shows nothing else."""
    registry.definitions("openai", defer=True)
    context = ToolContext("ann", limits=limits)
    assert await found(registry, context=context) == seen
    for name in ("image.crop", "delete_image", "resize_image"):
        answer = await asked(registry, "call_tool", context=context, name=name, arguments={"path": "a"})
        assert ("token_limit" in str(answer) or "the token of 'ann'" in answer) is (name not in seen)


async def test_roles_reach_the_policy() -> None:
    class OnlyEditors:
        remote = False

        def decide(self, request: PolicyRequest) -> Decision:
            return Decision("editor" in request.roles)

    registry = ToolRegistry(TOOLS, policy=OnlyEditors())
    registry.definitions("openai", defer=True)
    assert await found(registry) == []
    assert await found(registry, context=ToolContext("ann", roles=("editor",))) != []


async def test_what_needs_approval_is_hidden_unless_somebody_is_there_to_approve() -> None:
    registry = ToolRegistry(TOOLS)
    registry.definitions("openai", defer=True)
    assert "publish_image" not in await found(registry)
    approved: list[str] = []

    def approve(spec: Any, arguments: Any) -> bool:
        approved.append(spec.name)
        return True

    registry = ToolRegistry(TOOLS, approve=approve)
    registry.definitions("openai", defer=True)
    assert "publish_image" in await found(registry)
    assert approved == [], "to look is not to ask"
    assert await asked(registry, "call_tool", name="publish_image", arguments={"path": "a"}) == "a is public"
    assert approved == ["publish_image"]


async def test_a_policy_that_cannot_be_asked_is_told_and_finds_nothing() -> None:
    from toolcrib.core.errors import PolicyUnavailableError

    class Away:
        remote = True

        def decide(self, request: PolicyRequest) -> Decision:
            raise PolicyUnavailableError("the policy service is away")

    registry = ToolRegistry(TOOLS, policy=Away())
    registry.definitions("openai", defer=True)
    assert json.loads(await asked(registry, "search_tools", query="picture"))["error_code"] == "policy_unavailable"


# The call of what was found


async def test_a_hidden_tool_is_refused_with_its_own_rule() -> None:
    audit = MemoryAudit()
    registry = ToolRegistry(TOOLS, policy=NoDeleting(), audit=audit)
    registry.definitions("openai", defer=True)
    result = await registry.execute("call_tool", {"name": "delete_image", "arguments": {"path": "a"}})
    assert (result.error_code, result.metadata["rule"]) == ("denied", "no_deleting")
    dangerous = await registry.execute("call_tool", {"name": "publish_image", "arguments": {"path": "a"}})
    assert (dangerous.error_code, dangerous.metadata["rule"]) == ("approval_required", "safety_level")
    assert {event.tool for event in audit.events()} == {"delete_image", "publish_image"}


async def test_a_call_is_on_record_and_in_layers_once_as_the_tool_that_ran() -> None:
    seen: list[str] = []

    def noting(run: Runner) -> Runner:
        async def noted(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            seen.append(tool.name)
            return await run(tool, arguments, context)

        return noted

    audit = MemoryAudit()
    registry = ToolRegistry(TOOLS, audit=audit, layers=[noting])
    registry.definitions("openai", defer=True)
    await asked(registry, "call_tool", name="weather", arguments={"city": "Oslo"})
    assert seen == ["weather"]
    assert [(event.tool, event.outcome) for event in audit.events()] == [("weather", "done"), ("weather", "attempt")]


async def test_looking_is_no_run_of_what_is_found() -> None:
    audit = MemoryAudit()
    registry = ToolRegistry(TOOLS, policy=NoDeleting(), audit=audit)
    registry.definitions("openai", defer=True)
    await found(registry)
    assert {event.tool for event in audit.events()} == {"search_tools"}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ({"name": "image.crop", "arguments": {"path": 7}}, "invalid_arguments", "argument 'path' of tool 'image.crop'"),
        ({"name": "resize_image"}, "invalid_arguments", "tool 'resize_image' needs the argument 'path'"),
        ({"name": "resize_image", "arguments": "[1]"}, "invalid_arguments", "arguments of 'resize_image' must be"),
        ({"name": "resize_image", "arguments": "{"}, "invalid_arguments", "arguments of 'resize_image' are not JSON"),
        ({"name": "resize_image", "path": "a"}, "invalid_arguments", "'path'"),
        ({"arguments": {}}, "invalid_arguments", "tool 'call_tool' needs the argument 'name'"),
        ({"name": 7}, "invalid_arguments", "argument 'name' of tool 'call_tool'"),
        ({"name": "call_tool", "arguments": {"name": "weather"}}, "invalid_arguments", "not 'call_tool'; call that by"),
        ({"name": "search_tools", "arguments": {"query": "a"}}, "invalid_arguments", "not 'search_tools'"),
        ({"name": "Resize_Image", "arguments": {"path": "a"}}, "tool_not_found", "did you mean 'resize_image'?"),
        ({"name": "RESIZE_IMAGE", "arguments": {"path": "a"}}, "tool_not_found", "did you mean 'resize_image'?"),
        ({"name": "zzz"}, "tool_not_found", "no tool is called 'zzz'"),
        ({"name": ""}, "tool_not_found", "no tool is called ''"),
    ],
)  # fmt: skip
async def test_wrong_calls_are_told_in_the_words_of_the_tool_that_was_meant(
    arguments: dict[str, Any], code: str, says: str, registry: ToolRegistry
) -> None:
    registry.definitions("openai", defer=True)
    told = json.loads(await asked(registry, "call_tool", **arguments))
    assert told["error_code"] == code and says in told["error"]
    result = await registry.execute("call_tool", arguments)
    assert result.error_code == code and told["error"].startswith(str(result.error))


async def test_arguments_as_a_text_are_understood(registry: ToolRegistry) -> None:
    registry.definitions("openai", defer=True)
    assert await asked(registry, "call_tool", name="resize_image", arguments='{"path": "a"}') == "a@100"


@pytest.mark.parametrize("arguments", [{"path": "a", "width": None}, '{"path": "a", "width": null}'])
async def test_a_null_that_stands_for_what_is_not_given_is_the_default(arguments: Any) -> None:
    approved: list[Any] = []

    def approve(spec: Any, given: Any) -> bool:
        approved.append(given)
        return True

    dangerous = tool(safety_level="dangerous")(resize_image.function)
    registry = ToolRegistry([dangerous], approve=approve)
    registry.definitions("openai", defer=True)
    assert await asked(registry, "call_tool", name="resize_image", arguments=arguments) == "a@100"
    assert await asked(registry, "resize_image", path="a", width=None) == "a@100"
    assert approved == [{"path": "a"}, {"path": "a"}]


async def test_a_suggestion_names_nothing_that_is_hidden() -> None:
    registry = ToolRegistry(TOOLS, policy=NoDeleting())
    registry.definitions("openai", defer=True)
    told = json.loads(await asked(registry, "call_tool", name="Delete_Image"))
    assert (told["error_code"], "delete_image" in told["error"]) == ("tool_not_found", False)
    said = await asked(registry, "Delete_Image"), str((await registry.execute("Delete_Image")).error)
    assert all("no tool is called 'Delete_Image'" in told and "delete_image" not in told for told in said)
    said = await asked(registry, "Resize_Image"), str((await registry.execute("Resize_Image")).error)
    assert all("did you mean 'resize_image'?" in told for told in said)


async def test_the_deadline_is_that_of_the_tool_and_of_the_call(registry: ToolRegistry) -> None:
    import asyncio

    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.sleep(60)

    @tool
    async def patient() -> None:
        """Wait, without a deadline."""
        await asyncio.sleep(60)

    registry.register_many([slow, patient])
    registry.definitions("openai", defer=True)
    for name, seconds in (("slow", None), ("patient", 0.05)):
        [answer] = await registry.execute_calls(chat("call_tool", name=name), timeout_seconds=seconds)
        told = json.loads(answer["content"])
        assert told["error_code"] == "timeout" and f"'{name}'" in told["error"]


async def test_calls_by_name_stream_and_have_no_event_loop_too(registry: ToolRegistry) -> None:
    registry.definitions("openai", defer=True)
    events = [event async for event in registry.stream("call_tool", {"name": "weather", "arguments": {"city": "a"}})]
    assert events[-1].result == ToolResult(True, "rain", metadata=events[-1].result.metadata)  # type: ignore[union-attr]


def test_without_an_event_loop(registry: ToolRegistry) -> None:
    registry.definitions("openai", defer=True)
    assert registry.execute_sync("call_tool", {"name": "weather", "arguments": {"city": "a"}}).data == "rain"


async def test_through_a_framework_the_model_reads_the_same(registry: ToolRegistry) -> None:
    registry.register_many([registry.search_tool(), registry.call_tool()])
    by_name = {one.name: one for one in registry.to_langchain_tools()}
    call = {"type": "tool_call", "id": "c1", "name": "search_tools", "args": {"query": "cut"}}
    assert (await by_name["search_tools"].ainvoke(call)).content == "image.crop(path: str) - Cut a picture."
    assert await by_name["call_tool"].ainvoke({"name": "image.crop", "arguments": {"path": "a"}}) == "a cut"


# Registries made of others


async def test_a_registry_for_a_model_searches_its_own_tools(registry: ToolRegistry) -> None:
    @tool(required_capabilities=["vision"])
    async def describe_picture(path: str) -> str:
        """Describe a picture."""
        return "a cat"

    registry.register_many([describe_picture, registry.search_tool(limit=7), registry.call_tool()])
    assert "describe_picture" in await found(registry)
    blind = registry.for_model([])
    assert "describe_picture" not in await found(blind)
    assert blind.get("search_tools").spec == registry.get("search_tools").spec
    told = json.loads(await asked(blind, "call_tool", name="describe_picture", arguments={"path": "a"}))
    assert told["error_code"] == "tool_not_found"


@pytest.mark.parametrize("limit", [0, 51, -1, True, 2.5, "5", None])
def test_a_wrong_limit_is_refused(limit: Any, registry: ToolRegistry) -> None:
    with pytest.raises(ToolValidationError, match="whole number from 1 to 50"):
        registry.search_tool(limit)


# Any word


def test_any_word_finds_what_every_word_does_not(registry: ToolRegistry) -> None:
    assert registry.search(WISH) == []
    assert registry.search(WISH, any_word=True)[0] is resize_image
    assert registry.search("resize picture", any_word=True, limit=1) == [resize_image]
    assert registry.search("zebra", any_word=True) == []
    assert registry.search("", any_word=True) == TOOLS
    assert ToolRegistry().search(WISH, any_word=True) == []
