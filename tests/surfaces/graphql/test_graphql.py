"""GraphQL: literals and variables, paging, limits, errors, and the page at the same address."""

from typing import Any

import httpx
import pytest
from graphql import get_introspection_query
from tests.support.graphql import ask

from toolcrib.surfaces.http.fields import ENTRY_FIELDS


@pytest.fixture
async def filled(client: httpx.AsyncClient) -> httpx.AsyncClient:
    for number in range(5):
        entry = {"tool_id": f"t{number}", "tool_type": "a" if number % 2 else "b", "tool_metadata": {"n": number}}
        assert (await client.post("/tools", json=entry)).status_code == 201
    return client


async def ids(client: httpx.AsyncClient, query: str, **variables: Any) -> list[str]:
    answer = await ask(client, query, **variables)
    assert "errors" not in answer, answer
    return [tool["tool_id"] for tool in answer["data"]["tools"]]


async def code(client: httpx.AsyncClient, query: str, **variables: Any) -> str:
    errors = (await ask(client, query, **variables))["errors"]
    return str(errors[0]["extensions"]["code"])


async def test_filters_as_literals_variables_and_text(filled: httpx.AsyncClient) -> None:
    assert await ids(filled, '{ tools(query: { tool_type: "a" }) { tool_id } }') == ["t1", "t3"]
    assert await ids(filled, "query($t: String) { tools(query: { tool_type: $t }) { tool_id } }", t="a") == ["t1", "t3"]
    where = {"$or": [{"tool_id": "t0"}, {"tool_metadata.n": {"$gte": 4}}]}
    assert await ids(filled, "query($q: JSON) { tools(query: $q) { tool_id } }", q=where) == ["t0", "t4"]
    text = r'{ tools(query: "{\"tool_metadata.n\": {\"$lt\": 2}}") { tool_id } }'
    assert await ids(filled, text) == ["t0", "t1"]
    assert await ids(filled, "{ tools(query: {tool_metadata: {n: 3}}) { tool_id } }") == ["t3"]
    assert await ids(filled, "{ tools(query: null) { tool_id } }") == ["t0", "t1", "t2", "t3", "t4"]


async def test_paging(filled: httpx.AsyncClient) -> None:
    query = "query($after: String) { tools(limit: 2, after: $after) { tool_id } }"
    assert await ids(filled, query) == ["t0", "t1"]
    assert await ids(filled, query, after="t1") == ["t2", "t3"]
    assert await ids(filled, query, after="t3") == ["t4"]
    assert await code(filled, "{ tools(limit: 0) { tool_id } }") == "invalid_query"
    assert await code(filled, "{ tools(limit: 10001) { tool_id } }") == "invalid_query"


async def test_one_tool(filled: httpx.AsyncClient) -> None:
    answer = await ask(filled, '{ tool(tool_id: "t3") { tool_metadata } nobody: tool(tool_id: "x") { tool_id } }')
    assert answer == {"data": {"tool": {"tool_metadata": {"n": 3}}, "nobody": None}}
    assert (await ask(filled, '{ tool(tool_id: "../x") { tool_id } }'))["data"] == {"tool": None}


async def test_names_stay_snake_case(filled: httpx.AsyncClient) -> None:
    errors = (await ask(filled, "{ tools { toolId } }"))["errors"]
    assert "tool_id" in errors[0]["message"]


async def test_introspection(filled: httpx.AsyncClient) -> None:
    schema = (await ask(filled, get_introspection_query()))["data"]["__schema"]
    names = {kind["name"] for kind in schema["types"]}
    assert {"Query", "ToolEntry", "JSON"} <= names


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("{ tools { " + "tool_id " * 5_000 + "} }", "invalid_query"),
        ("{ " + " ".join(f"a{n}: tools {{ tool_id }}" for n in range(30)) + " }", "query_too_large"),
        ("{ tools { " + " ".join(f"a{n}: tool_id" for n in range(1000)) + " } }", "query_too_large"),
        ("{ tools(limit: 10000) { " + " ".join(f"a{n}: tool_id" for n in range(30)) + " } }", "query_too_large"),
        ("{" + "tools {" * 3000 + "}" * 3001, "invalid_query"),
        ("{ tools(query: " + "{a: " * 1500 + "1" + "}" * 1500 + ") { tool_id } }", "invalid_query"),
        ("{ ..." + "... on Query { ..." * 100 + "}" * 101, "invalid_query"),
        ("{" + "... on Query {" * 40 + "tools(limit: 10000) { tool_id }" + "}" * 41, "query_too_large"),
        ("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }", "query_too_large"),
        ("{ __schema { types { " + "fields { type { " * 12 + "name" + " } }" * 12 + " } } }", "query_too_large"),
        ("mutation { tools { tool_id } }", "invalid_query"),
        ("{ nothing }", "invalid_query"),
        ("query A { tools { tool_id } } query B { tools { tool_id } }", "invalid_query"),
    ],
)  # fmt: skip
async def test_deep_wide_and_wrong_documents(filled: httpx.AsyncClient, query: str, expected: str) -> None:
    assert await code(filled, query) == expected


async def test_a_fragment_bomb_is_refused_before_it_goes_off(filled: httpx.AsyncClient) -> None:
    bomb = "{ tools { ...F0 } }" + "".join(
        f" fragment F{n} on ToolEntry {{ " + f"...F{n + 1} " * 10 + "}" for n in range(12)
    ) + " fragment F12 on ToolEntry { tool_id }"  # fmt: skip
    assert await code(filled, bomb) == "query_too_large"  # each of its 10 ** 12 fields would take its time


async def test_hidden_cost_is_found(filled: httpx.AsyncClient) -> None:
    """Fields behind fragments and a limit behind a variable count as if they stood there."""
    fields = " ".join(field.name for field in ENTRY_FIELDS)
    again = " ".join(f"x_{field.name}: {field.name}" for field in ENTRY_FIELDS)
    spread = (
        "query($n: Int!) { ...R } fragment R on Query { tools(limit: $n) { ...E ...F } } "
        f"fragment E on ToolEntry {{ {fields} }} fragment F on ToolEntry {{ {again} }}"
    )
    assert await code(filled, spread, n=10_000) == "query_too_large"
    assert len(await ids(filled, spread, n=10)) == 5


async def test_the_other_ways_to_ask(filled: httpx.AsyncClient) -> None:
    query = "query($q: JSON) { tools(query: $q) { tool_id } }"
    got = await filled.get("/graphql", params={"query": query, "variables": '{"q": {"tool_id": "t1"}}'})
    assert got.json() == {"data": {"tools": [{"tool_id": "t1"}]}}
    query = 'query A { tool(tool_id: "t1") { tool_id } } query B { tools { tool_id } }'
    named = await filled.post("/graphql", json={"query": query, "operationName": "A"})
    assert named.json() == {"data": {"tool": {"tool_id": "t1"}}}
    modern = await filled.post(
        "/graphql", json={"query": "{ nope }"}, headers={"accept": "application/graphql-response+json"}
    )
    assert (modern.status_code, modern.headers["content-type"]) == (400, "application/graphql-response+json")
    wrong: list[Any] = [{}, {"query": 1}, {"query": " "}, {"query": "{a}", "variables": []}, []]
    for bad in [*wrong, {"query": "{a}", "operationName": 1}]:
        assert (await filled.post("/graphql", json=bad)).status_code == 400
    assert (await filled.get("/graphql", params={"query": "{a}", "variables": "{"})).status_code == 400


async def test_the_page(client: httpx.AsyncClient) -> None:
    page = await client.get("/graphql", headers={"accept": "text/html,*/*"})
    assert page.headers["content-type"].startswith("text/html")
    assert "<title>GraphiQL" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for text in (page.text, (await client.get("/docs")).text):
        assert "https://" not in text
        assert "http://" not in text
