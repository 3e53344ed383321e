"""Many tools handed over: which are deferred, who searches for them, and what each provider is told."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import pytest
from anthropic.types import ToolUnionParam
from google.genai import types as gemini
from mcp.types import Tool as McpTool
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import ToolParam
from openrouter.components import ChatDynamicServerTool, ChatFunctionToolFunction
from pydantic import TypeAdapter

from toolcrib import ExportError, ToolRegistry, ToolSpec, tool
from toolcrib.formats import FORMATS, Deferring, handover

THEIR_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
EVERYBODY_ELSE = [each for each in FORMATS if each not in ("anthropic", "openai-responses", "openrouter")]


@tool(category="images", tags=["picture", "slow"])
async def resize(path: str, width: int) -> str:
    """Resize a picture."""
    return f"{path}@{width}"


@tool(name="math.root", category="math", tags=["number"])
async def root(n: float) -> float:
    """The square root."""
    return math.sqrt(n)


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return "rain"


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([resize, root, weather])


def for_anthropic(definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    TypeAdapter(list[ToolUnionParam]).validate_python(definitions)
    json.dumps(definitions)
    assert any(not each.get("defer_loading") for each in definitions), "the API refuses a list of deferred tools alone"
    return definitions


def for_responses(definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the SDK types them; it wants ``strict`` said, which the API does not."""

    def said(each: dict[str, Any]) -> dict[str, Any]:
        if each["type"] == "namespace":
            return {**each, "tools": [said(one) for one in each["tools"]]}
        return {"strict": None, **each} if each["type"] == "function" else each

    TypeAdapter(list[ToolParam]).validate_python([said(each) for each in definitions])
    json.dumps(definitions)
    return definitions


# Anthropic


def test_anthropic_searches_among_deferred_tools_and_is_told_the_pinned(registry: ToolRegistry) -> None:
    definitions = for_anthropic(registry.definitions("anthropic", defer=True, pinned=["weather"]))
    assert definitions[0] == THEIR_SEARCH
    assert {each["name"]: each.get("defer_loading", False) for each in definitions[1:]} == {
        "resize": True,
        "math_root": True,
        "weather": False,
    }


def test_all_may_be_deferred_since_the_search_is_not(registry: ToolRegistry) -> None:
    first, *others = for_anthropic(registry.definitions("anthropic", defer=True))
    assert "defer_loading" not in first and all(each["defer_loading"] for each in others)


def test_a_function_says_which_are_deferred_and_the_pinned_never_are(registry: ToolRegistry) -> None:
    definitions = registry.definitions("anthropic", defer=lambda spec: bool(spec.category), pinned=["math.root"])
    assert [each["name"] for each in definitions if each.get("defer_loading")] == ["resize"]


def test_without_anything_deferred_there_is_no_search(registry: ToolRegistry) -> None:
    for each in FORMATS:
        plain = registry.definitions(each)
        assert registry.definitions(each, defer=lambda _: False) == plain
        assert registry.definitions(each, defer=True, pinned=registry.names()) == plain
        assert ToolRegistry().definitions(each, defer=True) == ToolRegistry().definitions(each)


def test_our_own_search_at_anthropic_keeps_the_definitions_that_references_lead_to(registry: ToolRegistry) -> None:
    definitions = for_anthropic(registry.definitions("anthropic", defer=True, search="own"))
    assert [each["name"] for each in definitions] == ["search_tools", "resize", "math_root", "weather"]
    assert [each.get("defer_loading", False) for each in definitions] == [False, True, True, True]


def test_a_registered_search_is_the_one_that_is_used(registry: ToolRegistry) -> None:
    registry.register(registry.search_tool(limit=3))
    definitions = for_anthropic(registry.definitions("anthropic", defer=True))
    assert [each["name"] for each in definitions] == ["search_tools", "resize", "math_root", "weather"]
    assert definitions[0]["input_schema"]["properties"]["limit"]["default"] == 3
    names = [each["function"]["name"] for each in registry.definitions("openai", defer=True, pinned=["weather"])]
    assert names == ["search_tools", "call_tool", "weather"]


def test_a_mark_for_the_cache_is_never_on_a_deferred_definition(registry: ToolRegistry) -> None:
    """A provider refuses the two together; the mark goes to the last definition that is told."""

    def marked(**options: Any) -> list[tuple[str, bool]]:
        definitions = for_anthropic(registry.definitions("anthropic", defer=True, cache=True, **options))
        assert not any(each.keys() >= {"cache_control", "defer_loading"} for each in definitions)
        return [(each["name"], "defer_loading" in each) for each in definitions if "cache_control" in each]

    assert marked(pinned=["resize"]) == [("resize", False)]
    assert marked(pinned=["weather"]) == [("weather", False)]
    assert marked(pinned=["resize"], search="own") == [("resize", False)]
    assert marked() == [("tool_search_tool_bm25", False)]
    assert marked(search="own") == [("search_tools", False)]
    with pytest.raises(ExportError, match="leave out cache=True"):
        registry.definitions("openai", defer=True, cache=True)


# OpenAI Responses


def test_responses_defers_and_searches(registry: ToolRegistry) -> None:
    definitions = for_responses(registry.definitions("openai-responses", defer=True, pinned=["weather"]))
    assert definitions[0] == {"type": "tool_search"}
    assert [(each["name"], each.get("defer_loading", False)) for each in definitions[1:]] == [
        ("resize", True),
        ("math_root", True),
        ("weather", False),
    ]


def test_namespaces_by_category_by_tag_and_by_a_function(registry: ToolRegistry) -> None:
    handed = registry.handover("openai-responses", defer=True, namespaces="category")
    search, images, numbers, alone = for_responses(handed.definitions)
    assert (images["type"], images["name"], numbers["name"]) == ("namespace", "images", "math")
    assert "resize" in images["description"] and "defer_loading" not in images
    assert [(each["name"], each["defer_loading"]) for each in images["tools"]] == [("resize", True)]
    assert (search["type"], alone["name"]) == ("tool_search", "weather")
    assert not any(loss.field == "namespace" for loss in handed.losses)
    by_tag = registry.definitions("openai-responses", defer=True, namespaces="tag")
    assert [each["name"] for each in by_tag if each["type"] == "namespace"] == ["picture", "number"]
    together = registry.definitions("openai-responses", defer=True, namespaces=lambda _: "all", pinned=["weather"])
    [space] = [each for each in for_responses(together) if each["type"] == "namespace"]
    assert [each.get("defer_loading", False) for each in space["tools"]] == [True, True, False]


def test_namespaces_need_nothing_deferred(registry: ToolRegistry) -> None:
    definitions = for_responses(registry.definitions("openai-responses", namespaces="category"))
    assert [each["name"] for each in definitions] == ["images", "math", "weather"]


def test_the_description_of_a_large_namespace_is_short() -> None:
    specs = [ToolSpec(name=f"tool_{number}", description="d", category="all") for number in range(500)]
    hand_over = partial(handover, format="openai-responses")
    handed = Deferring(True, namespaces="category").handover(specs, "openai-responses", hand_over)
    description = handed.definitions[1]["description"]
    assert description.startswith("Tools: tool_0, tool_1,") and "more" in description and len(description) < 1_100


def test_our_own_search_at_responses_is_a_client_search_and_lists_nothing_deferred(registry: ToolRegistry) -> None:
    handed = registry.handover("openai-responses", defer=True, pinned=["weather"], search="own")
    search, listed = for_responses(handed.definitions)
    assert (search["type"], search["execution"]) == ("tool_search", "client")
    assert search["parameters"]["required"] == ["query"] and search["description"]
    assert listed["name"] == "weather"
    assert handed.resolve("math_root") == "math.root", "it can be called once it is found"


def test_what_our_search_brings_is_not_strict_and_that_is_told(registry: ToolRegistry) -> None:
    for search, told in (("own", {"resize", "math.root"}), ("provider", set[str]())):
        handed = registry.handover("openai-responses", strict=True, defer=True, pinned=["weather"], search=search)  # type: ignore[arg-type]
        assert {loss.tool for loss in handed.losses if "without 'strict'" in loss.reason} == told
    plain = registry.handover("openai-responses", defer=True, pinned=["weather"], search="own")
    assert not any("strict" in loss.reason for loss in plain.losses)


def test_two_tools_that_a_search_would_find_under_one_name_are_refused() -> None:
    tools = [ToolSpec(name=name, description="d") for name in ("math.root", "math_root")]
    hand_over = partial(handover, format="openai-responses")
    with pytest.raises(ExportError, match="both called 'math_root'"):
        Deferring(True, search="own").handover(tools, "openai-responses", hand_over)


# OpenRouter


def test_openrouter_searches_among_deferred_tools_and_is_told_the_pinned(registry: ToolRegistry) -> None:
    handed = registry.handover("openrouter", defer=True, pinned=["weather"])
    search, *tools = handed.definitions
    assert ChatDynamicServerTool.model_validate(search).type == "openrouter:tool_search"
    taken = [ChatFunctionToolFunction.model_validate(each) for each in tools]
    assert [(each.function.name, each.defer_loading) for each in taken] == [
        ("resize", True),
        ("math_root", True),
        ("weather", None),
    ]
    assert handed.resolve("math_root") == "math.root"


def test_our_own_search_at_openrouter_brings_the_call_of_what_it_finds(registry: ToolRegistry) -> None:
    own = registry.definitions("openrouter", defer=True, pinned=["weather"], search="own")
    assert [each["function"]["name"] for each in own] == ["search_tools", "call_tool", "weather"]
    assert not any("defer_loading" in each for each in own)


# Everybody else


@pytest.mark.parametrize("format", EVERYBODY_ELSE)
def test_everybody_else_gets_our_search_and_the_call_of_what_it_finds(format: str, registry: ToolRegistry) -> None:
    handed = registry.handover(format, defer=True, pinned=["weather"])
    assert list(handed.names.values()) == ["search_tools", "call_tool", "weather"]
    listed = ToolRegistry([registry.search_tool(), registry.call_tool(), weather])
    assert handed.definitions == listed.definitions(format)


def test_they_are_definitions_that_the_providers_take(registry: ToolRegistry) -> None:
    chat = registry.definitions("openai", defer=True, pinned=["weather"])
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(chat)
    gemini.Tool.model_validate({"function_declarations": registry.definitions("gemini", defer=True)})
    for each in registry.definitions("mcp", defer=True):
        McpTool.model_validate(each)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("search", ["provider", "own"])
def test_what_a_format_cannot_say_of_namespaces_is_a_loss(format: str, search: Any, registry: ToolRegistry) -> None:
    handed = registry.handover(format, defer=True, namespaces="category", search=search)
    lost = {loss.tool for loss in handed.losses if loss.field == "namespace"}
    assert lost == (set() if (format, search) == ("openai-responses", "provider") else {"resize", "math.root"})


def test_the_same_bytes_every_time(registry: ToolRegistry) -> None:
    for each in FORMATS:
        first = json.dumps(registry.definitions(each, defer=True, namespaces="category"))
        assert json.dumps(registry.definitions(each, defer=True, namespaces="category")) == first


def test_the_definitions_are_the_callers(registry: ToolRegistry) -> None:
    for each in ("anthropic", "openai-responses", "openai"):
        registry.definitions(each, defer=True, search="own")[0].clear()
        registry.definitions(each, defer=True)[0].clear()
        assert registry.definitions(each, defer=True)[0]
        assert registry.definitions(each, defer=True, search="own")[0]


# What makes no sense


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stict": True}, "definitions have no option 'stict'; did you mean 'strict'?"),
        ({"defer": True, "pined": ["weather"]}, "definitions have no option 'pined'; did you mean 'pinned'?"),
        ({"defer": "yes"}, "defer is True, False, or a function of a spec, not 'yes'"),
        ({"defer": True, "pinned": ["wether"]}, "no tool is called 'wether', which is pinned; did you mean 'weather'?"),
        ({"pinned": ["Weather"]}, "did you mean 'weather'?"),
        ({"defer": True, "pinned": "weather"}, "pinned is a list of names, not 'weather'"),
        ({"defer": True, "pinned": 7}, "pinned is a list of names, not 7"),
        ({"defer": True, "pinned": [["weather"]]}, "pinned is a list of names, and ['weather'] in it is none"),
        ({"defer": True, "namespaces": "server"}, "'category', 'tag', or a function of a spec, not 'server'"),
        ({"defer": True, "namespaces": ["a"]}, "'category', 'tag', or a function of a spec"),
        ({"defer": True, "search": "ours"}, "search is 'provider' or 'own', not 'ours'"),
        (
            {"defer": True, "namespaces": lambda _: 7},
            "a namespace is text or None, not 7, which was given for 'resize'",
        ),
    ],
)
@pytest.mark.parametrize("format", ["anthropic", "openai-responses", "openai"])
def test_wrong_options_are_told_in_one_sentence(
    format: str, options: dict[str, Any], says: str, registry: ToolRegistry
) -> None:
    with pytest.raises(ExportError) as told:
        registry.definitions(format, **options)
    assert says in told.value.message and "\n" not in told.value.message


@pytest.mark.parametrize(
    ("space", "says"),
    [
        ("web scraping", "does not allow the namespace 'web scraping', which tool 'resize' is in"),
        ("x" * 65, "64 letters, digits"),
        ("weather", "the namespace 'weather' of tool 'resize' has the name that tool 'weather' has"),
    ],
)
def test_namespaces_that_the_provider_forbids_or_that_collide(space: str, says: str, registry: ToolRegistry) -> None:
    options: dict[str, Any] = {
        "defer": True, "namespaces": lambda spec: space if spec.name == "resize" else None,
    }  # fmt: skip
    with pytest.raises(ExportError, match=says):
        registry.definitions("openai-responses", **options)
    registry.definitions("anthropic", **options)


def test_tools_that_have_the_names_of_the_search() -> None:
    for name, provider, search in [
        ("search_tools", "openai", "provider"),
        ("call_tool", "openai", "provider"),
        ("search_tools", "anthropic", "own"),
        ("search_tools", "openai-responses", "own"),
        ("tool_search_tool_bm25", "anthropic", "provider"),
        ("search.tools", "anthropic", "own"),
        ("search.tools", "openai-responses", "own"),
    ]:
        registry = ToolRegistry()
        registry.register(tool(name=name)(resize.function))
        with pytest.raises(ExportError, match=name):
            registry.definitions(provider, defer=True, search=search)  # type: ignore[arg-type]
    registry = ToolRegistry([tool(name="call_tool")(resize.function)])
    for_anthropic(registry.definitions("anthropic", defer=True, search="own"))
