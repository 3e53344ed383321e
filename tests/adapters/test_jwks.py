"""The keys of an issuer: fetched beside the requests, remembered, failures too."""

import asyncio
import json
import threading
from collections.abc import Iterator

import jwt
import pytest
from tests.support.jwts import AUDIENCE, ISSUER, Keys, claims, signed
from tests.support.receiver import Receiver, receiving
from tests.support.waiting import until

from toolcrib.adapters.jwks import FetchedKeys, Times, parse_keys
from toolcrib.adapters.jwt import Issuer, JwtBearer
from toolcrib.core.errors import SettingsError, UnauthenticatedError, UnavailableError

PATIENT = Times(wait=60)


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


@pytest.fixture
def issuer() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def serve(issuer: Receiver, text: str, status: int = 200, **headers: str) -> None:
    issuer.answer = lambda _: (status, headers, text.encode())


def bearer(issuer: Receiver, times: Times = PATIENT) -> JwtBearer:
    return JwtBearer(Issuer(ISSUER, AUDIENCE, f"{issuer.url}/jwks"), times)


async def test_an_unknown_key_asks_again_but_not_at_once(keys: Keys, issuer: Receiver) -> None:
    serve(issuer, keys.jwks("rsa"))
    check = bearer(issuer)
    assert (await check.verify(signed(keys, "rsa")))[0].name == "ada"
    serve(issuer, keys.jwks("rsa", "ec"))
    for _ in range(50):
        with pytest.raises(UnauthenticatedError, match="does not list"):
            await check.verify(signed(keys, "ec"))
    assert len(issuer.received) == 1
    check.close()


async def test_a_new_key_is_found(keys: Keys, issuer: Receiver) -> None:
    serve(issuer, keys.jwks("rsa"))
    check = bearer(issuer, Times(wait=60, pause=0))
    assert (await check.verify(signed(keys, "rsa")))[0].name == "ada"
    serve(issuer, keys.jwks("rsa", "ec"))
    assert (await check.verify(signed(keys, "ec")))[0].name == "ada"
    check.close()


@pytest.mark.parametrize("kid", ["rsa", None])
@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (500, "{}", "status 500"),
        (302, "", "status 302"),
        (200, "no json", "no JWKS"),
        (200, '{"keys": []}', "no key that can verify"),
        (200, json.dumps({"keys": [{}] * 101}), "101 keys"),
        (200, " " * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
async def test_an_issuer_that_answers_nonsense_is_told(
    keys: Keys, issuer: Receiver, kid: str | None, status: int, text: str, reason: str
) -> None:
    token = jwt.encode(claims(), keys.rsa, "RS256", headers={"kid": kid} if kid else {})
    serve(issuer, text, status, Location=f"{issuer.url}/elsewhere")
    check = bearer(issuer, Times(wait=60, first_pause=0))
    with pytest.raises(UnavailableError, match=reason):
        await check.verify(token)
    assert len(issuer.received) == 1
    serve(issuer, keys.jwks("rsa"))
    assert (await check.verify(token))[0].name == "ada"
    check.close()


async def test_known_keys_are_believed_while_the_issuer_is_away(keys: Keys, issuer: Receiver) -> None:
    now = 0.0
    serve(issuer, keys.jwks("rsa"))
    times = Times(wait=60, refresh=100, believed=1000, pause=0, first_pause=0)
    fetched = FetchedKeys(f"{issuer.url}/jwks", times, lambda: now)
    await fetched.fetched("rsa", "")
    serve(issuer, "", 500)
    now = 999.0
    assert fetched.known("rsa"), "asked for again in the background, and believed meanwhile"
    await until(lambda: len(issuer.received) == 2)
    now = 1001.0
    assert fetched.known("rsa") is None
    with pytest.raises(UnavailableError, match="status 500"):
        await fetched.fetched("rsa", "")
    fetched.close()


async def test_who_finds_no_place_does_not_wait(keys: Keys, issuer: Receiver) -> None:
    """All from one address: eight wait for the fetch, the others are told at once."""
    go = threading.Event()
    issuer.answer = lambda _: (200, {}, keys.jwks("rsa").encode() if go.wait(60) else b"")
    fetched = FetchedKeys(f"{issuer.url}/jwks", PATIENT)
    waiting = [asyncio.ensure_future(fetched.fetched("rsa", "192.0.2.1")) for _ in range(8)]
    await until(lambda: issuer.received)
    with pytest.raises(UnavailableError, match="has not answered yet"):
        await fetched.fetched("rsa", "192.0.2.1")
    other = asyncio.ensure_future(fetched.fetched("rsa", "192.0.2.2"))
    go.set()
    assert {key.key_id for key in await asyncio.gather(*waiting, other)} == {"rsa"}
    assert len(issuer.received) == 1
    fetched.close()


def test_keys_come_by_https() -> None:
    with pytest.raises(SettingsError, match="use https"):
        JwtBearer(Issuer(ISSUER, AUDIENCE, "http://login.example.org/jwks"))
    JwtBearer(Issuer(ISSUER, AUDIENCE, "https://login.example.org/jwks")).close()


def test_a_list_of_keys_holds_what_can_verify(keys: Keys) -> None:
    listed = json.loads(keys.jwks("rsa", "ec"))["keys"]
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"}
    text = json.dumps({"keys": [{**listed[0], "use": "enc"}, secret, {"kty": "new"}, {"kty": 1}, listed[1]]})
    assert [key.key_id for key in parse_keys(text)] == ["ec"]
    for wrong in ("", "[]", '{"keys": {}}', '{"keys": [1]}', "[" * 100_000):
        with pytest.raises(ValueError, match=r"."):
            parse_keys(wrong)
