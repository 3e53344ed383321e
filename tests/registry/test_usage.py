"""What the tools of a registry were used for: exact counts, honest percentiles, bounded memory."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from toolcrib import ExportError, Image, ToolRegistry, ToolResult, Usage, tool
from toolcrib.calling.usage import CALLS_MEASURED, UNKNOWN, UsageCounter
from toolcrib.core.counting import estimated_tokens
from toolcrib.core.json import as_text


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def fail() -> None:
    """Fail."""
    raise ValueError("broken")


@tool
async def never() -> None:
    """Never called."""


def chat(*calls: tuple[str, str]) -> dict[str, Any]:
    made = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


async def test_every_call_counts_also_those_that_were_refused() -> None:
    registry = ToolRegistry([add, fail, never], clock=lambda: 1_800_000_000.0)
    await registry.execute("add", {"a": 1, "b": 2})
    await registry.execute("add", {"a": 1})
    await registry.execute("add", {"a": "one", "b": 2})
    await registry.execute("fail")
    usage = registry.usage()
    assert list(usage) == ["add", "fail", "never"]
    assert (usage["add"].calls, usage["add"].errors, usage["add"].errors_by_code) == (3, 2, {"invalid_arguments": 2})
    assert (usage["fail"].calls, usage["fail"].errors_by_code) == (1, {"tool_failed": 1})
    last_used = usage["add"].last_used
    assert last_used is not None and last_used.tzinfo is UTC
    assert 1_800_000_000 - 60 < last_used.timestamp() <= 1_800_000_000
    assert (usage["never"].calls, usage["never"].last_used, usage["never"].p50) == (0, None, None)
    assert usage["add"].p50 is not None and usage["fail"].p95 is not None


async def test_a_call_that_did_not_run_has_no_time() -> None:
    registry = ToolRegistry([add])
    await registry.execute("add", {})
    assert (registry.usage()["add"].calls, registry.usage()["add"].p50) == (1, None)


async def test_a_tool_that_says_no_itself_is_an_error() -> None:
    @tool
    async def refuse() -> ToolResult:
        """Refuse."""
        return ToolResult.failure_result("no", "made_up")

    registry = ToolRegistry([refuse])
    await registry.execute("refuse")
    usage = registry.usage()["refuse"]
    assert (usage.calls, usage.errors_by_code) == (1, {"made_up": 1})
    assert usage.p50 is not None


async def test_invented_names_and_codes_are_bounded() -> None:
    @tool
    async def refuse(code: str) -> ToolResult:
        """Refuse."""
        return ToolResult.failure_result("no", code)

    registry = ToolRegistry([refuse])
    for number in range(200):
        await registry.execute(f"invented-{number}")
        await registry.execute("refuse", {"code": f"code-{number}"})
    await registry.execute(["no", "name"])  # type: ignore[arg-type]
    usage = registry.usage()
    assert set(usage) == {"refuse", UNKNOWN}
    assert usage[UNKNOWN].calls == usage[UNKNOWN].errors == 201
    assert usage["refuse"].errors == 200
    assert len(usage["refuse"].errors_by_code) == 51


async def test_a_call_with_a_deadline_that_is_none_is_counted() -> None:
    registry = ToolRegistry([never])
    assert (await registry.execute("never", timeout_seconds=-1)).error_code == "invalid_arguments"
    assert registry.usage()["never"].errors == 1


def test_the_tools_of_a_registry_that_changes_all_the_time_are_bounded() -> None:
    counter = UsageCounter()
    for number in range(10_050):
        counter.went_well(f"tool-{number}", 1.0, 0.1)
    found = counter.taken()
    assert (len(found), "tool-0" in found, "tool-10049" in found) == (10_000, False, True)


def test_percentiles_are_those_of_the_latest_runs() -> None:
    counter = UsageCounter()
    for milliseconds in range(1, 101):
        counter.went_well("add", 0.0, milliseconds / 1000)
    assert (counter.taken()["add"].p50, counter.taken()["add"].p95) == (0.05, 0.095)
    for _ in range(CALLS_MEASURED):
        counter.went_well("add", 0.0, 7.0)
    usage = counter.taken()["add"]
    assert (usage.calls, usage.p50, usage.p95) == (100 + CALLS_MEASURED, 7.0, 7.0)


def test_threads_lose_no_call_also_while_others_ask_and_reset() -> None:
    registry = ToolRegistry([add, fail])
    before: list[Usage] = []
    done = threading.Event()

    def work() -> None:
        async def calls() -> None:
            for _ in range(400):
                await registry.execute("add", {"a": 1, "b": 2})
                await registry.execute("fail")

        asyncio.run(calls())

    def ask() -> None:
        while not done.is_set():
            before.extend(registry.usage(reset=True).values())

    workers = [threading.Thread(target=work) for _ in range(4)]
    asker = threading.Thread(target=ask)
    for thread in (*workers, asker):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    asker.join()
    parts = [*before, *registry.usage().values()]
    assert sum(usage.calls for usage in parts) == 2 * 4 * 400
    assert sum(usage.errors for usage in parts) == 4 * 400


async def test_reset_begins_anew() -> None:
    registry = ToolRegistry([add])
    await registry.execute_calls(chat(("add", '{"a": 1, "b": 2}'), ("nothing", "{}")))
    assert registry.usage(reset=True)["add"].calls == 1
    again = registry.usage()
    assert again == {"add": Usage(definition_tokens=again["add"].definition_tokens)}


async def test_a_registry_for_a_model_counts_with_its_source() -> None:
    registry = ToolRegistry([add, fail])
    fitting = registry.for_model([])
    await fitting.execute("add", {"a": 1, "b": 2})
    await registry.execute("add", {"a": 1, "b": 2})
    assert registry.usage()["add"].calls == fitting.usage()["add"].calls == 2


@pytest.mark.parametrize("format", ["openai", "anthropic", "gemini", "compact", "openapi"])
async def test_definitions_are_counted_as_they_were_handed_out(format: str) -> None:
    registry = ToolRegistry([add], count_tokens=len)
    definitions = registry.definitions(format)
    assert registry.usage()["add"].definition_tokens == len(as_text(definitions[0]))
    with pytest.raises(ExportError):
        registry.definitions("no such format")
    assert registry.usage()["add"].definition_tokens == len(as_text(definitions[0]))


@pytest.mark.parametrize(
    "message",
    [
        chat(("add", '{"a": 20, "b": 22}')),
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 20, "b": 22}'},
        {"type": "tool_use", "id": "c", "name": "add", "input": {"a": 20, "b": 22}},
    ],
)
async def test_answers_are_counted_as_a_model_reads_them(message: Any) -> None:
    registry = ToolRegistry([add], count_tokens=len)
    message = message if "role" in message else [message]
    await registry.execute_calls(message)
    await registry.execute_calls(message)
    assert registry.usage()["add"].result_tokens == 2 * len("42")


async def test_answers_of_gemini_are_counted_and_media_are_not() -> None:
    @tool
    async def chart() -> list[Any]:
        """A chart."""
        return ["a week", Image(b"\x89PNG" * 100_000, "image/png")]

    registry = ToolRegistry([chart])
    await registry.execute_call("anthropic", {"type": "tool_use", "id": "c", "name": "chart", "input": {}})
    assert registry.usage(reset=True)["chart"].result_tokens == estimated_tokens("a week")
    await registry.execute_call("gemini", {"functionCall": {"name": "chart", "args": {}}})
    assert 0 < registry.usage()["chart"].result_tokens < 20


async def test_answers_to_invented_names_cost_tokens_too() -> None:
    registry = ToolRegistry([add])
    await registry.execute_calls(chat(("nothing", "{}"), ("add", "{broken"), ("functions.add", "[]")))
    usage = registry.usage()
    assert usage[UNKNOWN].calls == 2 and usage[UNKNOWN].result_tokens > 0
    assert (usage["add"].calls, usage["add"].errors_by_code) == (1, {"invalid_arguments": 1})


async def test_answers_to_calls_that_cannot_be_made_are_those_of_the_tool_that_is_meant() -> None:
    registry = ToolRegistry([tool(name="math.add")(add.function)], count_tokens=len)
    [answer] = await registry.execute_calls(chat(("math_add", "{broken")))
    usage = registry.usage()
    assert (usage["math.add"].errors, usage["math.add"].result_tokens) == (1, len(answer["content"]))
    assert UNKNOWN not in usage


async def test_a_tokenizer_that_raises_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> int:
        raise KeyError(text)

    registry = ToolRegistry([add], count_tokens=broken)
    [answer] = await registry.execute_calls(chat(("add", '{"a": 1, "b": 2}')))
    assert (answer["content"], registry.usage()["add"].result_tokens) == ("3", 1)
    assert "count_tokens raised" in caplog.text


async def test_as_text_it_is_a_table() -> None:
    registry = ToolRegistry([never, add], clock=lambda: 86_400.0)
    await registry.execute("add", {"a": 1, "b": 2})
    head, first, second = str(registry.usage()).splitlines()
    assert head.split("  ")[0] == "tool" and head.endswith("last used")
    assert first.startswith("add") and "  1970-01-0" in first
    assert second.startswith("never") and second.endswith("-")


@pytest.mark.parametrize("run", [lambda registry: registry.execute_sync("add", {"a": 1, "b": 2})])
def test_calls_without_a_loop_count(run: Callable[[ToolRegistry], ToolResult]) -> None:
    registry = ToolRegistry([add])
    assert run(registry).success
    assert registry.usage()["add"].calls == 1
