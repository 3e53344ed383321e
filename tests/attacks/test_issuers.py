"""The issuer of JWTs hangs while forged ones arrive: nobody else waits."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import jwt
import pytest
from tests.attacks.conftest import Attacked
from tests.support.jwts import AUDIENCE, ISSUER, Keys, claims, signed
from tests.support.receiver import Answer, Received, Receiver, receiving
from tests.support.waiting import PATIENCE, wait_until
from tests.surfaces.http.running import RunningService

pytestmark = pytest.mark.xdist_group("service-process")


class HangingIssuer:
    """Answers with its keys, or not at all."""

    def __init__(self, keys: Keys, receiver: Receiver) -> None:
        self._jwks = keys.jwks("rsa", "ec").encode()
        self._receiver = receiver
        self._end = threading.Event()
        self.url = f"{receiver.url}/jwks"

    def answer(self) -> None:
        self._receiver.answer = lambda _: (200, {}, self._jwks)

    def hang(self) -> None:
        def nothing(_: Received) -> Answer:
            self._end.wait()
            return 503, {}, b""

        self._receiver.answer = nothing

    def asked(self) -> int:
        return len(self._receiver.received)

    def end(self) -> None:
        self._end.set()


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def issuer(keys: Keys) -> Iterator[HangingIssuer]:
    with receiving() as receiver:
        issuer = HangingIssuer(keys, receiver)
        yield issuer
        issuer.end()


@pytest.fixture
def service(issuer: HangingIssuer, tmp_path: Path) -> Iterator[Attacked]:
    settings = {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, "jwt_keys": issuer.url}
    target = Attacked(RunningService(tmp_path, auth="required", **settings))
    yield target
    target.close()


def status(client: httpx.Client, token: str, path: str = "/tools") -> int:
    return client.get(path, headers={"authorization": f"Bearer {token}"}).status_code


def forged(keys: Keys) -> list[str]:
    """Signed well, with a key that nobody has published."""
    stranger = Keys()
    return [jwt.encode(claims(), stranger.rsa, "RS256", headers={"kid": f"forged-{n}"}) for n in range(30)]


def test_forged_tokens_make_nobody_wait(service: Attacked, issuer: HangingIssuer, keys: Keys) -> None:
    """The issuer hangs from the first request to the last but one moment: no answer here waits for it to end."""
    issuer.hang()
    token = service.token("reader")
    service.service.start()
    with ThreadPoolExecutor(30) as forgers, service.service.client() as client:
        attack = [forgers.submit(status, client, forgery) for forgery in forged(keys)]
        wait_until(issuer.asked)
        assert status(client, token) == 200
        assert client.get("/healthz").status_code == 200
        refused = client.get("/tools", headers={"authorization": f"Bearer {signed(keys)}"})
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
        assert "the issuer's keys at" in refused.json()["detail"]
        assert refused.headers["retry-after"]
        assert {one.result(PATIENCE) for one in attack} <= {503}
        assert issuer.asked() == 1, "they do not hammer the issuer either"


def test_known_keys_serve_while_the_issuer_hangs(service: Attacked, issuer: HangingIssuer, keys: Keys) -> None:
    issuer.answer()
    service.service.start()
    with ThreadPoolExecutor(30) as forgers, service.service.client() as client:
        assert status(client, signed(keys, "rsa")) == 200
        issuer.hang()
        attack = [forgers.submit(status, client, forgery) for forgery in forged(keys)]
        for name in ("ada", "bob", "eve"):
            assert status(client, signed(keys, "ec", sub=name)) == 200
        assert {one.result(PATIENCE) for one in attack} <= {401, 429}
        assert issuer.asked() == 1


def test_who_comes_too_often_is_answered_late(service: Attacked, issuer: HangingIssuer, keys: Keys) -> None:
    """Whatever the reason: an attacker who waits for his answers sends less, and the others keep the service."""
    forgeries = forged(keys)
    for hangs in (True, False):
        issuer.hang() if hangs else issuer.answer()
        service.service.start()
        with service.service.client() as client:

            def seconds() -> float:
                began = time.monotonic()
                assert status(client, forgeries[0]) in {401, 429, 503}
                return time.monotonic() - began

            wait_until(lambda: seconds() >= 0.5)
        service.service.stop()
