"""The samples run by their names, and a kept tool is a step, through one catalogue and its rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.receiver import Received, receiving
from tests.support.website import serve_site

from toolcrib.bootstrap import System, open_catalogue, sample_specs, seed_samples
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import (
    DeniedError,
    InvalidArgumentsError,
    MissingConfigError,
    ToolNotFoundError,
    ToolValidationError,
)
from toolcrib.settings import Settings, load_settings
from toolcrib.stacking import Brick, Pipeline, Record, Request
from toolcrib.toolsets.scraping import BRICKS
from toolcrib.toolsets.scraping.practice import Site


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_site() as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    known = load_settings({"HOME": str(tmp_path)}, tmp_path)
    return known.with_changes("test", data_dir=str(tmp_path), store="memory:", allowed_addresses=["127.0.0.1"])


@pytest.fixture
def catalogue(settings: Settings) -> Iterator[Catalogue]:
    opened = open_catalogue(settings=settings)
    seed_samples(opened)
    yield opened
    opened.close()


PARSER = {"rows": "article.book", "selectors": {"title": "h3 a", "price": ".price"}}


async def test_from_a_page_to_kept_rows_by_calls_alone(catalogue: Catalogue, site: Site, tmp_path: Path) -> None:
    for client in ("httpx", "requests", "curl_cffi"):
        page = await catalogue.tool(client).execute({"url": f"{site.url}/books/1"})
        assert (page["status"], page["url"]) == (200, f"{site.url}/books/1")
        assert json.loads(json.dumps(page)) == page
    for parser in ("beautifulsoup4", "selectolax", "parsel"):
        read = await catalogue.tool(parser).execute({"html": page["html"], "url": page["url"], **PARSER})
        assert read["records"][0] == {"title": "The Left Hand of Darkness", "price": "5.00"}
    for store, file in (("jsonlines", "a/rows.jsonl"), ("csv", "rows.csv"), ("sqlite", "rows.db")):
        kept = await catalogue.tool(store).execute({"records": read["records"], "path": file, "key": "title"})
        assert {one["new"] for one in kept["stored"]} == {True}
        assert {one["where"] for one in kept["stored"]} == {file}
        assert (tmp_path / "files" / file).exists()
        again = await catalogue.tool(store).execute({"records": read["records"], "path": file, "key": "title"})
        assert {one["new"] for one in again["stored"]} == {False}


async def test_a_browser_is_a_tool_as_well(settings: Settings, site: Site, chromium_path: str) -> None:
    catalogue = open_catalogue(settings=settings.with_changes("test", chromium=chromium_path))
    seed_samples(catalogue)
    page = await catalogue.tool("playwright").execute({"url": f"{site.url}/books/1", "wait_for": "article.book"})
    assert "The Left Hand of Darkness" in page["html"]


def test_every_brick_that_ships_has_a_sample_that_says_how_it_is_called() -> None:
    samples = {spec.name: spec for spec in sample_specs()}
    for name, brick in BRICKS.items():
        spec = samples[name]
        assert spec.binding.python == name
        assert spec.parameters["additionalProperties"] is False
        exposed = brick.Config.model_fields.keys() - set(brick.private)
        assert exposed <= spec.parameters["properties"].keys()


async def test_in_a_service_the_address_rules_hold(settings: Settings, site: Site) -> None:
    catalogue = open_catalogue(settings=settings.with_changes("test", allowed_addresses=[]))
    seed_samples(catalogue)
    for name in ("httpx", "requests", "curl_cffi"):
        with pytest.raises(DeniedError, match="is not a public address"):
            await catalogue.tool(name).execute({"url": f"{site.url}/books/1"})
    assert not site.hits


async def test_what_is_missing_is_told(catalogue: Catalogue) -> None:
    with pytest.raises(MissingConfigError, match="'SCRAPERAPI_KEY'"):
        await catalogue.tool("scraperapi").execute({"url": "https://example.com"})
    with pytest.raises(InvalidArgumentsError, match="'selectors'"):
        await catalogue.tool("beautifulsoup4").execute({"html": ""})


async def test_an_entry_of_the_brains_file_runs_by_the_name_of_its_brick(settings: Settings, tmp_path: Path) -> None:
    """Its words have no place for parameters: those of the brick are shown."""
    catalogue = open_catalogue(f"brain://{tmp_path}/tools.json", settings)
    catalogue.publish_many([BRICKS["beautifulsoup4"].spec, BRICKS["httpx"].spec.with_changes(name="nameless")])
    soup = catalogue.tool("beautifulsoup4")
    assert soup.spec.parameters["required"] == ["html", "selectors"]
    answer = await soup.execute({"html": "<h1>x</h1>", "selectors": {"a": "h1"}})
    assert answer == {"records": [{"a": "x"}]}
    with pytest.raises(ToolValidationError, match="its binding does not say how"):
        catalogue.tool("nameless")


async def test_the_tools_of_this_machine_are_called_without_a_catalogue(settings: Settings) -> None:
    with System(settings) as system:
        calls: Calls = system.local_calls
        result = await calls.execute("parsel", {"html": "<h1>x</h1>", "selectors": {"a": "//h1/text()"}})
        assert result.data == {"records": [{"a": "x"}]}
        assert len(system.catalogue) == 0


# Kept tools as steps


def entry(name: str, binding: dict[str, str], **fields: Any) -> dict[str, Any]:
    known = {"name": name, "description": name, "tool_type": "filter", "execution_mode": "sync"}
    return {**known, "binding": binding, **fields}


def steps(system: System, *written: Any) -> Pipeline:
    return Pipeline.of(*written, bricks=system.bricks, specs_of=system.catalogue.specs_of)


@pytest.fixture
def system(settings: Settings) -> Iterator[System]:
    with System(settings) as opened:
        seed_samples(opened.catalogue)
        yield opened


FETCH = ("httpx", ("parsel", PARSER))


async def titles(system: System, site: Site, *written: Any) -> list[Any]:
    items = await steps(system, *FETCH, *written).collect([f"{site.url}/books/1"])
    return [item.data["title"] for item in items if isinstance(item, Record)]


async def test_a_service_is_a_step(system: System, site: Site) -> None:
    def answer(request: Received) -> tuple[int, dict[str, str], bytes]:
        said = json.loads(request.body)
        kept = [row for row in said["records"] if float(row["price"]) < said["below"]]
        return 200, {}, json.dumps({"records": kept}).encode()

    with receiving() as receiver:
        receiver.answer = answer
        system.catalogue.publish(entry("cheap", {"service_url": receiver.url}))
        assert await titles(system, site, ("cheap", {"below": 6})) == ["The Left Hand of Darkness"]


async def test_a_service_that_may_not_be_reached_is_not(settings: Settings, site: Site) -> None:
    with System(settings.with_changes("test", allowed_addresses=[])) as system, receiving() as receiver:
        seed_samples(system.catalogue)
        system.catalogue.publish(entry("cheap", {"service_url": receiver.url}))
        report = await steps(system, *FETCH, "cheap").run([f"{site.url}/books/1"])
        assert "is not a public address" in report.failures[0].reason
        assert not receiver.received


SAID: dict[str, Any] = {"parameters": {"type": "object", "properties": {
    "records": {"type": "array"}, "below": {"type": "number"}}}}  # fmt: skip


@pytest.mark.parametrize("said", [SAID, {}], ids=["with parameters", "without, as in The Brain's file"])
async def test_a_python_reference_is_a_step(
    settings: Settings, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]
) -> None:
    (tmp_path / "steps_for_tests.py").write_text(
        "from toolcrib import tool\n"
        "@tool\ndef cheap(records: list[dict], below: float = 6) -> list[dict]:\n"
        "    'Lets cheap books pass.'\n    return [row for row in records if float(row['price']) < below]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with System(settings.with_changes("test", python_tools=["steps_for_tests:cheap"])) as system:
        seed_samples(system.catalogue)
        system.catalogue.publish(entry("cheap", {"python": "steps_for_tests:cheap"}, **said))
        assert len(await titles(system, site, ("cheap", {"below": 7}))) == 2
    sys.modules.pop("steps_for_tests")


async def test_a_brick_under_another_name_stacks_as_its_entry_says(system: System, site: Site) -> None:
    spec = system.catalogue.get("parsel").with_changes(name="my-parser", incompatible_with=["requests"])
    system.catalogue.publish(spec)
    mine = steps(system, "httpx", ("my-parser", PARSER))
    assert len(await mine.collect([f"{site.url}/books/1"])) == 4
    refused = steps(system, "requests", ("my-parser", PARSER)).check()
    assert refused.problems == ("'my-parser' and 'requests' do not stack (refused): 'my-parser' refuses 'requests'",)


def test_what_is_kept_and_has_no_brick_says_so(system: System) -> None:
    system.catalogue.publish({"name": "described", "description": "Only that."})
    with pytest.raises(ToolValidationError, match=r"no brick for 'described' here \(no_brick\)"):
        steps(system, "described")
    with pytest.raises(ToolNotFoundError, match="'parcel'; did you mean 'parsel'"):
        steps(system, "parcel")
    system.catalogue.publish(entry("cheap", {"command": "cheap"}))
    with pytest.raises(DeniedError, match="TOOLCRIB_TOOL_COMMANDS"):
        steps(system, "cheap")


def test_what_a_tool_lacks_here_is_told(system: System) -> None:
    lacks = system.bricks.lacks
    assert lacks(system.catalogue.get("httpx")) == ()
    assert "no_brick" in lacks(BRICKS["httpx"].spec.with_changes(name="nobody"))[0]
    assert "'SCRAPERAPI_KEY'" in lacks(system.catalogue.get("scraperapi"))[0]


class Absent(Brick[Request, Request]):
    spec = BRICKS["httpx"].spec
    takes = Request
    gives = Request
    modules = ("a_module_that_is_not_there",)

    def process(self, item: Request, _context: Any, /) -> list[Request]:
        return [item]


def test_a_package_that_is_missing_is_told(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.toolsets.scraping.BRICKS", {**BRICKS, "httpx": Absent})
    told = system.bricks.lacks(system.catalogue.get("httpx"))
    assert "a_module_that_is_not_there" in told[0] and "pip install" in told[0]
