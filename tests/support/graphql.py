"""Questions to the GraphQL door."""

from typing import Any

import httpx


async def ask(client: httpx.AsyncClient, query: str, **variables: Any) -> dict[str, Any]:
    """The whole answer, errors and all."""
    answer = await client.post("/graphql", json={"query": query, "variables": variables})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result
