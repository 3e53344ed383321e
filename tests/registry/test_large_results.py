"""Results that are too long for a model: what it reads instead, and how it reads the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import (
    Audio,
    File,
    Image,
    Link,
    ToolContext,
    ToolExistsError,
    ToolRegistry,
    ToolResult,
    ToolValidationError,
    tool,
)
from toolcrib.core.content import Json
from toolcrib.core.excerpts import beginning, outline
from toolcrib.core.json import as_text
from toolcrib.formats.table import provider_named
from toolcrib.registry import large_results
from toolcrib.registry.large_results import LargeResults, takes_all

PNG = b"\x89PNG\r\n\x1a\n" + b"\xff" * 3000


@tool
async def rows(n: int) -> dict[str, Any]:
    """Rows."""
    return {"rows": [{"id": number, "name": f"name {number}"} for number in range(n)], "total": n}


@tool
async def lines(n: int) -> str:
    """Lines."""
    return "".join(f"line {number}\n" for number in range(n))


@tool
async def breaks(n: int) -> str:
    """Break with a long story."""
    raise ValueError("x" * n)


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([rows, lines, breaks], max_result_characters=500)


async def asked(registry: ToolRegistry, name: str, /, *, principal: str = "", **arguments: Any) -> str:
    """What Anthropic's model reads."""
    call = {"type": "tool_use", "id": "t1", "name": name, "input": arguments}
    answer = await registry.execute_call("anthropic", call, context=ToolContext(principal))
    content: str = answer["content"]
    return content


def handle_in(text: str) -> str:
    found = re.search(r'read_result\(handle="([^"]+)"', text)
    assert found, text
    return found[1]


# What a model reads


async def test_of_a_long_text_the_model_reads_whole_lines_and_then_the_rest(registry: ToolRegistry) -> None:
    whole = (await registry.execute("lines", {"n": 300})).data
    answer = await asked(registry, "lines", n=300)
    start, _, note = answer.rpartition("\n\n[")
    assert whole.startswith(start) and start.endswith("\n") and 400 <= len(start) <= 500
    assert note.startswith(f"The result has {len(whole):,} characters; this is the beginning. ")
    read, handle = start, handle_in(answer)
    while more := re.search(r"offset=(\d+)\)", answer):
        assert int(more[1]) == len(read)
        answer = await asked(registry, "read_result", handle=handle, offset=len(read))
        read += answer.rpartition("\n\n[")[0]
    assert read == whole and answer.endswith("[This is the end of the result.]")


async def test_of_long_json_the_model_reads_an_outline_and_any_part(registry: ToolRegistry) -> None:
    answer = await asked(registry, "rows", n=1000)
    shown, _, note = answer.partition("\n\n")
    value = json.loads(shown)
    assert value["total"] == 1000 and value["rows"][0] == {"id": 0, "name": "name 0"}
    assert len(shown) <= 500 and f"'/rows' shows {len(value['rows'])} of 1,000 items" in note
    assert note.endswith(f'pointer="/rows/{len(value["rows"])}"), or all of it as text with offset=0.]')
    handle = handle_in(answer)
    part = await asked(registry, "read_result", handle=handle, pointer="/rows/999")
    assert json.loads(part) == {"id": 999, "name": "name 999"}
    assert await asked(registry, "read_result", handle=handle, pointer="/rows/7/name") == "name 7"
    again = await asked(registry, "read_result", handle=handle, pointer="/rows")
    assert "'/rows' shows" in again and handle_in(again) == handle
    text = await asked(registry, "read_result", handle=handle, pointer="/rows", offset=10)
    assert "these are 10 to" in text and 'pointer="/rows")' in text
    from_the_start = await asked(registry, "read_result", handle=handle)
    assert from_the_start.startswith('{"rows": [{"id": 0')


async def test_a_long_failure_is_shortened_too(registry: ToolRegistry) -> None:
    answer = await asked(registry, "breaks", n=10_000)
    assert len(answer) < 800 and "tool 'breaks' failed: ValueError: xxx" in answer
    assert (await asked(registry, "read_result", handle=handle_in(answer), offset=500)).startswith("xxx")


async def test_what_is_short_enough_is_as_it_was(registry: ToolRegistry) -> None:
    assert await asked(registry, "rows", n=1) == '{"rows": [{"id": 0, "name": "name 0"}], "total": 1}'
    assert await asked(registry, "lines", n=2) == "line 0\nline 1\n"


async def test_programs_get_the_whole_result(registry: ToolRegistry) -> None:
    assert len((await registry.execute("rows", {"n": 1000})).data["rows"]) == 1000
    events = [event async for event in registry.stream("rows", {"n": 1000})]
    assert events[-1].result is not None and len(events[-1].result.data["rows"]) == 1000


async def test_frameworks_are_given_what_a_model_reads(registry: ToolRegistry) -> None:
    pytest.importorskip("langchain_core")
    tools = {each.name: each for each in registry.to_langchain_tools()}
    answer = str(await tools["rows"].ainvoke({"n": 1000}))
    assert "1,000 items" in answer and len(answer) < 1000
    part = await tools["read_result"].ainvoke({"handle": handle_in(answer), "pointer": "/rows/7/name"})
    assert "name 7" in str(part)


@pytest.mark.parametrize("format", ["openai", "openai-responses", "openrouter", "anthropic", "gemini", "mcp"])
async def test_every_format(format: str, registry: ToolRegistry) -> None:
    assert [each for each in json.dumps(registry.definitions(format)).split('"') if each == "read_result"]
    call = {"id": "1", "name": "rows", "arguments": {"n": 1000}, "input": {"n": 1000}, "args": {"n": 1000}}
    answer = json.dumps(await registry.execute_call(format, call))
    assert "1,000 items" in answer and len(answer) < 2000


# Whose limit


async def test_without_a_limit_nothing_is_cut_and_no_tool_is_added() -> None:
    registry = ToolRegistry([rows])
    assert "read_result" not in registry
    assert len(await asked(registry, "rows", n=10_000)) > 100_000


async def test_a_tools_own_limit_wins_and_brings_the_tool_that_reads() -> None:
    generous, strict = lines.with_spec(lines.spec.with_changes(max_result_characters=5000)), rows
    registry = ToolRegistry([generous, strict], max_result_characters=100)
    assert "read_result" not in await asked(registry, "lines", n=200)
    assert "read_result" in await asked(registry, "rows", n=200)
    own = ToolRegistry()
    own.register(generous)
    assert list(own.names()) == ["lines", "read_result"]
    assert "read_result" in await asked(own, "lines", n=2000)


async def test_what_no_tool_could_read_is_not_cut(registry: ToolRegistry) -> None:
    registry.remove("read_result")
    assert len(await asked(registry, "lines", n=1000)) > 5000
    fitting = ToolRegistry([lines], max_result_characters=10).for_model([])
    assert "read_result" in await asked(fitting, "lines", n=1000)


async def test_the_tools_of_several_registries_are_read_by_one_tool() -> None:
    own = lines.with_spec(lines.spec.with_changes(name="own", max_result_characters=50))
    one, other = ToolRegistry([own]), ToolRegistry([rows], max_result_characters=100)
    both = ToolRegistry([*one, *other], max_result_characters=80)
    assert sorted(both.names()) == ["own", "read_result", "rows"]
    for name in ("own", "rows"):
        assert await asked(both, "read_result", handle=handle_in(await asked(both, name, n=300)), offset=1)
    one.register_many(other)
    assert "read_result" in await asked(one, "own", n=300)
    assert list(ToolRegistry(other).names()) == ["rows"], "nothing is cut in it"


async def test_another_tool_of_that_name_is_refused() -> None:
    @tool(name="read_result")
    async def mine() -> None:
        """Mine."""

    with pytest.raises(ToolExistsError, match="read_result"):
        ToolRegistry([mine], max_result_characters=10)


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "many"])
def test_a_limit_is_a_whole_number_above_0(most: Any) -> None:
    with pytest.raises(ToolValidationError, match="max_result_characters"):
        ToolRegistry(max_result_characters=most)


# With tools that the model finds by itself


async def test_what_reads_results_is_never_deferred(registry: ToolRegistry) -> None:
    for speaker, mark in [("anthropic", "input_schema"), ("openai", "function"), ("openai-responses", "parameters")]:
        handed = registry.definitions(speaker, defer=True)
        listed = {each.get("name") or each.get("function", {}).get("name"): each for each in handed if mark in each}
        assert "defer_loading" not in listed["read_result"]


async def test_results_of_tools_that_were_found_are_shortened_once(registry: ToolRegistry) -> None:
    registry.register_many([registry.search_tool(), registry.call_tool()])
    answer = await asked(registry, "call_tool", name="rows", arguments={"n": 1000})
    again = {"handle": handle_in(answer), "offset": 10}
    page = await asked(registry, "call_tool", name="read_result", arguments=again)
    assert handle_in(page) == handle_in(answer) and page.count("read_result(") == 1
    generous = rows.with_spec(rows.spec.with_changes(name="generous", max_result_characters=10**6))
    registry.register(generous)
    assert "read_result" not in await asked(registry, "call_tool", name="generous", arguments={"n": 1000})


async def test_what_a_search_finds_is_not_cut() -> None:
    many = [rows.with_spec(rows.spec.with_changes(name=f"rows_{n}", description="Rows " * 50)) for n in range(20)]
    registry = ToolRegistry(many, max_result_characters=100)
    registry.register(registry.search_tool())
    call = {"type": "tool_use", "id": "t1", "name": "search_tools", "input": {"query": "rows", "limit": 5}}
    answer = await registry.execute_call("anthropic", call)
    assert [block["type"] for block in answer["content"]] == ["tool_reference"] * 5


# Media


@tool
async def mixed() -> list[Any]:
    """Of every kind."""
    return ["words " * 200, Image(PNG), Audio(PNG), File(PNG, "application/pdf"), Link("https://example.org")]


@pytest.mark.parametrize(
    ("format", "kept"),
    [("openai", 0), ("openai-responses", 2), ("anthropic", 2), ("gemini", 2), ("mcp", 3)],
)
async def test_media_stay_where_the_provider_takes_them(format: str, kept: int) -> None:
    registry = ToolRegistry([mixed], max_result_characters=500)
    call = {"id": "1", "name": "mixed", "arguments": {}, "input": {}, "args": {}}
    answer = json.dumps(await registry.execute_call(format, call))
    assert answer.count("iVBORw0KGgr/////") == kept, "as base64 in their places, and nowhere as text"
    assert "this is the beginning" in answer


async def test_what_would_be_sent_as_base64_is_told_of_instead() -> None:
    @tool
    async def picture() -> bytes:
        """A picture."""
        return PNG

    registry = ToolRegistry([picture], max_result_characters=500)
    call = {"id": "1", "function": {"name": "picture", "arguments": "{}"}}
    answer = await registry.execute_call("openai", call)
    assert answer["content"] == "[image of 3,008 bytes, image/png: it cannot be shown here]"
    whole = await ToolRegistry([picture]).execute_call("openai", call)
    assert "iVBORw0KGgr" in whole["content"]


# Handles


async def test_a_handle_belongs_to_its_principal(registry: ToolRegistry) -> None:
    handle = handle_in(await asked(registry, "lines", principal="ada", n=300))
    assert "line" in await asked(registry, "read_result", principal="ada", handle=handle, offset=5)
    for principal, handed in [("eve", handle), ("", handle), ("ada", "x" * 22)]:
        answer = await asked(registry, "read_result", principal=principal, handle=handed)
        why = "they are kept for a while only; call the tool that gave it again"
        assert answer == f"no result is kept under the handle {handed!r}: {why}"


async def test_a_handle_ends_with_its_time() -> None:
    now = 0.0
    large = LargeResults(10, clock=lambda: now)
    handle = handle_in(large.shortened(ToolResult(True, "a" * 100), {}, ToolContext(), takes_all).data)
    now = large_results.KEPT_SECONDS - 1
    assert "aaa" in await large.reader.execute({"handle": handle})
    now += 1
    with pytest.raises(ValueError, match="no result is kept"):
        await large.reader.execute({"handle": handle})


async def test_a_hundred_thousand_handles_take_no_more_room_than_some() -> None:
    large = LargeResults(10)
    result = await ToolRegistry([lines]).execute("lines", {"n": 10})
    handles = [handle_in(large.shortened(result, {}, ToolContext(f"p{n % 7}"), takes_all).data) for n in range(100_000)]
    assert len(set(handles)) == 100_000
    assert len(large) == large_results.MOST_KEPT
    assert "line 0" in await large.reader.execute({"handle": handles[-1]}, context=ToolContext("p4"))
    with pytest.raises(ValueError, match="no result is kept"):
        await large.reader.execute({"handle": handles[0]}, context=ToolContext("p0"))


async def test_memory_is_bounded_and_what_is_too_long_is_told() -> None:
    large = LargeResults(10)

    def long(n: int) -> str:
        answer: str = large.shortened(ToolResult(True, "a" * n), {}, ToolContext(), takes_all).data
        return answer

    handle = handle_in(long(4_900_000))
    for _ in range(large_results.MOST_KEPT_BYTES // 4_900_000):
        long(4_900_000)
    with pytest.raises(ValueError, match="no result is kept"):
        await large.reader.execute({"handle": handle})
    answer = long(large_results.LONGEST_KEPT + 1)
    assert answer.endswith("It is too long to be kept; call the tool again in a way that gives less.]")


# Wrong reads


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"offset": 10**9}, "the offset 1000000000 lies beyond the end: the result has"),
        ({"offset": 10**30}, "lies beyond the end"),
        ({"offset": -1}, "argument 'offset' of tool 'read_result': -1 is less than the minimum of 0"),
        ({"offset": "3"}, "is not of type"),
        ({"handle": 7}, "is not of type"),
        ({"handle": None}, "is not of type"),
        ({"handle": "x" * 1_000_000}, "argument 'handle' of tool 'read_result'"),
        ({"pointer": "/a" * 500_000}, "argument 'pointer' of tool 'read_result'"),
        ({"pointer": "/rows/1/nam"}, "there is nothing at '/rows/1/nam'; '/rows/1' is there and has the keys 'id', '"),
        ({"pointer": "/rows/-"}, "'/rows' is there and has the items 0 to 999"),
        ({"pointer": "/rows/-1"}, "'/rows' is there and has the items 0 to 999"),
        ({"pointer": "/rows/²"}, "'/rows' is there and has the items 0 to 999"),
        ({"pointer": "/rows/" + "9" * 900}, "'/rows' is there and has the items 0 to 999"),
        ({"pointer": "/"}, "the result has the keys 'rows', 'total'"),
        ({"pointer": "/total/x"}, "'/total' is there and has no parts"),
        ({"pointer": "rows"}, "'rows' is no JSON pointer: one begins with a slash"),
        ({"nothing": 1}, "has no argument 'nothing'"),
    ],
)  # fmt: skip
async def test_a_wrong_read_says_what_can_be_read(registry: ToolRegistry, arguments: dict[str, Any], told: str) -> None:
    handle = handle_in(await asked(registry, "rows", n=1000))
    answer = await asked(registry, "read_result", **({"handle": handle} | arguments))
    assert told in answer and len(answer) < 1000


async def test_text_has_no_pointers(registry: ToolRegistry) -> None:
    handle = handle_in(await asked(registry, "lines", n=1000))
    assert "read it with an offset" in await asked(registry, "read_result", handle=handle, pointer="/rows")


async def test_keys_with_slashes_and_quotes_can_be_pointed_at() -> None:
    odd = 'a/b~c"d\\e'

    @tool
    async def keyed() -> dict[str, Any]:
        """Odd keys."""
        return {odd: list(range(1000))}

    registry = ToolRegistry([keyed], max_result_characters=100)
    answer = await asked(registry, "keyed")
    found = re.search(r'pointer=("(?:[^"\\]|\\.)*")\)', answer)
    assert found
    pointer = json.loads(found[1])
    assert json.loads(await asked(registry, "read_result", handle=handle_in(answer), pointer=pointer)) >= 1


# A model that does what the sentences say


_ODD_KEYS = st.text(max_size=250) | st.sampled_from(["a/b", "~1", '"', "\\", "\n", "", "0"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=60) | st.dictionaries(_ODD_KEYS, inner, max_size=60),
    max_leaves=60,
)
_CALL = re.compile(r'read_result\(handle="([^"]+)", (?:offset=(\d+))?(?:, )?(?:pointer=("(?:[^"\\]|\\.)*"))?\)')
_NOTE = "\n\n["
_LONGEST_NOTE = 2500


def next_call(answer: str) -> dict[str, Any] | None:
    """The call that the sentence at the end of an answer tells."""
    if not (found := _CALL.search(answer.rpartition(_NOTE)[2])):
        return None
    handle, offset, pointer = found.groups()
    told = {"offset": offset and int(offset), "pointer": pointer and json.loads(pointer)}
    return {"handle": handle} | {name: value for name, value in told.items() if value is not None}


async def read_on(large: LargeResults, call: dict[str, Any] | None) -> list[str]:
    """The answers to one who makes the call, and then those that each answer tells."""
    made: list[Any] = []
    answers: list[str] = []
    while call is not None:
        assert call not in made, "it leads in a circle"
        made.append(call)
        answers.append(as_text(await large.reader.execute(call)))
        call = next_call(answers[-1])
    return answers


def shortened(large: LargeResults, value: Any) -> str:
    """What a model reads of a value; empty if that is all of it."""
    data = large.shortened(ToolResult(True, value), {}, ToolContext(), takes_all).data
    return "" if data is value else str(data)


@given(_JSON, st.integers(30, 1000))
async def test_who_does_what_the_sentences_say_reads_everything(value: Any, limit: int) -> None:
    large = LargeResults(limit)
    if not (answer := shortened(large, value)):
        return
    told = next_call(answer)
    assert told is not None
    answers = await read_on(large, told)
    assert max(map(len, [answer, *answers])) < limit + _LONGEST_NOTE
    if "pointer" in told:
        assert "or all of it as text with offset=0" in answer
    if not isinstance(value, str):
        answers = await read_on(large, {"handle": told["handle"], "offset": 0})
    parts = [answer, *answers] if isinstance(value, str) else answers
    assert "".join(part.rpartition(_NOTE)[0] for part in parts) == as_text(value)


def nested(depth: int, wrap: Callable[[Any, int], Any]) -> Any:
    value: Any = list(range(3000))
    for level in range(depth):
        value = wrap(value, level)
    return value


@pytest.mark.parametrize("limit", [10, 500, 5000])
@pytest.mark.parametrize(
    "value",
    [
        {"x": {f"key {number}": number for number in range(3000)}},
        {"x": {"k" * 300: "v" * 6000}},
        [{f"key {number}": "v" * 50 for number in range(300)}] * 3,
        ["x" * 6000] * 20,
        nested(30, lambda inner, depth: {f"{depth:02}" * 75: inner}),
        nested(300, lambda inner, _: [inner]),
    ],
    ids=["many keys", "a long key", "many keys each", "long texts", "long pointers", "deep"],
)
async def test_no_sentence_leads_in_a_circle_or_to_a_refusal(value: Any, limit: int) -> None:
    large = LargeResults(limit)
    answer = shortened(large, value)
    assert len(answer) < limit + _LONGEST_NOTE
    assert await read_on(large, next_call(answer))


@pytest.mark.parametrize("words", [50, 2000])
async def test_json_that_is_one_text_is_shortened_as_text(words: int) -> None:
    @tool
    async def told() -> Any:
        """Tell of it."""
        return Json("word " * words)

    answer = await asked(ToolRegistry([told], max_result_characters=500), "told")
    assert answer.startswith("word word") and ("this is the beginning" in answer) == (words > 100)


def test_an_outline_fills_the_room_that_there_is() -> None:
    value = {"numbers": list(range(3000)), "text": "x" * 30_000}
    assert len(as_text(outline(value["numbers"], 8000).value)) > 4000
    assert len(as_text(outline(value, 40_000).value)) > 20_000


# Beginnings and outlines


@given(_JSON, st.integers(2, 3000))
def test_an_outline_fits_and_has_the_shape_of_the_value(value: Any, most: int) -> None:
    made = outline(value, most)
    if isinstance(value, dict | list | str):
        text = made.value if isinstance(value, str) else json.dumps(made.value, ensure_ascii=False)
        assert len(text) <= most
    if not made.shortened:
        assert made.value == value
    _assert_outlines(made.value, value)


def _assert_outlines(made: Any, value: Any) -> None:
    assert type(made) is type(value)
    if isinstance(made, dict):
        for key, inner in made.items():
            _assert_outlines(inner, value[key])
    elif isinstance(made, list):
        for inner, whole in zip(made, value, strict=False):
            _assert_outlines(inner, whole)
    elif isinstance(made, str):
        assert value.startswith(made)
    else:
        assert made == value


def test_an_outline_of_what_is_deep_or_wide_takes_no_long_look() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    assert json.dumps(outline(deep, 1000).value).count("[") <= 81
    wide: Any = "x"
    for _ in range(12):
        wide = [wide] * 50  # 50 ** 12 leaves
    assert outline(wide, 2000).shortened


@given(st.text(max_size=400), st.integers(1, 300))
def test_a_beginning_is_one_and_fits(text: str, most: int) -> None:
    start = beginning(text, most)
    assert text.startswith(start) and len(start) <= most and (start or not text)


def test_every_provider_says_which_media_it_takes() -> None:
    for name in ("openai", "openai-responses", "openrouter", "anthropic", "gemini", "mcp"):
        takes = provider_named(name).takes
        assert not takes(Link("https://example.org"))
        assert takes(Image(PNG)) is (name not in ("openai", "openrouter"))


@pytest.mark.parametrize("limit", [None, 100])
async def test_a_number_of_thousands_of_digits_is_told_of(limit: int | None) -> None:
    @tool
    async def huge() -> int:
        """Huge."""
        return 10**5000

    assert "cannot be shown" in await asked(ToolRegistry([huge], max_result_characters=limit), "huge")
