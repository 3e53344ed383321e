"""Every tool of a catalogue runs behind the settings' address rules, however and wherever its code runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.website import serve_site

from toolcrib import AddressRules, SettingsError, ToolSpec
from toolcrib.bootstrap import address_rules, open_catalogue
from toolcrib.catalogue import Catalogue
from toolcrib.settings import Settings

MODULE = """
import asyncio
from toolcrib import AddressRules, tool
from toolcrib.toolsets.browser import BrowserSession
from toolcrib.toolsets.scraping import make_pipeline

@tool(description="Asks.")
async def judged(url: str) -> str:
    return AddressRules.in_force().refusal_of_url(url)

@tool(description="Asks.")
def judged_in_a_thread(url: str) -> str:
    return asyncio.run(judged(url))

@tool(description="Asks.")
async def session(url: str) -> str:
    return BrowserSession().addresses.refusal_of_url(url)

pipeline = make_pipeline("httpx", ("parsel", {"selectors": {"title": "title"}}), name="pages")

@tool(description="Fetches.")
async def pages(start: list[str]) -> dict[str, object]:
    return await pipeline.as_tool().execute({"start": start})
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "fenced_for_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "fenced_for_tests"
    sys.modules.pop("fenced_for_tests", None)


def catalogue_of(tmp_path: Path, module: str, **settings: tuple[str, ...]) -> Catalogue:
    listed = tuple(f"{module}:{name}" for name in ("judged", "judged_in_a_thread", "session", "pages"))
    given = Settings(data_dir=str(tmp_path), store="memory:", python_tools=listed, **settings)  # type: ignore[arg-type]
    return open_catalogue(settings=given)


def published(catalogue: Catalogue, module: str, attribute: str, isolation: str = "") -> None:
    parameters = {"type": "object", "properties": {"url": {"type": "string"}}}
    if attribute == "pages":
        parameters = {"type": "object", "properties": {"start": {"type": "array"}}}
    catalogue.publish(
        ToolSpec.parse(
            {
                "name": attribute,
                "description": "Asks.",
                "parameters": parameters,
                "isolation": isolation,
                "binding": {"python": f"{module}:{attribute}"},
            }
        )
    )


@pytest.mark.parametrize(
    ("attribute", "isolation"),
    [
        ("judged", ""),
        ("judged", "process"),
        ("judged_in_a_thread", ""),
        ("judged_in_a_thread", "process"),
        ("session", ""),
    ],
)
async def test_the_rules_go_where_the_code_goes(tmp_path: Path, module: str, attribute: str, isolation: str) -> None:
    """Whoever publishes a tool says how it is isolated, and must not get out by that."""
    catalogue = catalogue_of(tmp_path, module, allowed_addresses=("10.0.0.0/8",), denied_addresses=("1.1.1.1",))
    published(catalogue, module, attribute, isolation)
    tool = catalogue.tool(attribute)
    assert "not a public address" in await tool.execute({"url": "http://127.1/"})
    assert "denied by the rule '1.1.1.1'" in await tool.execute({"url": "http://1.1.1.1/"})
    assert await tool.execute({"url": "http://10.0.0.1/"}) == ""
    assert not AddressRules.in_force()
    catalogue.close()


async def test_system_functions_are_fenced_too(tmp_path: Path) -> None:
    async def judged(url: str) -> str:
        """Ask."""
        return AddressRules.in_force().refusal_of_url(url)

    catalogue = open_catalogue(settings=Settings(data_dir=str(tmp_path), store="memory:"), functions={"judged": judged})
    catalogue.publish(
        ToolSpec.parse({"name": "j", "description": "Asks.", "binding": {"system_function_rpc_id": "judged"}})
    )
    assert "not a public address" in await catalogue.tool("j").execute({"url": "http://[::1]/"})
    catalogue.close()


async def test_a_pipeline_reaches_public_addresses_only_if_it_is_a_catalogued_tool(tmp_path: Path, module: str) -> None:
    with serve_site() as site:
        start = {"start": [f"{site.url}/books/1", f"http://localhost:{site.server_address[1]}/books/1"]}
        fenced, open_ = catalogue_of(tmp_path, module), catalogue_of(tmp_path, module, allowed_addresses=("127.0.0.1",))
        for catalogue in (fenced, open_):
            published(catalogue, module, "pages")
        refused = await fenced.tool("pages").execute(start)
        assert [failure["kind"] for failure in refused["failures"]] == ["refused", "refused"]
        assert all("not a public address" in failure["reason"] for failure in refused["failures"])
        assert not site.hits
        assert (await open_.tool("pages").execute(start))["done"] == 2
        pipeline = sys.modules[module].pipeline
        assert (await pipeline.run(start["start"])).ok
        assert (await pipeline.as_tool().execute(start))["done"] == 2
        fenced.close()
        open_.close()


def test_a_wrong_rule_is_told_at_the_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path), store="memory:", denied_addresses=("10.0.0.0/99",))
    with pytest.raises(SettingsError, match=r"10\.0\.0\.0/99"):
        open_catalogue(settings=settings)


def test_the_rules_of_the_settings_let_public_addresses_through() -> None:
    rules = address_rules(Settings())
    assert rules.refusal("example.com", 443, ["93.184.216.34"]) == ""
