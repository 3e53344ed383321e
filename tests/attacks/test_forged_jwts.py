"""JWTs that somebody made up, at the gate: all of them were refused when the service was attacked, and are."""

import base64
import hmac
import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.jwts import AUDIENCE, ISSUER, Keys, claims, signed

from toolcrib.adapters.jwt import Issuer, JwtBearer
from toolcrib.core.errors import UnauthenticatedError
from toolcrib.surfaces.http.gate import Access, Gate

ADMIN = claims(role="admin")


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys()


@pytest.fixture(scope="module")
def bearer(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> JwtBearer:
    path = tmp_path_factory.mktemp("issuer") / "jwks.json"
    path.write_text(keys.jwks("rsa", "ec", "ed"))
    return JwtBearer(Issuer(ISSUER, AUDIENCE, str(path)))


async def principal_of(bearer: JwtBearer, token: str) -> str:
    """Whom the gate takes the bearer of a token for; a gate of its own, which has refused nobody yet."""
    headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + token.encode("latin-1", "replace"))]
    scope = {"type": "http", "headers": headers, "method": "GET", "path": "/tools", "client": ("127.0.0.1", 5)}
    return (await Gate(Access(open_to_local=False), None, bearer).admit(scope)).name


def encoded(value: Any) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def unsigned(head: Any, body: Any = ADMIN, signature: bytes = b"") -> str:
    return f"{encoded(head)}.{encoded(body)}.{encoded(signature)}"


def with_secret(head: dict[str, Any], secret: bytes, algorithm: str = "sha256") -> str:
    text = f"{encoded(head)}.{encoded(ADMIN)}"
    return f"{text}.{encoded(hmac.new(secret, text.encode(), algorithm).digest())}"


@cache
def stranger() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def by_stranger(head: dict[str, Any]) -> str:
    """Signed, but with a key that only the head vouches for."""
    own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(stranger().public_key()))
    return jwt.encode(ADMIN, stranger(), "RS256", headers={**head, **({"jwk": own} if "jwk" in head else {})})


def parts(token: str) -> list[str]:
    return token.split(".")


def public(keys: Keys, encoding: Encoding, form: PublicFormat) -> bytes:
    return keys.rsa.public_key().public_bytes(encoding, form)


Forgery = Callable[[Keys], str]

UNSIGNED: dict[str, Forgery] = {
    **{
        f"alg {name!r}": lambda keys, name=name: unsigned({"alg": name, "typ": "JWT", "kid": "rsa"})  # type: ignore[misc]
        for name in ("none", "None", "NONE", "nOnE", "none ", "", "null", None, 0, [], ["none"], {"none": 1}, "RS256\0")
    },
    "no alg": lambda keys: unsigned({"typ": "JWT", "kid": "rsa"}),
    "alg none with another's signature": lambda keys: (
        f"{encoded({'alg': 'none'})}.{encoded(ADMIN)}.{parts(signed(keys))[2]}"
    ),
    "no signature": lambda keys: ".".join([*parts(signed(keys))[:2], ""]),
    "no third part": lambda keys: ".".join(parts(signed(keys))[:2]),
    "a part too many": lambda keys: f"{signed(keys)}.{parts(signed(keys))[2]}",
    "half a signature": lambda keys: signed(keys)[:-40],
    "ECDSA with r = s = 0": lambda keys: unsigned({"alg": "ES256", "kid": "ec"}, ADMIN, bytes(64)),
    "ECDSA with r = s = n": lambda keys: unsigned(
        {"alg": "ES256", "kid": "ec"},
        ADMIN,
        bytes.fromhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") * 2,
    ),
    "Ed25519 with nothing but zeros": lambda keys: unsigned({"alg": "EdDSA", "kid": "ed"}, ADMIN, bytes(64)),
    "RSA with a one": lambda keys: unsigned({"alg": "RS256", "kid": "rsa"}, ADMIN, bytes(255) + b"\1"),
}
CONFUSED: dict[str, Forgery] = {
    **{
        f"{name} with the public key, form {number}": (
            lambda keys, name=name, hashed=hashed, encoding=encoding, form=form: with_secret(  # type: ignore[misc]
                {"alg": name, "kid": "rsa"}, public(keys, encoding, form), hashed
            )
        )
        for name, hashed in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512"))
        for number, (encoding, form) in enumerate(
            (
                (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
                (Encoding.PEM, PublicFormat.PKCS1),
                (Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            )
        )
    },
    "HS256 with the key set itself": lambda keys: with_secret({"alg": "HS256"}, keys.jwks("rsa", "ec", "ed").encode()),
    "HS256 with nothing": lambda keys: with_secret({"alg": "HS256", "kid": "rsa"}, b""),
    "HS256 with a file of zeros": lambda keys: with_secret({"alg": "HS256", "kid": "/dev/null"}, b""),
    "the algorithm of another key": lambda keys: unsigned({"alg": "ES256", "kid": "rsa"}, ADMIN, bytes(64)),
    "signed for another key's id": lambda keys: ".".join(
        [encoded({"alg": "RS256", "kid": "ec"}), *parts(signed(keys, "rsa", role="admin"))[1:]]
    ),
}
POINTING: dict[str, Forgery] = {
    **{
        f"kid {kid!r:.40}": lambda keys, kid=kid: by_stranger({"kid": kid})  # type: ignore[misc]
        for kid in (
            "rsa", "../../../../dev/null", "/etc/passwd", "' or 1=1 --", "rsa\0", "RSA", "http://127.0.0.1:9/jwks",
            "", "x" * 4000,
        )
    },
    **{
        f"{name} in the head": lambda keys, name=name, value=value: by_stranger({"kid": "rsa", name: value})  # type: ignore[misc]
        for name, value in (
            ("jku", "http://127.0.0.1:9/jwks"), ("x5u", "http://127.0.0.1:9/cert"), ("jwk", {}), ("x5c", ["AAAA"]),
        )
    },
    "crit that nobody knows": lambda keys: by_stranger({"kid": "rsa", "crit": ["x"], "x": 1}),
    "b64 false": lambda keys: by_stranger({"kid": "rsa", "crit": ["b64"], "b64": False}),
}  # fmt: skip
CHANGED: dict[str, Forgery] = {
    "another body": lambda keys: ".".join([parts(signed(keys))[0], encoded(ADMIN), parts(signed(keys))[2]]),
    "the role twice": lambda keys: ".".join(
        [
            parts(signed(keys))[0],
            encoded(b'{"role": "admin", ' + json.dumps(claims()).encode()[1:]),
            parts(signed(keys))[2],
        ]
    ),
    "a body that is none": lambda keys: ".".join([parts(signed(keys))[0], encoded(b"[]"), parts(signed(keys))[2]]),
    "a head that is none": lambda keys: ".".join([encoded(b"[]"), *parts(signed(keys))[1:]]),
    "a head of half a pair": lambda keys: ".".join(
        [encoded(b'{"alg": "RS256", "kid": "\\ud800"}'), *parts(signed(keys))[1:]]
    ),
    "a deep head": lambda keys: ".".join([encoded(b"[" * 5000), *parts(signed(keys))[1:]]),
    "padding": lambda keys: f"{signed(keys, role='admin')[:-4]}====",
    "whitespace inside": lambda keys: signed(keys).replace(".", ". ", 1),
    "a letter of another script": lambda keys: signed(keys).replace("e", "\u0435", 1),
    "a megabyte": lambda keys: unsigned({"alg": "RS256", "kid": "rsa"}, claims(sub="x" * 1_000_000), bytes(256)),
    "nothing but dots": lambda keys: "..",
    "a thousand dots": lambda keys: "." * 1000,
    "a JWE": lambda keys: ".".join([encoded({"alg": "RSA-OAEP", "enc": "A128GCM"}), "AA", "AA", "AA", "AA"]),
}
NOW = int(time.time())
WRONG: dict[str, Forgery] = {
    f"wrong claims {number}, {name}": (
        lambda keys, changes={"role": "admin", name: value}: signed(keys, **changes)  # type: ignore[misc]
    )
    for number, (name, value) in enumerate((
        ("exp", 1), ("exp", None), ("exp", "never"), ("exp", NOW - 31), ("exp", -1), ("nbf", NOW + 3600), ("nbf", "x"),
        ("iat", NOW + 3600), ("aud", "other"), ("aud", ["other", "toolcrib2"]), ("aud", None),
        ("aud", {"toolcrib": 1}), ("aud", ""),
        ("iss", f"{ISSUER}/"), ("iss", ISSUER.upper()), ("iss", ""), ("iss", None), ("sub", None), ("sub", ""),
        ("sub", 0),
        ("sub", ["ada"]), ("role", None), ("role", "emperor"), ("role", "ADMIN"), ("role", {"admin": True}),
        ("role", [["admin"]]),
        ("role", "admin "), ("role", True),
    ))
}  # fmt: skip
FORGERIES = {**UNSIGNED, **CONFUSED, **POINTING, **CHANGED, **WRONG}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forged_jwt_lets_nobody_in(name: str, keys: Keys, bearer: JwtBearer) -> None:
    with pytest.raises(UnauthenticatedError) as refused:
        await principal_of(bearer, FORGERIES[name](keys))
    assert len(str(refused.value)) < 1000


async def test_the_issuers_own_are_let_in(keys: Keys, bearer: JwtBearer) -> None:
    """So the others were refused for what is wrong with them."""
    for kid in ("rsa", "ec", "ed"):
        assert await principal_of(bearer, signed(keys, kid)) == "ada"


def test_as_many_as_were_tried() -> None:
    assert len(FORGERIES) >= 78
