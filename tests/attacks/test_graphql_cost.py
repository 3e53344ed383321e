"""Row 10: what a GraphQL request may ask for is counted as it will be asked, and its fields share one budget."""

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.graphql import ask
from tests.support.stores import STORES
from tests.surfaces.conftest import Serve, serve, system_of  # noqa: F401

from toolcrib import ToolSpec
from toolcrib.core.query.budget import QueryLimits
from toolcrib.settings import Settings, load_settings
from toolcrib.surfaces.graphql.execution import answer
from toolcrib.surfaces.http.bodies import MOST_VALUES
from toolcrib.surfaces.http.fields import ENTRY_FIELDS

EVERY_FIELD = " ".join(field.name for field in ENTRY_FIELDS)
TWICE = EVERY_FIELD + " " + " ".join(f"again_{field.name}: {field.name}" for field in ENTRY_FIELDS)


@pytest.fixture(params=["sqlite", "mongo"])
async def client(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> httpx.AsyncClient:  # noqa: F811
    store = STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))
    settings: Settings = load_settings({"HOME": str(tmp_path), "TOOLCRIB_DATA_DIR": str(tmp_path / "data")}, tmp_path)
    client = await serve(settings.with_changes("test", store=store))
    specs = [ToolSpec(name=f"t{number:02}", description="It takes a text.", manual="a" * 500) for number in range(40)]
    system_of(client).catalogue.publish_many(specs)
    return client


def refusals(answer: dict[str, Any]) -> set[tuple[str, int]]:
    return {(error["extensions"]["code"], error["extensions"]["status"]) for error in answer["errors"]}


@pytest.mark.parametrize("limit", [10_000, 10_000.0])
async def test_a_limit_counts_as_the_resolver_gets_it(client: httpx.AsyncClient, limit: float):
    for declared in ("$n: Int!", "$n: Int", "$n: Int = 5"):
        query = f"query({declared}) {{ tools(limit: $n) {{ {TWICE} }} }}"
        assert refusals(await ask(client, query, n=limit)) == {("query_too_large", 400)}
    by_default = f"query($n: Int = 10000) {{ tools(limit: $n) {{ {TWICE} }} }}"
    assert refusals(await ask(client, by_default)) == {("query_too_large", 400)}
    assert len((await ask(client, by_default, n=3.0))["data"]["tools"]) == 3
    left_out = "query($n: Int) { tools(limit: $n) { tool_id } }"
    assert len((await ask(client, left_out))["data"]["tools"]) == 40


@pytest.mark.parametrize("limit", [None, True, "5", 1.5, 2**40, [5], {"a": 1}, 0, -5, 10_001])
async def test_a_limit_of_a_wrong_kind_is_an_error_of_the_request(client: httpx.AsyncClient, limit: Any):
    for declared in ("$n: Int!", "$n: Int", "$n: Int = 5"):
        answer = await ask(client, f"query({declared}) {{ tools(limit: $n) {{ tool_id }} }}", n=limit)
        assert refusals(answer) == {("invalid_query", 400)}, declared
        assert "data" not in answer
    for literal in ("null", "true", '"5"', "1.5", "1e9", "[1]", "-1", "0"):
        assert refusals(await ask(client, f"{{ tools(limit: {literal}) {{ tool_id }} }}")) == {("invalid_query", 400)}


async def test_a_negative_limit_pays_for_no_other(client: httpx.AsyncClient):
    query = f"{{ a: tools(limit: 10000) {{ {TWICE} }} b: tools(limit: -10000) {{ {TWICE} }} }}"
    assert refusals(await ask(client, query)) <= {("invalid_query", 400), ("query_too_large", 400)}


async def test_aliases_add_up_in_cost_and_share_one_budget(client: httpx.AsyncClient, serve: Serve):  # noqa: F811
    costly = " ".join(f"a{number}: tools(limit: 700) {{ {EVERY_FIELD} }}" for number in range(20))
    assert refusals(await ask(client, f"{{ {costly} }}")) == {("query_too_large", 400)}
    nowhere = r'query: "{\"tool_man_page_doc\": {\"$regex\": \"a[^b]*a\"}}"'
    twenty = " ".join(f"a{number}: tools({nowhere}, limit: 40) {{ tool_id }}" for number in range(20))
    limited = await serve(system_of(client).settings, query_limits=QueryLimits(documents=300))
    answer = await ask(limited, f"{{ {twenty} }}")
    assert refusals(answer) == {("query_budget", 400)}
    assert answer["data"] is None
    assert len((await ask(limited, f"{{ tools({nowhere}, limit: 40) {{ tool_id }} }}"))["data"]["tools"]) == 40


async def test_the_length_of_the_answer_is_bounded(client: httpx.AsyncClient, serve: Serve):  # noqa: F811
    many = " ".join(f"a{number}: tool_man_page_doc" for number in range(4))
    assert refusals(await ask(client, f"{{ tools {{ {many} }} }}")) == {("query_too_large", 400)}
    hidden = f"{{ tools {{ ...A }} }} fragment A on ToolEntry {{ tool_id ...B }} fragment B on ToolEntry {{ {many} }}"
    assert refusals(await ask(client, hidden)) == {("query_too_large", 400)}
    same = " ".join(["tool_man_page_doc"] * 50)  # one name in the answer
    assert len((await ask(client, f"{{ tools {{ {same} }} }}"))["data"]["tools"]) == 40
    client = await serve(system_of(client).settings, query_limits=QueryLimits(characters=50_000))
    assert refusals(await ask(client, "{ tools { tool_id } }")) == {("query_budget", 400)}
    assert len((await ask(client, "{ tools(limit: 5) { tool_id } }"))["data"]["tools"]) == 5


@pytest.mark.parametrize("literal", ["9" * 5000, "-" + "9" * 5000, "9" * 400])
async def test_a_number_with_thousands_of_digits_is_no_defect(client: httpx.AsyncClient, literal: str):
    assert refusals(await ask(client, f"{{ tools(limit: {literal}) {{ tool_id }} }}")) == {("invalid_query", 400)}
    where = f"{{ tool_metadata: {{ a: {literal} }} }}"
    found = await ask(client, f"{{ tools(query: {where}) {{ tool_id }} }}")
    assert "errors" not in found or refusals(found) == {("invalid_query", 400)}


async def test_a_filter_in_a_text_holds_no_more_values_than_a_body(client: httpx.AsyncClient):
    """Commas in texts do not count in a body, so a filter in one is counted for itself."""
    text = f"[{'[],' * MOST_VALUES}[]]"
    answer = await ask(client, "query($q: JSON) { tools(query: $q) { tool_id } }", q=text)
    assert refusals(answer) == {("invalid_query", 400)}
    assert f"more than {MOST_VALUES:,} values" in answer["errors"][0]["message"]


class Nobody:
    def query(self, where: dict[str, Any], limit: int, after: str | None) -> list[dict[str, Any]]:
        return []

    def get(self, tool_id: str) -> None:
        return None


def test_a_document_that_is_none_is_gone_once_it_is_refused():
    """Tokens that hold one another would leave the text to the garbage collector, which seldom comes."""
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for number in range(50):
            answer({"query": f"# {number}{'x' * 45_000}\n{{ tools {{{{ }}"}, Nobody())
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_a_document_is_no_longer_than_programs_need(client: httpx.AsyncClient):
    assert refusals(await ask(client, f"{{ tools {{ tool_id }} }} # {'x' * 200_000}")) == {("query_too_large", 400)}


@pytest.mark.parametrize("wrong", [False, True])
def test_what_is_remembered_of_documents_is_small(wrong: bool):
    """256 of 4 MB were some gigabytes."""

    def ask_for(length: int) -> None:
        field = "nothing" if wrong else "tool_id"
        answer({"query": f'{{ tool(tool_id: "a") {{ {field} }} }} # {length} {"x" * length}'}, Nobody())

    ask_for(45_000)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(20):
            ask_for(40_000 + number)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 400_000
    finally:
        tracemalloc.stop()
