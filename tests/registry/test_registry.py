"""The live registry: keeping, finding, listening, and what happens when something is wrong."""

import logging
import threading
from typing import Any

import pytest

from toolcrib import (
    InvalidQueryError,
    ModelCapability,
    Tool,
    ToolExistsError,
    ToolNotFoundError,
    ToolRegistry,
    ToolValidationError,
    tool,
)


def make(name: str, **fields: Any) -> Tool:
    async def run(n: int = 1) -> int:
        return n

    return tool(**{"name": name, "description": f"The tool {name}.", **fields})(run)


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry(
        [
            make("read-file", category="file-system", tags=["file", "read"], description="Read a file from disk."),
            make("write-file", category="file-system", tags=["file", "write"], description="Write a file."),
            make("http-get", category="web", tags=["read", "net"], metadata={"supports_streaming": True}),
            make("look", required_capabilities=["vision"], optimal_capabilities=["multi_image_vision"]),
        ]
    )


def names(tools: Any) -> list[str]:
    return [each.name for each in tools]


def test_it_is_a_container(registry: ToolRegistry) -> None:
    assert len(registry) == 4 and "look" in registry and "nobody" not in registry
    assert names(registry) == ["read-file", "write-file", "http-get", "look"]
    assert registry["look"] is registry.get("look")
    assert registry.has("look") and not registry.has("nobody")


def test_a_missing_tool_is_a_key_error_that_suggests(registry: ToolRegistry) -> None:
    with pytest.raises(ToolNotFoundError, match=r"no tool is called 'red-file'; did you mean 'read-file'\?") as caught:
        registry.get("red-file")
    assert isinstance(caught.value, KeyError)
    assert not registry.remove("nobody")


def test_names_are_unique_and_stay(registry: ToolRegistry) -> None:
    with pytest.raises(ToolExistsError, match="'look' exists already"):
        registry.register(make("look"))
    with pytest.raises(ToolValidationError, match="names stay"):
        registry.update("look", make("see"))
    with pytest.raises(ToolNotFoundError):
        registry.update("nobody", make("nobody"))
    newer = make("look", description="Newer.")
    assert registry.update("look", newer) is newer
    assert names(registry)[3] == "look"


@pytest.mark.parametrize("wrong", ["taken", "twice", "not a tool"])
def test_register_many_is_all_or_nothing(registry: ToolRegistry, wrong: str) -> None:
    told: list[Any] = []
    registry.on("tool:registered", told.append)
    last: Any = {"taken": make("look"), "twice": make("new"), "not a tool": object()}[wrong]
    with pytest.raises((ToolExistsError, ToolValidationError)):
        registry.register_many([make("new"), last])
    assert len(registry) == 4 and "new" not in registry and told == []
    registry.register_many([make("new"), make("newer")])
    assert len(registry) == 6 and len(told) == 2


def test_filters(registry: ToolRegistry) -> None:
    assert names(registry.get_by_category("file-system")) == ["read-file", "write-file"]
    assert names(registry.get_by_tag("read")) == ["read-file", "http-get"]
    assert names(registry.filter(tags=["file", "read"])) == ["read-file"], "all of the tags"
    assert names(registry.filter(name_pattern=".*-file")) == ["read-file", "write-file"]
    assert names(registry.filter(category="web", tags=["net"], name_pattern="http")) == ["http-get"]
    assert names(registry.filter(required_capabilities=["vision"])) == ["look"]
    assert names(registry.filter(supports_streaming=True)) == ["http-get"], "a field of the free metadata"
    assert names(registry.filter(deprecated=False)) == names(registry)
    with pytest.raises(InvalidQueryError, match="'categry'; did you mean 'category'"):
        registry.filter(categry="web")
    assert names(registry.filter(tags="read")) == ["read-file", "http-get"], "one tag"
    assert registry.filter(tags=3) == [], "no tag"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("file", []), ("(?i)READ|look", ["read-file", "look"]), ("x|.*-file$", ["read-file", "write-file"])],
)
def test_a_name_pattern_is_matched_from_the_start(registry: ToolRegistry, pattern: str, found: list[str]) -> None:
    assert names(registry.filter(name_pattern=pattern)) == found


def test_no_name_pattern_takes_forever(registry: ToolRegistry) -> None:
    registry.register(make("a" * 60 + "-"))
    assert registry.filter(name_pattern="(a+)+$") == []


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "(?=a)", 3])
def test_what_is_no_name_pattern_is_refused(registry: ToolRegistry, pattern: Any) -> None:
    with pytest.raises(InvalidQueryError, match="name_pattern is wrong: .*regular expression"):
        registry.filter(name_pattern=pattern)


def test_search_ranks_names_over_tags_over_descriptions(registry: ToolRegistry) -> None:
    assert names(registry.search("file")) == ["read-file", "write-file"]
    assert names(registry.search("READ")) == ["read-file", "http-get"]
    assert names(registry.search("disk")) == ["read-file"]
    assert names(registry.search("file disk")) == ["read-file"], "every word"
    assert registry.search("zebra") == []
    assert len(registry.search("")) == 4
    assert names(registry.search("file", limit=1)) == ["read-file"]


def test_for_model_says_why(registry: ToolRegistry) -> None:
    text_only = registry.for_model([ModelCapability.TEXT_GENERATION])
    assert names(text_only) == ["read-file", "write-file", "http-get"]
    assert text_only.left_out == {"look": "needs vision, which the model lacks"}
    seeing = registry.for_model(["vision"])
    assert "look" in seeing and seeing.left_out == {}
    assert seeing.suboptimal == {"look": "works best with multi_image_vision, which the model lacks"}


def test_events_in_order_and_a_handler_that_raises_harms_nobody(
    registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[str, str]] = []

    def note(event: Any) -> None:
        told.append((event.event, getattr(getattr(event, "tool", None), "name", "")))

    def broken(event: Any) -> None:
        raise RuntimeError("handler")

    for name in ("tool:registered", "tool:updated", "tool:removed", "registry:cleared"):
        registry.on(name, broken)
        registry.on(name, note)
    with caplog.at_level(logging.ERROR):
        registry.register(make("new"))
        registry.update("new", make("new"))
        registry.remove("new")
        registry.clear()
    assert told == [
        ("tool:registered", "new"),
        ("tool:updated", "new"),
        ("tool:removed", "new"),
        ("registry:cleared", ""),
    ]
    assert len(registry) == 0 and "a handler of 'tool:registered' raised" in caplog.text
    registry.off("tool:registered", note)
    registry.off("tool:registered", note)
    registry.register(make("new"))
    assert len(told) == 4
    with pytest.raises(ToolValidationError, match="no event 'tool:register'; did you mean 'tool:registered'"):
        registry.on("tool:register", note)


def test_many_threads_lose_nothing(registry: ToolRegistry) -> None:
    taken: list[str] = []

    def add(start: int) -> None:
        for n in range(200):
            registry.register(make(f"t-{start}-{n}"))
            registry.search("t")
            try:
                registry.register(make(f"shared-{n}"))
            except ToolExistsError:
                taken.append(f"shared-{n}")

    threads = [threading.Thread(target=add, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry) == 4 + 4 * 200 + 200
    assert len(taken) == 3 * 200


def test_replace_takes_the_place_of_a_tool_and_says_so() -> None:
    first, second = (tool(name="same", description=text)(lambda: None) for text in ("first", "second"))
    registry, heard = ToolRegistry([first]), []
    for event in ("tool:registered", "tool:updated"):
        registry.on(event, lambda told: heard.append((told.event, told.tool.description)))
    with pytest.raises(ToolExistsError, match="replace=True"):
        registry.register(second)
    assert registry.get("same") is first
    registry.register(second, replace=True)
    registry.register(tool(name="new", description="new")(lambda: None), replace=True)
    assert registry.get("same") is second
    assert heard == [("tool:updated", "second"), ("tool:registered", "new")]
