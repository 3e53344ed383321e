"""JWTs: who one is of, and which are refused."""

import json
import time
from pathlib import Path
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.jwts import AUDIENCE, ISSUER, Keys, claims, signed

from toolcrib.adapters.jwt import Issuer, JwtBearer
from toolcrib.core.errors import SettingsError, UnauthenticatedError
from toolcrib.core.roles import Role


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


def verifier(keys_text: str, **options: Any) -> JwtBearer:
    return JwtBearer(Issuer(ISSUER, AUDIENCE, keys_text, **options))


async def test_a_valid_jwt_says_who(keys: Keys) -> None:
    expiry = int(time.time()) + 600
    principal, expires = await verifier(keys.pem()).verify(signed(keys, exp=expiry))
    assert (principal.name, principal.roles) == ("ada", ("reader",))
    assert expires == expiry
    nested = await verifier(keys.pem(), role_claim="realm.roles").verify(signed(keys, realm={"roles": ["admin"]}))
    assert nested[0].may == frozenset(Role)
    several = (await verifier(keys.pem()).verify(signed(keys, role=["treasury", "runner", "publisher"])))[0]
    assert several.may == {Role.READER, Role.RUNNER, Role.PUBLISHER}


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1}, {"nbf": 4_000_000_000}, {"aud": "other"}, {"iss": "https://other.example"}, {"exp": None},
        {"aud": None}, {"iss": None}, {"sub": None}, {"role": None}, {"role": "emperor"}, {"role": {"a": 1}},
    ],
)  # fmt: skip
async def test_a_jwt_with_wrong_claims_is_refused(keys: Keys, changes: dict[str, Any]) -> None:
    with pytest.raises(UnauthenticatedError):
        await verifier(keys.pem()).verify(signed(keys, **changes))


async def test_forged_jwts_are_refused(keys: Keys) -> None:
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
        good + "." + signature,
        "x" * 20_000 + "." + payload + "." + signature,
        jwt.utils.base64url_encode(b"[" * 9_000).decode() + "." + payload + "." + signature,
        "x.y.z",
        "",
    ):
        with pytest.raises(UnauthenticatedError):
            await check.verify(forged)


def _hmac_with_public_key(pem: str) -> str:
    import hashlib
    import hmac

    encode = jwt.utils.base64url_encode
    head = encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = encode(json.dumps(claims(role="admin")).encode())
    seal = encode(hmac.new(pem.encode(), head + b"." + body, hashlib.sha256).digest())
    return (head + b"." + body + b"." + seal).decode()


async def test_an_algorithm_that_is_not_listed_is_refused(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(keys.jwks("rsa", "ec"))
    check = verifier(str(tmp_path / "jwks.json"), algorithms=("ES256",))
    assert (await check.verify(signed(keys, "ec")))[0].name == "ada"
    with pytest.raises(UnauthenticatedError):
        await check.verify(signed(keys, "rsa"))
    with pytest.raises(SettingsError, match="HS256"):
        Issuer(ISSUER, AUDIENCE, "x", ("HS256",))


@pytest.mark.parametrize("text", ["-----BEGIN PRIVATE KEY-----", "{}", "[]", '{"keys": 1}', "/no/such/file"])
def test_wrong_keys_are_told_at_the_start(text: str, tmp_path: Path) -> None:
    if text.startswith(("{", "[")):
        (tmp_path / "keys").write_text(text)
        text = str(tmp_path / "keys")
    with pytest.raises(SettingsError):
        verifier(text)
