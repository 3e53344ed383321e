"""Headers that say two things, that grow without end, or that claim to be somebody else."""

import asyncio
import time
from typing import Any

import httpx
import pytest
from tests.surfaces.conftest import client, serve, settings
from tests.surfaces.http.test_gate import token_of

from toolcrib.adapters.tokens import SqliteTokens
from toolcrib.core.errors import RateLimitedError, UnauthenticatedError
from toolcrib.core.roles import Role
from toolcrib.settings import Settings
from toolcrib.surfaces.http.gate import Access, Gate

__all__ = ["client", "serve", "settings"]  # the fixtures of the doors

HOST = ("Host", "127.0.0.1:8000")


@pytest.mark.parametrize(
    "twice",
    [
        [HOST, ("Host", "evil.example")],
        [("Host", "evil.example"), HOST],
        [HOST, ("Origin", "http://evil.example"), ("Origin", "http://127.0.0.1:8000")],
        [HOST, ("Authorization", "Bearer a"), ("Authorization", "Bearer b")],
        [HOST, ("Content-Length", "0"), ("Content-Length", "2")],
        [HOST, ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "none")],
    ],
)
async def test_what_can_be_said_once_is_said_once(client: httpx.AsyncClient, twice: list[tuple[str, str]]) -> None:
    answer = await client.get("/healthz", headers=twice)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert answer.json()["detail"] == f"the request has two {twice[-1][0]} headers; send one"


@pytest.mark.parametrize("origin", ["http://[evil", "http://[x]", "https://[::1", "http://a\u00aa", "://", "[", "null"])
async def test_an_origin_that_is_none_is_a_foreign_one(client: httpx.AsyncClient, origin: str) -> None:
    """It was a defect, and a traceback in the log, for everybody who can connect."""
    answer = await client.get("/healthz", headers=[(b"origin", origin.encode("latin-1"))])
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


def asking(address: str, *forwarded: str, token: str = "tcrib_guess") -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    headers += [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return {"headers": headers, "method": "GET", "client": (address, "50000")}


async def refused(gate: Gate, *scopes: dict[str, Any]) -> list[type[Exception]]:
    """How each is refused, all of them at once: who comes too often is answered late."""

    async def kind(scope: dict[str, Any]) -> type[Exception]:
        with pytest.raises((UnauthenticatedError, RateLimitedError)) as caught:
            await gate.admit(scope)
        return caught.type

    return await asyncio.gather(*map(kind, scopes))


async def test_guessing_is_slowed_down_for_the_one_who_guesses(settings: Settings) -> None:
    """Behind proxies too, in one line or several; who guesses cannot pretend to be others."""
    tokens = SqliteTokens(settings.data_folder / "tokens.db")
    proxies = frozenset({"10.0.0.1", "10.0.0.2"})
    gate = Gate(Access(open_to_local=False, trusted_proxies=proxies), tokens, clock=lambda: 0.0)
    guesses = [asking("10.0.0.1", f"192.0.2.{number}", "198.51.100.7, 10.0.0.2") for number in range(30)]
    kinds = await refused(gate, *guesses)
    assert kinds == [UnauthenticatedError] * 20 + [RateLimitedError] * 10
    assert await refused(gate, asking("10.0.0.1", "198.51.100.8")) == [UnauthenticatedError]
    beside = asking("10.0.0.1", "198.51.100.9, 10.0.0.2")
    assert await refused(gate, beside) == [UnauthenticatedError], "another client of the same two proxies"
    assert await refused(gate, asking("203.0.113.5", "198.51.100.7")) == [UnauthenticatedError], "not a proxy of ours"
    good = asking("10.0.0.1", "198.51.100.7", token=token_of(tokens, Role.READER, now=time.time()))
    assert (await gate.admit(good)).may == {Role.READER}, "whoever guesses locks nobody out"
    tokens.close()


async def test_what_is_no_token_is_not_looked_for(settings: Settings) -> None:
    """Each look at a remote store takes a thread and a round trip."""

    class Counted:
        remote = False

        def find(self, digest: str) -> None:
            asked.append(digest)

    asked: list[str] = []
    gate = Gate(Access(open_to_local=False), Counted(), clock=lambda: 0.0)  # type: ignore[arg-type]
    for token in ("tcrib_", "tcrib_" + "a" * 42, "tcrib_" + "a" * 60_000, "tcrib_" + "ä" * 43, "a.b.c"):
        await refused(gate, asking("127.0.0.1", token=token))
    assert not asked
    await refused(gate, asking("127.0.0.1", token="tcrib_" + "a" * 43))
    assert len(asked) == 1


async def test_strange_requests_are_answered_and_counted_together(client: httpx.AsyncClient) -> None:
    strange = [
        ("GET", "/tools/%0aERROR%20forged", 404),
        ("GET", f"/tools/{'a' * 60_000}", 404),
        ("GET", f"/tools?limit={'1' * 60_000}", 400),
        ("GET", "/tools/%252e%252e%252fetc%252fpasswd", 404),
        ("GET", "/help/..%2f..%2f..%2fserve.py", 404),
        ("OPTIONS", "/tools", 405),
        *((f"BREW{number}", f"/pot-{number}", 404) for number in range(20)),
    ]
    before = (await client.get("/metrics")).text.count("toolcrib_http_requests_total{")
    for method, path, status in strange:
        answer = await client.request(method, path, headers={"range": "bytes=" + "0-1," * 9_000})
        assert answer.status_code == status, (method, path[:80], answer.text)
        assert len(answer.content) < 2_000
    text = (await client.get("/metrics")).text
    assert "BREW" not in text
    assert "pot-" not in text
    assert text.count("toolcrib_http_requests_total{") < before + 10
