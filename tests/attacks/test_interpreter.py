"""Nothing that one caller sends becomes a long step of the interpreter, for which all the others would wait."""

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.types import Message
from tests.support.waiting import until
from tests.surfaces.conftest import Serve, serve, settings, system_of

from toolcrib import ToolSpec
from toolcrib.adapters.runners.box import Ended
from toolcrib.adapters.runners.bundle_calls import program_answer, python_answer
from toolcrib.calling.blocking import WRITES, in_thread
from toolcrib.calling.places import CALLER
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import ToolFailedError
from toolcrib.settings import Settings
from toolcrib.surfaces.graphql.limits import MAX_COST
from toolcrib.surfaces.http.bodies import MOST_VALUES
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.fields import ENTRY_FIELDS

__all__ = ["serve", "settings"]  # the fixtures of the doors

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Large:
    """What a call holds while it works."""


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def _in_a_pool(work: Callable[[], None]) -> None:
    CALLER.set("somebody")
    await in_thread(WRITES, work)


async def _for_one_who_may_leave(work: Callable[[], None]) -> None:
    async def stay() -> Message:
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        return await never

    async def working() -> None:
        await asyncio.sleep(0)
        work()

    await while_connected(Request({"type": "http"}, stay), working())


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("call", [_in_a_pool, _for_one_who_may_leave])
async def test_what_failed_is_gone_at_once(call: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]) -> None:
    """Whoever fails often would leave more and more to the garbage collector, which then stops everybody."""
    left: list[weakref.ref[Large]] = []

    def fail() -> None:
        large = Large()
        left.append(weakref.ref(large))
        raise ValueError(large)

    with pytest.raises(ValueError, match="Large"):
        await call(fail)
    await until(lambda: left[0]() is None)  # the thread of a pool lets go of it a moment later


@pytest.mark.parametrize("path", ["/tools", "/tools/query/generic", "/graphql", "/mcp"])
async def test_a_body_of_too_many_values_is_refused(serve: Serve, settings: Settings, path: str) -> None:
    client = await serve(settings)
    for body in (b"[%b1]" % (b"[]," * MOST_VALUES), b"[%b1]" % (b'"",' * 5 * MOST_VALUES)):
        answer = await client.post(path, content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large"), path
        assert f"{MOST_VALUES:,} values" in answer.json()["detail"]


async def test_a_comma_in_a_text_is_no_value(serve: Serve, settings: Settings) -> None:
    manual = r'a,"b\",' * (MOST_VALUES // 2)
    answer = await (await serve(settings)).post("/tools", json={"tool_id": "table", "tool_man_page_doc": manual})
    assert answer.status_code == 201, answer.text


def test_a_result_of_too_many_values_is_refused() -> None:
    many = b"[%b1]" % (b"[]," * 250_000)
    with pytest.raises(ToolFailedError, match="more than 250,000 values"):
        python_answer("wide", b'{"alone": true, "value": %b}' % many, "")
    with pytest.raises(ToolFailedError, match="more than 250,000 values"):
        program_answer("wide", Ended(0, many, ""))
    assert program_answer("long", Ended(0, b'["%b"]' % (b'a,\\",' * 250_000), "")) == ['a,",' * 250_000]


async def test_the_largest_answer_of_graphql_is_whole(serve: Serve, settings: Settings) -> None:
    """It is written a tool at a time; what comes is what was asked for, in the order in which it was asked."""
    client = await serve(settings)
    catalogue: Catalogue = system_of(client).catalogue
    catalogue.publish_many([ToolSpec(name=f"t{number:03}", description="It is kept.") for number in range(250)])
    every = " ".join(field.name for field in ENTRY_FIELDS)
    limit = MAX_COST // 2 // len(ENTRY_FIELDS) - 1
    asked = (
        f"b: tools(limit: {limit}) {{ {every} }}",
        'one: tool(tool_id: "t007") { tool_id }',
        'none: tool(tool_id: "no-such") { tool_id }',
        f'a: tools(limit: {limit}, after: "t099") {{ tool_id }}',
    )
    query = "{" + " ".join(asked) + "}"
    answer = await client.post("/graphql", json={"query": query})
    data = json.loads(answer.content, object_pairs_hook=_once)["data"]
    assert list(data) == ["b", "one", "none", "a"]
    assert [tool["tool_id"] for tool in data["b"]] == [f"t{number:03}" for number in range(250)]
    assert [tool["tool_id"] for tool in data["a"]] == [f"t{number:03}" for number in range(100, 250)]
    assert (data["one"], data["none"]) == ({"tool_id": "t007"}, None)
    assert data["b"][7] == (await client.get("/tools/t007")).json()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


async def test_a_long_tool_is_read_again_beside_the_others(
    serve: Serve, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write makes all tools be read again: who writes and reads a large one by turns held up everybody."""
    client = await serve(settings)
    catalogue = system_of(client).catalogue
    for name, length in (("long", 200_000), ("short", 10)):
        catalogue.publish(ToolSpec(name=name, description="Says much.", manual="x" * length))
        assert (await client.get(f"/tools/{name}")).status_code == 200
    read_in: dict[str, bool] = {}
    get = catalogue.store.get

    def watched(name: str) -> object:
        read_in[name] = threading.current_thread() is threading.main_thread()
        return get(name)

    catalogue.publish(ToolSpec(name="other", description="Changes the generation."))
    await asyncio.sleep(0)  # a turn of the loop asks for the generation once
    monkeypatch.setattr(catalogue.store, "get", watched)
    for name in ("long", "short"):
        assert (await client.get(f"/tools/{name}")).json()["tool_id"] == name
    assert read_in == {"long": False, "short": True}
