"""JWTs: who one is of, and which are refused."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.jwts import AUDIENCE, ISSUER, Keys, claims, signed

from toolcrib.adapters.jwt import Issuer, JwtBearer
from toolcrib.core.errors import SettingsError, UnauthenticatedError, UnavailableError
from toolcrib.core.roles import Role


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


def verifier(keys_text: str, **options: Any) -> JwtBearer:
    return JwtBearer(Issuer(ISSUER, AUDIENCE, keys_text, **options))


def test_a_valid_jwt_says_who(keys: Keys) -> None:
    expiry = int(time.time()) + 600
    principal, expires = verifier(keys.pem()).verify(signed(keys, exp=expiry))
    assert (principal.name, principal.roles) == ("ada", ("reader",))
    assert expires == expiry
    nested = verifier(keys.pem(), role_claim="realm.roles").verify(signed(keys, realm={"roles": ["admin"]}))
    assert nested[0].may == frozenset(Role)
    several = verifier(keys.pem()).verify(signed(keys, role=["treasury", "runner", "publisher"]))[0]
    assert several.may == {Role.READER, Role.RUNNER, Role.PUBLISHER}


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1}, {"nbf": 4_000_000_000}, {"aud": "other"}, {"iss": "https://other.example"}, {"exp": None},
        {"aud": None}, {"iss": None}, {"sub": None}, {"role": None}, {"role": "emperor"}, {"role": {"a": 1}},
    ],
)  # fmt: skip
def test_a_jwt_with_wrong_claims_is_refused(keys: Keys, changes: dict[str, Any]) -> None:
    with pytest.raises(UnauthenticatedError):
        verifier(keys.pem()).verify(signed(keys, **changes))


def test_forged_jwts_are_refused(keys: Keys) -> None:
    check = verifier(keys.pem())
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    unsigned = jwt.encode(claims(), cast("Any", None), "none")
    good = signed(keys)
    head, _, signature = good.split(".")
    payload = jwt.utils.base64url_encode(json.dumps(claims(role="admin")).encode()).decode()
    for forged in (
        jwt.encode(claims(), stranger, "RS256"),
        unsigned,
        # the public key as an HMAC secret: the classical confusion
        _hmac_with_public_key(keys.pem()),
        f"{head}.{payload}.{signature}",
        good[:-6],
        "x.y.z",
        "",
    ):
        with pytest.raises(UnauthenticatedError):
            check.verify(forged)


def _hmac_with_public_key(pem: str) -> str:
    import hashlib
    import hmac

    encode = jwt.utils.base64url_encode
    head = encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = encode(json.dumps(claims(role="admin")).encode())
    seal = encode(hmac.new(pem.encode(), head + b"." + body, hashlib.sha256).digest())
    return (head + b"." + body + b"." + seal).decode()


def test_an_algorithm_that_is_not_listed_is_refused(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(keys.jwks("rsa", "ec"))
    check = verifier(str(tmp_path / "jwks.json"), algorithms=("ES256",))
    assert check.verify(signed(keys, "ec"))[0].name == "ada"
    with pytest.raises(UnauthenticatedError):
        check.verify(signed(keys, "rsa"))
    with pytest.raises(SettingsError, match="HS256"):
        Issuer(ISSUER, AUDIENCE, "x", ("HS256",))


@contextmanager
def issuing(answer: Callable[[], tuple[int, str]]) -> Iterator[tuple[str, list[str]]]:
    """The address of an issuer that answers with ``answer()``, and the requests that it got."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, text = answer()
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/jwks", asked
        finally:
            server.shutdown()


def test_new_keys_of_the_issuer_are_fetched(keys: Keys) -> None:
    served = [keys.jwks("rsa")]
    with issuing(lambda: (200, served[0])) as (url, asked):
        check = verifier(url)
        assert check.verify(signed(keys, "rsa"))[0].name == "ada"
        served[0] = keys.jwks("rsa", "ec")
        with pytest.raises(UnauthenticatedError):
            check.verify(signed(keys, "ec"))
        assert len(asked) == 1, "an unknown key is not a reason to ask the issuer again at once"
        eager = JwtBearer(Issuer(ISSUER, AUDIENCE, url), refetch_seconds=0)
        served[0] = keys.jwks("rsa")
        assert eager.verify(signed(keys, "rsa"))[0].name == "ada"
        served[0] = keys.jwks("rsa", "ec")
        assert eager.verify(signed(keys, "ec"))[0].name == "ada"


@pytest.mark.parametrize("kid", ["rsa", None])
def test_an_issuer_that_does_not_answer_is_told(keys: Keys, kid: str | None) -> None:
    token = jwt.encode(claims(), keys.rsa, "RS256", headers={"kid": kid} if kid else {})
    for status, text in ((500, "{}"), (200, "no json"), (302, "")):
        answer = (status, text)
        with (
            issuing(lambda answer=answer: answer) as (url, _),  # type: ignore[misc]
            pytest.raises(UnavailableError, match="could not be fetched"),
        ):
            verifier(url).verify(token)
    with issuing(lambda: (200, keys.jwks("rsa"))) as (url, _):
        assert verifier(url).verify(token)[0].name == "ada"


@pytest.mark.parametrize("text", ["-----BEGIN PRIVATE KEY-----", "{}", "[]", '{"keys": 1}', "/no/such/file"])
def test_wrong_keys_are_told_at_the_start(text: str, tmp_path: Path) -> None:
    if text.startswith(("{", "[")):
        (tmp_path / "keys").write_text(text)
        text = str(tmp_path / "keys")
    with pytest.raises(SettingsError):
        verifier(text)
