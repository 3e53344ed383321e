"""Browser sessions over REST: `goto` and then `click`, for whoever names the session, and for nobody else."""

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.support.shop import browsers, shop
from tests.support.waiting import until
from tests.surfaces.conftest import Serve, system_of

from toolcrib import Binding, ToolContext, ToolSpec
from toolcrib.bootstrap import System, open_system
from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import Settings
from toolcrib.surfaces.service import application_of
from toolcrib.toolsets.browser import browser_specs

__all__ = ["shop"]


class Caller:
    """One principal at the service."""

    def __init__(self, client: httpx.AsyncClient, name: str, role: str = "runner") -> None:
        token, record = new_token(name, Role(role), now=0)
        system_of(client).tokens.add(record)
        self._client = client
        self._headers = {"authorization": f"Bearer {token}"}

    async def ask(self, method: str, path: str, headers: Any = None, **options: Any) -> httpx.Response:
        return await self._client.request(method, path, headers=self._headers | (headers or {}), **options)

    async def run(self, tool: str, session: Any = None, /, **arguments: Any) -> httpx.Response:
        body = {"arguments": arguments} | ({} if session is None else {"session": session})
        return await self.ask("POST", f"/tools/{tool}/run", json=body)

    async def sessions(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = (await self.ask("GET", "/sessions")).json()
        return listed

    async def heading(self, session: str | None) -> str:
        answer = (await self.run("extract_text", session, selector="h1", timeout=300)).json()
        return str(answer["data"]["text"] if answer["success"] else answer["error_code"])


@pytest.fixture
async def client(serve: Serve, settings: Settings, chromium_path: str) -> httpx.AsyncClient:
    changed = settings.with_changes(
        "test", auth="required", allowed_addresses="127.0.0.1", chromium=chromium_path, max_caller_sessions=1
    )
    client = await serve(changed)
    system_of(client).catalogue.publish_many(browser_specs())
    return client


async def test_goto_and_then_click(client: httpx.AsyncClient, shop: str) -> None:
    ada, bob, root = Caller(client, "ada"), Caller(client, "bob"), Caller(client, "root", "admin")
    opened = (await ada.run("goto", "shop", url=shop)).json()
    assert opened["success"], opened
    assert opened["metadata"]["session"] == "shop" and opened["metadata"]["session_opened"] is True
    clicked = (await ada.run("click", "shop", selector="Buy now")).json()
    assert clicked["success"] and "session_opened" not in clicked["metadata"], clicked
    assert await ada.heading("shop") == "Bought"
    asked = {"arguments": {"selector": "h1"}, "session": "shop"}
    events = {"accept": "text/event-stream"}
    streamed = await ada.ask("POST", "/tools/extract_text/run", json=asked, headers=events)
    assert '"text":"Bought"' in streamed.text and "event: result" in streamed.text
    assert await ada.heading(None) == "element_not_found"  # without a name: a new, empty browser, as ever

    # Another principal's session of the same name is another one.
    assert (await bob.sessions(), len(await root.sessions())) == ([], 1)
    fenced = (await bob.run("goto", "shop", url=shop.replace("127.0.0.1", "[::1]"))).json()
    assert fenced["error_code"] == "domain_denied" and fenced["metadata"]["session_opened"] is True
    (await bob.run("goto", "shop", url=shop)).raise_for_status()
    assert await bob.heading("shop") == "Hammer" and await ada.heading("shop") == "Bought"

    # One's own are listed with what they are about; an administrator's list says no more than that they are there.
    (own,) = await ada.sessions()
    assert (own["name"], own["principal"], own["calls"], own["busy"]) == ("shop", "ada", 5, False)
    assert own["about"] == {"url": shop, "tabs": 1}
    assert [(each["principal"], each.get("about")) for each in await root.sessions()] == [("ada", None), ("bob", None)]

    # Over the cap: one sentence that names what to end, and when there is room again.
    over = await ada.run("goto", "second", url=shop)
    assert over.status_code == 429 and 1 <= int(over.headers["retry-after"]) <= 600
    assert over.json()["error_code"] == "session_limit"
    assert "as many sessions as a caller may have (1): 'shop'; end one" in over.json()["error"]

    # Ended on request, by whom it belongs to or an administrator, and by nobody else.
    assert (await bob.ask("DELETE", "/sessions/shop?principal=ada")).status_code == 403
    assert (await bob.ask("DELETE", "/sessions/none")).json()["code"] == "session_not_found"
    assert (await ada.ask("DELETE", "/sessions/shop")).json() == {"message": "Session ended"}
    assert (await ada.ask("DELETE", "/sessions/shop")).status_code == 404
    assert await ada.sessions() == []
    assert (await root.ask("DELETE", "/sessions/shop?principal=bob")).status_code == 200
    assert await root.sessions() == []

    # The record names the session.
    events = (await root.ask("GET", "/audit?tool=click&action=run&outcome=attempt")).json()
    assert [(event["principal"], event["detail"]) for event in events] == [("ada", "session: shop")]
    alone = (await root.ask("GET", "/audit?tool=extract_text&action=run&outcome=attempt")).json()
    assert {event["detail"] for event in alone} == {"session: shop", ""}


async def test_a_browser_that_died_is_told_and_then_replaced(
    client: httpx.AsyncClient, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = uuid4().hex
    monkeypatch.setenv("MARK_OF_THE_TEST", mark)
    ada = Caller(client, "ada")
    (await ada.run("goto", "shop", url=shop)).raise_for_status()
    (session,) = system_of(client).browsers.sessions.open_ones()
    for process in browsers(mark):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    await until(lambda: not session.kept.running)
    died = (await ada.run("extract_text", "shop", selector="h1")).json()
    assert died["error_code"] == "browser_crashed" and "the next call starts a new one" in died["error"]
    (await ada.run("goto", "shop", url=shop)).raise_for_status()
    assert await ada.heading("shop") == "Hammer"
    await ada.ask("DELETE", "/sessions/shop")
    await until(lambda: not browsers(mark))


async def test_what_is_wrong_with_a_name(client: httpx.AsyncClient) -> None:
    ada = Caller(client, "ada")
    for wrong in ("", "a b", 5, ["a"], "../x"):
        answer = await ada.run("goto", wrong, url="https://example.com")
        assert answer.status_code == 400 and "session must be a name" in answer.json()["detail"], wrong
    unknown = await ada.ask("POST", "/tools/goto/run", json={"arguments": {}, "sesion": "a"})
    assert unknown.status_code == 400 and "it has 'arguments' and 'session'" in unknown.json()["detail"]
    assert (await client.get("/sessions")).status_code == 401
    assert (await Caller(client, "eve", "reader").ask("GET", "/sessions")).status_code == 403
    assert await ada.sessions() == []


async def test_a_call_that_was_refused_opens_none(client: httpx.AsyncClient, shop: str) -> None:
    ada = Caller(client, "ada")
    assert (await ada.run("goto", "shop", address=shop)).status_code == 400
    assert (await ada.run("set_cookie", "shop", name="a", value="b")).status_code == 403
    assert await ada.sessions() == []


async def test_any_tool_may_ask_for_the_session(settings: Settings) -> None:
    async def whose(context: ToolContext) -> str:
        return f"{context.principal}/{context.session}"

    binding = Binding(system_function_rpc_id="whose")
    with System(settings, functions={"whose": whose}) as system:
        system.catalogue.publish(ToolSpec(name="whose", description="Say whose.", binding=binding))
        transport = httpx.ASGITransport(application_of(system))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            for body, said in (({}, "local/"), ({"session": "a.b-C_1"}, "local/a.b-C_1")):
                assert (await client.post("/tools/whose/run", json=body)).json()["data"] == said
            assert (await client.get("/sessions")).json() == []  # nothing is kept for it


async def test_a_system_that_is_closed_leaves_no_browser(
    settings: Settings, chromium_path: str, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a service too: each call may come from a loop of its own."""
    mark = uuid4().hex
    monkeypatch.setenv("MARK_OF_THE_TEST", mark)
    changed = settings.with_changes("test", allowed_addresses="127.0.0.1", chromium=chromium_path, store="memory:")
    mine = ToolContext("ada", session="shop")
    with open_system(changed) as system:
        system.catalogue.publish_many(browser_specs())

        def run(tool: str, **arguments: Any) -> Any:
            return asyncio.run(system.catalogue.tool(tool).execute(arguments, context=mine)).data

        await asyncio.to_thread(run, "goto", url=shop)
        assert (await asyncio.to_thread(run, "extract_text", selector="h1"))["text"] == "Hammer"
        assert browsers(mark)
    await until(lambda: not browsers(mark))


async def test_several_processes_refuse_a_session_and_say_the_way_out(
    serve: Serve, settings: Settings, chromium_path: str
) -> None:
    client = await serve(settings.with_changes("test", auth="required", workers=2, chromium=chromium_path))
    system_of(client).catalogue.publish_many(browser_specs())
    answer = await Caller(client, "ada").run("goto", "shop", url="https://example.com")
    assert answer.status_code == 409 and answer.json()["error_code"] == "missing_config"
    assert "2 answer here: start the service with --workers 1, or call without a session" in answer.json()["error"]
