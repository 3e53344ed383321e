"""Reading pages: text, content, tables, links, structured data, outlines and pictures."""

# ruff: noqa: E501

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_extract_text(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    whole = await agent("extract_text")
    assert "Hammers, saws & drills." in whole["text"]
    assert "not shown" not in whole["text"]
    part = await agent("extract_text", selector="nav")
    assert part["text"] == "Pricing Contact us Documentation Create an account"
    assert part["matched"]["selector"] == 'nav[aria-label="Main"]'
    first = await agent("extract_text", limit=10)
    assert (first["truncated"], first["next_offset"]) == (True, 10)
    assert first["text"] + (await agent("extract_text", offset=10))["text"] == whole["text"]
    assert (await agent.try_("extract_text", selector="#nope", timeout=100)).error_code == "element_not_found"


async def test_get_page_content(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/product")
    markdown = (await agent("get_page_content"))["content"]
    assert markdown.startswith("# Claw hammer")
    assert "| Size | Price |\n| --- | --- |\n| S | 10,50 € |" in markdown
    assert "**Warranty:** 24 months" in markdown
    assert "- ### Solid" in markdown
    await agent("goto", url=web.url)
    assert f"[Pricing]({web.url}/pricing)" in (await agent("get_page_content", selector="nav"))["content"]
    html = await agent("get_page_content", format="html", selector="h1")
    assert html["content"] == "<h1>Welcome to Toolworks</h1>"


async def test_extract_table(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/product")
    table = await agent("extract_table", selector="Prices")
    assert table["rows"] == [{"Size": "S", "Price": "10,50 €"}, {"Size": "L", "Price": "1.299,00 €"}]
    assert table["caption"] == "Prices"
    await agent("goto", url=f"{web.url}/large")
    page = await agent("extract_table", offset=10, limit=2)
    assert [row["Id"] for row in page["rows"]] == ["10", "11"]
    assert (page["total"], page["truncated"]) == (4000, True)
    await agent("goto", url=web.url)
    assert (await agent.try_("extract_table")).error_code == "element_not_found"


async def test_cells_that_span_are_repeated(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent.session.page.set_content(
        "<table><tr><th>a<th>b<th>c</tr><tr><td rowspan=2>1<td colspan=2>2</tr><tr><td>3<td>4</tr></table>"
    )
    assert (await agent("extract_table"))["rows"] == [{"a": "1", "b": "2", "c": "2"}, {"a": "1", "b": "3", "c": "4"}]


async def test_extract_links(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    links = await agent("extract_links")
    assert [link["text"] for link in links["links"]] == [
        "Pricing",
        "Contact us",
        "Documentation",
        "Create an account",
        "Fine print",
    ]
    one = await agent("extract_links", contains="contact")
    assert (one["total"], one["links"][0]["url"]) == (1, f"{web.url}/contact")
    await agent("click", selector=one["links"][0]["handle"])
    assert agent.session.page.url == f"{web.url}/contact"


async def test_extract_structured_from_everything_a_page_says(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/product")
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "brand": {"type": "string"},
            "price": {"type": "number"},
            "available": {"type": "boolean", "title": "availability"},
            "rating_value": {"type": "number"},
            "weight": {"type": "number"},
            "material": {"type": "string", "enum": ["steel", "wood"]},
            "warranty": {"type": "integer"},
            "stock_count": {"type": "integer"},
            "heading": {"type": "string"},
            "colour": {"type": "string"},
        },
    }
    answer = await agent("extract_structured", schema=schema, selectors={"heading": "h1"})
    assert answer["data"] == {
        "name": "Claw hammer", "brand": "Toolworks", "price": 1299.5, "available": True, "rating_value": 4.5, "weight": 0.6,
        "material": "steel", "warranty": 24, "stock_count": 17, "heading": "Claw hammer",
    }  # fmt: skip
    assert answer["sources"]["price"] == "json-ld"
    assert answer["sources"]["rating_value"] == "microdata"
    assert answer["sources"]["weight"] == "label"
    assert answer["sources"]["heading"] == "selector"
    assert answer["missing"] == ["colour"]


async def test_extract_structured_lists(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/product")
    prices = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["size"],
            "properties": {"size": {"type": "string"}, "price": {"type": "number"}},
        },
    }
    answer = await agent("extract_structured", schema=prices)
    assert answer["data"] == [{"size": "S", "price": 10.5}, {"size": "L", "price": 1299.0}]
    reviews = {
        "type": "array",
        "items": {"type": "object", "properties": {"title": {"type": "string"}, "stars": {"type": "integer"}}},
    }
    for arguments in ({}, {"items": "li.review", "selectors": {"title": "h3", "stars": ".stars"}}):
        answer = await agent("extract_structured", schema=reviews, **arguments)
        assert answer["data"] == [{"title": "Solid", "stars": 5}, {"title": "Heavy", "stars": 3}]


async def test_extract_structured_lets_a_model_fill_the_gaps(agent: Agent, web: Web) -> None:
    async def model(task: str, material: dict[str, Any]) -> dict[str, Any]:
        assert (task, material["missing"]) == ("extract", ["mood"])
        assert "Claw hammer" in material["text"]
        return {"name": "not asked for", "mood": "sturdy"}

    await agent("goto", url=f"{web.url}/product")
    agent.session.model = model
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "mood": {"type": "string"}}}
    answer = await agent("extract_structured", schema=schema)
    assert answer["data"] == {"name": "Claw hammer", "mood": "sturdy"}
    assert answer["sources"]["mood"] == "model"


async def test_get_element_info_and_attribute(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    info = await agent("get_element_info", selector="Disabled button")
    assert (info["role"], info["enabled"], info["visible"], info["attributes"]["id"]) == ("button", False, True, "off")
    assert info["box"]["width"] > 0
    assert (await agent("get_attribute", selector="Pricing", attribute="href"))["value"] == "/pricing"
    assert (await agent("get_attribute", selector="Pricing", attribute="rel"))["value"] is None


async def test_get_page_state_and_metadata(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    state = await agent("get_page_state")
    assert (state["title"], state["counts"]["links"], state["counts"]["buttons"]) == ("Toolworks", 5, 2)
    assert state["headings"] == ["Welcome to Toolworks"]
    metadata = await agent("get_metadata")
    assert metadata["description"] == "Tools for all trades"
    assert (metadata["language"], metadata["canonical"]) == ("en", "https://toolworks.example/")
    assert metadata["meta"]["og:type"] == "website"
    await agent("goto", url=f"{web.url}/product")
    assert (await agent("get_metadata"))["json_ld"][0]["sku"] == "H-42"


async def test_find_element(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    found = await agent("find_element", description="email", purpose="fill")
    assert (found["elements"][0]["selector"], found["elements"][0]["role"]) == ("#email", "textbox")
    await agent("fill", selector=found["elements"][0]["handle"], value="x@y.z")
    assert await agent.js("email.value") == "x@y.z"
    result = await agent.try_("find_element", description="quetzalcoatl")
    assert result.error_code == "element_not_found"


async def test_snapshot_has_handles_that_stay(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    first = (await agent("snapshot"))["snapshot"]
    assert '- textbox "Email address"' in first
    assert "required]: old@example.com" in first
    assert '- radio "Free"' in first
    assert "checked]" in first
    await agent.js("document.body.prepend(Object.assign(document.createElement('button'), {textContent: 'New'}))")
    second = (await agent("snapshot"))["snapshot"]
    line = next(line for line in first.splitlines() if "Create account" in line)
    assert line in second
    assert '- button "New"' in second
    await agent("goto", url=web.url)
    third = (await agent("snapshot"))["snapshot"]
    handles = [{part.split("]")[0].split()[0] for part in text.split("[e")[1:]} for text in (second, third)]
    assert not handles[0] & handles[1]


async def test_snapshot_of_a_large_page_fits_and_pages(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/large")
    first = await agent("snapshot")
    assert first["tokens"] <= 6000
    assert len(first["snapshot"]) / 4 <= 6000
    assert first["pages"] > 10
    last = await agent("snapshot", page=first["pages"])
    assert "(continued)" in last["snapshot"]
    line = next(line for line in last["snapshot"].splitlines() if "The very last button" in line)
    assert (await agent("click", selector=line.rpartition("[")[2].rstrip("]")))["matched"]["selector"] == "#last"
    small = await agent("snapshot", max_tokens=500)
    assert small["tokens"] <= 500
    assert small["pages"] > first["pages"]


async def test_snapshot_pages_leave_nothing_out(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent.session.page.set_content(
        "<ul>" + "".join(f"<li><a href='/{n}'>Link {n}</a></li>" for n in range(300)) + "</ul>"
    )
    seen, number = "", 1
    while True:
        shown = await agent("snapshot", page=number, max_tokens=600)
        seen += shown["snapshot"]
        if number == shown["pages"]:
            break
        number += 1
    assert all(f'"Link {n}"' in seen for n in range(300))


async def test_snapshot_of_a_part(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    part = (await agent("snapshot", selector="nav"))["snapshot"]
    assert "Pricing" in part
    assert "Count" not in part
    active = (await agent("snapshot", interactive_only=True))["snapshot"]
    assert "Hammers" not in active
    assert '- button "Count"' in active


async def test_screenshot(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    view = base64.b64decode((await agent("screenshot"))["image"]["data"])
    full = base64.b64decode((await agent("screenshot", full_page=True))["image"]["data"])
    assert _png_size(view) == (1280, 800)
    assert _png_size(full)[1] > 3000
    part = await agent("screenshot", selector="#done", file="done.png")
    assert _png_size((agent.session.files / "done.png").read_bytes()) == (122, 62)
    assert part["matched"]["selector"] == "#done"
    assert (await agent.try_("screenshot", file="../outside.png")).error_code == "path_denied"


def _png_size(data: bytes) -> tuple[int, int]:
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


async def test_page_explorer_looks_screen_by_screen(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/events")
    seen = await agent("page_explorer", screens=10)
    assert seen["complete"] is True
    assert len(seen["screens"]) >= 4
    assert seen["screens"][0]["elements"][0]["name"] == "Mouse target"
    assert [screen["scroll"] for screen in seen["screens"]] == sorted({screen["scroll"] for screen in seen["screens"]})
    assert all(base64.b64decode(screen["image"]["data"]).startswith(b"\xff\xd8") for screen in seen["screens"])
    assert await agent.js("scrollY") == 0


async def test_save_pdf(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    saved = await agent("save_pdf", file="out/home")
    data = (agent.session.files / "out" / "home.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert saved["bytes"] == len(data)
    assert (await agent.try_("save_pdf", file="/tmp/x.pdf")).error_code == "path_denied"
