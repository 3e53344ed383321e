"""An issuer of JWTs: its keys, and tokens signed with them."""

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER, AUDIENCE = "https://issuer.example", "toolcrib"


class Keys:
    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = ed25519.Ed25519PrivateKey.generate()

    def jwks(self, *names: str) -> str:
        made: dict[str, tuple[Any, Any]] = {
            "rsa": (jwt.algorithms.RSAAlgorithm, self.rsa),
            "ec": (jwt.algorithms.ECAlgorithm, self.ec),
            "ed": (jwt.algorithms.OKPAlgorithm, self.ed),
        }
        keys = [{**json.loads(made[n][0].to_jwk(made[n][1].public_key())), "kid": n} for n in names]
        return json.dumps({"keys": keys})

    def pem(self) -> str:
        encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        return self.rsa.public_key().public_bytes(encoding, form).decode()


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now + 600, "nbf": now - 5, "role": "reader"} | changes


def signed(keys: Keys, kid: str = "rsa", **changes: Any) -> str:
    made: dict[str, tuple[Any, str]] = {"rsa": (keys.rsa, "RS256"), "ec": (keys.ec, "ES256"), "ed": (keys.ed, "EdDSA")}
    key, algorithm = made[kid]
    payload = {name: value for name, value in claims(**changes).items() if value is not None}
    return jwt.encode(payload, key, algorithm, headers={"kid": kid})
