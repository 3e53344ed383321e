"""Whole forms: read, filled in, sent."""

# ruff: noqa: E501

from __future__ import annotations

import json

import pytest
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _sent(agent: Agent) -> dict[str, list[str]]:
    sent: dict[str, list[str]] = json.loads(await agent.text("pre"))
    return sent


async def test_get_form_lists_the_fields(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    form = (await agent("get_form"))["forms"][0]
    fields = {field["name"]: field for field in form["fields"]}
    assert (form["name"], form["method"], form["action"]) == ("Sign up", "post", f"{web.url}/submitted")
    assert (fields["email"]["label"], fields["email"]["value"], fields["email"]["required"]) == (
        "Email address",
        "old@example.com",
        True,
    )
    assert fields["country"]["options"] == ["choose", "Norway", "Sweden"]
    assert fields["news"]["checked"] is False
    assert [button["name"] for button in form["buttons"]] == ["Create account", "Start over"]
    await agent("goto", url=web.url)
    assert (await agent.try_("get_form")).error_code == "element_not_found"


async def test_fill_form_by_label_name_and_placeholder(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    done = await agent(
        "fill_form",
        fields={
            "Email address": "ada@example.com", "fullname": "Ada", "City you live in": "Oslo", "Country": "Norway", "Sizes": ["S", "M"],
            "Plan": "Pro plan", "Send me news": True, "I agree to the terms": "yes", "Age": 36, "#pw": "s3cret",
        },
        submit=True,
    )  # fmt: skip
    assert done["filled"][0] | {"matched": None} == {
        "field": "Email address",
        "matched": None,
        "before": "old@example.com",
        "after": "ada@example.com",
    }
    assert done["submitted"]["navigated"] is True
    assert await _sent(agent) == {
        "email": ["ada@example.com"], "fullname": ["Ada"], "city": ["Oslo"], "password": ["s3cret"], "country": ["no"], "sizes": ["S", "M"],
        "plan": ["pro"], "news": ["on"], "fancy": ["on"], "remarks": ["hello"], "age": ["36"],
    }  # fmt: skip


async def test_fill_form_names_the_field_it_could_not_fill(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    result = await agent.try_("fill_form", fields={"Full name": "Ada", "Shoe size of your aunt": "43"}, timeout=5000)
    assert result.error_code == "element_not_found"
    assert "'Shoe size of your aunt'" in (result.error or "")
    assert [entry["field"] for entry in result.metadata["filled"]] == ["Full name"]
    result = await agent.try_("fill_form", fields={"Send me news": "perhaps"})
    assert result.error_code == "invalid_arguments"


async def test_submit(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    await agent("clear_input", selector="#email")
    result = await agent.try_("submit")
    assert result.error_code == "element_not_ready"
    assert "Email address" in (result.error or "")
    await agent("fill", selector="#email", value="a@b.c")
    done = await agent("submit", selector="#signup")
    assert (done["navigated"], done["title"]) == (True, "Submitted")
    assert (await _sent(agent))["email"] == ["a@b.c"]
    await agent("goto", url=web.url)
    assert (await agent.try_("submit")).error_code == "element_not_found"
