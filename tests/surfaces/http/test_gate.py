"""Who comes in, as what, how often, and from where; the same rule at every endpoint."""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.jwts import AUDIENCE, ISSUER, Keys, signed
from tests.support.waiting import PATIENCE, until
from tests.surfaces.conftest import Serve

from toolcrib.adapters.tokens import MongoTokens, SqliteTokens
from toolcrib.core.errors import RateLimitedError, SettingsError, UnauthenticatedError
from toolcrib.core.roles import Role
from toolcrib.core.tokens import TokenRecord, new_token
from toolcrib.ports import Tokens
from toolcrib.settings import Settings
from toolcrib.surfaces.http.endpoints import Endpoint
from toolcrib.surfaces.http.errors import ForeignHostError, ForeignOriginError
from toolcrib.surfaces.http.gate import Access, Gate
from toolcrib.surfaces.http.origins import Origins, host_name
from toolcrib.surfaces.service import ENDPOINTS


def issue(tokens: Tokens, name: str, role: Role, *, now: float, seconds: float = 0.0) -> tuple[str, TokenRecord]:
    token, record = new_token(name, role, now=now, seconds=seconds)
    tokens.add(record)
    return token, record


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def presenting(token: str, address: str = "127.0.0.1") -> dict[str, Any]:
    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
    return {"headers": headers, "method": "GET", "client": (address, 5)}


@pytest.fixture
def tokens(settings: Settings) -> SqliteTokens:
    return SqliteTokens(settings.data_folder / "tokens.db")


@pytest.fixture
async def guarded(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    return await serve(settings.with_changes("test", auth="required"))


def token_of(tokens: Tokens, role: Role, seconds: float = 0, now: float | None = None) -> str:
    return issue(tokens, f"a {role}", role, now=time.time() if now is None else now, seconds=seconds)[0]


# Tokens


@pytest.mark.parametrize("kind", ["sqlite", "mongo"])
def test_tokens_are_kept_hashed(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    tokens: Tokens
    if kind == "sqlite":
        tokens = SqliteTokens(tmp_path / "tokens.db")
    else:
        tokens = MongoTokens(request.getfixturevalue("mongo_database_url"))
    token, record = issue(tokens, "ci", Role.PUBLISHER, now=100.0, seconds=50)
    assert len(token) > 40
    assert tokens.find(record.digest) == record
    assert (record.name, record.role, record.expires_at) == ("ci", "publisher", 150.0)
    other, second = issue(tokens, "you", Role.READER, now=101.0)
    assert other != token
    assert tokens.all() == [record, second]
    if kind == "sqlite":
        assert token.encode() not in (tmp_path / "tokens.db").read_bytes()
        assert (tmp_path / "tokens.db").stat().st_mode & 0o077 == 0
    assert tokens.revoke(record.id)
    assert not tokens.revoke(record.id)
    assert tokens.find(record.digest) is None
    tokens.close()


async def test_without_a_token_only_the_open_paths_answer(guarded: httpx.AsyncClient) -> None:
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/graphql"):
        assert (await guarded.get(path)).status_code == 200
    answer = await guarded.get("/tools/a")
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (await guarded.get("/graphql", params={"query": "{ tools { tool_id } }"})).status_code == 401


async def request_to(client: httpx.AsyncClient, endpoint: Endpoint[Any], headers: dict[str, str]) -> int:
    path = endpoint.path.replace("{tool_id}", "a").replace("{version}", "1").replace("{digest}", "0" * 64)
    body: dict[str, Any] = {}
    if endpoint.body is not None:
        body = {"files": {"file": b"x"}} if "multipart" in endpoint.body.media_type else {"json": {}}
    return (await client.request(endpoint.method, path, headers=headers, **body)).status_code


_MAY = {
    Role.READER: {Role.READER},
    Role.RUNNER: {Role.READER, Role.RUNNER},
    Role.PUBLISHER: {Role.READER, Role.PUBLISHER},
    Role.ADMIN: set(Role),
}


async def test_every_endpoint_keeps_the_same_rule(guarded: httpx.AsyncClient, tokens: SqliteTokens) -> None:
    assert {endpoint.role for endpoint in ENDPOINTS} == {None, *Role}
    for role in Role:
        headers = bearer(token_of(tokens, role))
        for endpoint in ENDPOINTS:
            status = await request_to(guarded, endpoint, headers)
            allowed = endpoint.role is None or endpoint.role in _MAY[role]
            assert (status == 403) is not allowed, (role, endpoint.method, endpoint.path, status)
            assert status not in (401, 500)


async def test_reading_is_one_rule(guarded: httpx.AsyncClient, tokens: SqliteTokens) -> None:
    publisher, reader = bearer(token_of(tokens, Role.PUBLISHER)), bearer(token_of(tokens, Role.READER))
    assert (await guarded.post("/tools", json={"tool_id": "a"}, headers=publisher)).status_code == 201
    refused = await guarded.post("/tools", json={"tool_id": "b"}, headers=reader)
    assert refused.status_code == 403
    assert "'a reader' has the role 'reader' and this needs 'publisher'; ask" in refused.json()["detail"]
    for path in ("/tools", "/tools/a", "/tools/search?q=a", "/tools/query/by-type?type="):
        assert (await guarded.get(path)).status_code == 401
        assert (await guarded.get(path, headers=reader)).status_code == 200
    events = (await guarded.get("/audit", headers=bearer(token_of(tokens, Role.ADMIN)))).json()
    assert {(event["principal"], event["outcome"]) for event in events} == {
        ("a publisher", "attempt"), ("a publisher", "done"), ("a reader", "attempt"), ("a reader", "refused"),
    }  # fmt: skip


async def test_wrong_and_expired_tokens(guarded: httpx.AsyncClient, tokens: SqliteTokens) -> None:
    for wrong in ("Bearer tcrib_nonsense", "Bearer", "Bearer ", "Basic eDp5", "tcrib_x", "Bearer a.b.c"):
        answer = await guarded.get("/tools/a", headers={"authorization": wrong})
        assert answer.status_code == 401, wrong
    expired = token_of(tokens, Role.READER, seconds=1, now=time.time() - 10)
    assert "expired" in (await guarded.get("/tools", headers=bearer(expired))).json()["detail"]


async def test_a_revoked_token_is_believed_for_five_seconds_at_most(tokens: SqliteTokens) -> None:
    now = 0.0
    gate = Gate(Access(open_to_local=False), tokens, clock=lambda: now)
    token, record = issue(tokens, "x", Role.READER, now=time.time())
    scope = presenting(token)
    assert (await gate.admit(scope)).name == "x"
    tokens.revoke(record.id)
    now = 4.9
    assert (await gate.admit(scope)).name == "x"
    now = 5.1
    with pytest.raises(UnauthenticatedError):
        await gate.admit(scope)


class HeldUp(MongoTokens):
    """Counts the looks at it, and answers none before ``go``."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.looks = 0
        self.go = threading.Event()

    def find(self, digest: str) -> TokenRecord | None:
        self.looks += 1
        assert self.go.wait(PATIENCE)
        return super().find(digest)


@pytest.fixture
def held_up(mongo_database_url: str) -> Iterator[HeldUp]:
    tokens = HeldUp(mongo_database_url)
    yield tokens
    tokens.go.set()
    tokens.close()


async def test_equal_looks_at_a_remote_store_are_one(held_up: HeldUp) -> None:
    """Of one address, so that nobody waits in the line of another; who gives up leaves the look to the others."""
    gate = Gate(Access(open_to_local=False), held_up)
    token, _ = issue(held_up, "x", Role.READER, now=time.time())
    asking = [asyncio.create_task(gate.admit(presenting(token))) for _ in range(20)]
    other = asyncio.create_task(gate.admit(presenting(token, "192.0.2.1")))
    await until(lambda: held_up.looks == 2)
    asking[0].cancel()
    held_up.go.set()
    gone, *let_in = await asyncio.gather(*asking, other, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert [getattr(principal, "name", principal) for principal in let_in] == ["x"] * 20
    assert held_up.looks == 2


async def test_each_who_shares_a_look_in_vain_is_refused(held_up: HeldUp) -> None:
    held_up.go.set()
    gate = Gate(Access(open_to_local=False), held_up, clock=lambda: 0.0)
    guess = presenting("tcrib_" + "a" * 43)
    answers = await asyncio.gather(*(gate.admit(guess) for _ in range(30)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [UnauthenticatedError] * 20 + [RateLimitedError] * 10
    assert held_up.looks == 1


async def test_those_who_share_a_look_believe_a_revoked_token_no_longer(held_up: HeldUp) -> None:
    """Each of them goes on a second later than the one before; the five seconds began with the store's answer."""
    now = 0.0
    gate = Gate(Access(open_to_local=False), held_up, clock=lambda: now)
    token, record = issue(held_up, "x", Role.READER, now=time.time())

    async def ask() -> str:
        nonlocal now
        name = (await gate.admit(presenting(token))).name
        now += 1.0
        return name

    asking = [asyncio.create_task(ask()) for _ in range(6)]
    await until(lambda: held_up.looks)
    held_up.go.set()
    assert await asyncio.gather(*asking) == ["x"] * 6
    assert held_up.looks == 1
    held_up.revoke(record.id)
    with pytest.raises(UnauthenticatedError):
        await gate.admit(presenting(token))


@pytest.fixture
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the gate: however slow the machine, all requests come at once."""
    monkeypatch.setattr("toolcrib.surfaces.service.Gate", partial(Gate, clock=lambda: 0.0))


async def test_guessing_tokens_is_slowed_down(time_stands_still: None, guarded: httpx.AsyncClient) -> None:
    guesses = (guarded.get("/tools", headers=bearer(f"tcrib_guess{number}")) for number in range(40))
    statuses = [answer.status_code for answer in await asyncio.gather(*guesses)]
    assert sorted(statuses) == [401] * 20 + [429] * 20


# JWT


async def test_a_jwt_is_let_in_with_its_role(serve: Serve, settings: Settings, tmp_path: Path) -> None:
    keys = Keys()
    (tmp_path / "jwks.json").write_text(keys.jwks("rsa", "ec", "ed"))
    client = await serve(
        settings.with_changes(
            "test", auth="required", jwt_issuer=ISSUER, jwt_audience=AUDIENCE, jwt_keys=str(tmp_path / "jwks.json")
        )
    )
    for kid in ("rsa", "ec", "ed"):
        assert (await client.get("/tools", headers=bearer(signed(keys, kid)))).status_code == 200
        assert (
            await client.post("/tools", json={"tool_id": "a"}, headers=bearer(signed(keys, kid)))
        ).status_code == 403
    publisher = bearer(signed(keys, role=["other", "publisher", "reader"], sub="grace"))
    assert (await client.post("/tools", json={"tool_id": "a"}, headers=publisher)).status_code == 201
    admin = bearer(signed(keys, role="admin"))
    done = (await client.get("/audit", params={"outcome": "done"}, headers=admin)).json()
    assert {event["principal"] for event in done} == {"grace"}
    assert (await client.get("/tools", headers=bearer(signed(keys, exp=1)))).status_code == 401


# Binding


def test_elsewhere_than_loopback_needs_credentials(settings: Settings, tokens: SqliteTokens) -> None:
    elsewhere = settings.with_changes("test", host="0.0.0.0")
    for exposed in (elsewhere, settings.with_changes("test", allowed_hosts=("tools.example.org",))):
        with pytest.raises(SettingsError, match="open to everybody"):
            Access.of(exposed, tokens)
    assert not Access.of(elsewhere.with_changes("test", jwt_issuer="https://issuer.example"), tokens).open_to_local
    token_of(tokens, Role.READER)
    assert not Access.of(elsewhere, tokens).open_to_local
    assert Access.of(settings, tokens).open_to_local
    assert not Access.of(settings.with_changes("test", auth="required"), tokens).open_to_local


def test_host_names() -> None:
    assert [host_name(text) for text in ("A.b:80", "[::1]:80", "[::1]", "a", "::1")] == [
        "a.b",
        "::1",
        "::1",
        "a",
        "::1",
    ]


def check(origins: Origins, host: str, origin: str = "", site: str = "", mode: str = "", method: str = "GET") -> None:
    origins.check(host, origin, site, mode, method)


def test_foreign_pages_are_kept_out() -> None:
    local = Origins()
    check(local, "localhost:8000")
    check(local, "localhost:8000", "http://localhost:8000")
    check(local, "127.0.0.1:8000", site="same-origin")
    check(local, "127.0.0.1:8000", site="none")
    check(local, "127.0.0.1:8000", site="cross-site", mode="navigate")
    for host in ("evil.org", "evil.org:8000", "127.0.0.1.evil.org", ""):
        with pytest.raises(ForeignHostError):
            check(local, host)
    for origin in ("http://evil.org", "null", "http://localhost:9000", "file://localhost:8000"):
        with pytest.raises(ForeignOriginError):
            check(local, "localhost:8000", origin)
    with pytest.raises(ForeignOriginError):
        check(local, "localhost:8000", site="cross-site", mode="no-cors")
    with pytest.raises(ForeignOriginError):
        check(local, "localhost:8000", site="cross-site", mode="navigate", method="POST")
    public = Origins(("tools.example.org",), ("https://app.example.org",))
    check(public, "tools.example.org")
    check(public, "tools.example.org", "https://app.example.org")


async def test_the_service_keeps_foreign_pages_out(client: httpx.AsyncClient) -> None:
    for path in ("/tools/a", "/healthz", "/tools", "/nowhere"):
        rebound = await client.get(path, headers={"host": "evil.org:8000"})
        assert (rebound.status_code, rebound.json()["code"]) == (421, "foreign_host")
        foreign = await client.get(path, headers={"origin": "http://evil.org"})
        assert (foreign.status_code, foreign.json()["code"]) == (403, "foreign_origin")
    simple = {"origin": "http://evil.org", "content-type": "text/plain"}
    assert (await client.post("/tools", content=b'{"tool_id": "x"}', headers=simple)).status_code == 403
    plain = await client.post("/tools", content=b'{"tool_id": "x"}', headers={"content-type": "text/plain"})
    assert plain.status_code == 415


# Rates


async def test_requests_are_limited_per_caller(
    time_stands_still: None, serve: Serve, settings: Settings, tokens: SqliteTokens
) -> None:
    client = await serve(settings.with_changes("test", auth="required", rate=1, burst=5))
    ada, bob = bearer(token_of(tokens, Role.READER)), bearer(token_of(tokens, Role.READER))
    statuses = [(await client.get("/tools", headers=ada)).status_code for _ in range(8)]
    assert statuses == [200] * 5 + [429] * 3
    limited = await client.get("/tools/a", headers=ada)
    assert (limited.status_code, limited.json()["code"]) == (429, "rate_limited")
    assert int(limited.headers["retry-after"]) >= 1
    assert (await client.get("/tools", headers=bob)).status_code == 200
