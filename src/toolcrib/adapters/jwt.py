"""JWT bearer tokens from an issuer that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcrib.adapters.jwks import ALGORITHMS, FetchedKeys, ListedKeys, Times, parse_keys
from toolcrib.core.errors import MissingDependencyError, SettingsError, UnauthenticatedError
from toolcrib.core.json import read_json
from toolcrib.core.roles import LONGEST_NAME, Principal

try:
    import jwt
    from jwt.utils import base64url_decode
except ImportError:
    raise MissingDependencyError("PyJWT", extra="server") from None

_MAX_TOKEN = 16_384


@dataclass(frozen=True, slots=True)
class Issuer:
    """``keys`` is a PEM public key, a file of one, a JWKS file, or the https address of a JWKS.

    ``role_claim`` is dotted for a nested claim and holds a role or a list of them.
    """

    issuer: str
    audience: str
    keys: str
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    role_claim: str = "role"
    leeway_seconds: float = 30.0

    def __post_init__(self) -> None:
        unknown = [name for name in self.algorithms if name not in ALGORITHMS]
        if unknown or not self.algorithms:
            raise SettingsError(f"JWT algorithm {unknown or '()'} is not allowed; use some of {', '.join(ALGORITHMS)}")
        if not (self.issuer and self.audience and self.keys):
            raise SettingsError("JWT authentication needs an issuer, an audience and its keys; set all three")


class JwtBearer:
    """Verifies a JWT and says who it is.

    A token whose key is known never waits. What is plainly no token of our issuer is refused before anything else.
    """

    def __init__(self, issuer: Issuer, times: Times = Times()) -> None:  # noqa: B008 - frozen
        self._issuer = issuer
        self._pem = ""
        self._keys: ListedKeys | FetchedKeys = ListedKeys(())
        if urlsplit(issuer.keys).scheme in ("https", "http"):
            self._keys = FetchedKeys(issuer.keys, times)
            return
        text = issuer.keys if "-----BEGIN" in issuer.keys else _read(Path(issuer.keys))
        if "PRIVATE KEY" in text:
            raise SettingsError("the JWT key is a private key; give the issuer's public key")
        if "-----BEGIN" in text:
            self._pem = text
        else:
            self._keys = ListedKeys(_parsed(text))

    async def verify(self, token: str, caller: str = "") -> tuple[Principal, float]:
        rules = self._issuer
        try:
            header = self._header(token)
            claims = jwt.decode(
                token,
                self._pem or await self._key(header.get("kid"), token, caller),
                algorithms=list(rules.algorithms),
                audience=rules.audience,
                issuer=rules.issuer,
                leeway=rules.leeway_seconds,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise UnauthenticatedError(f"the bearer token is not valid: {error}", rule="jwt") from None
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise UnauthenticatedError("the bearer token has no subject", rule="jwt")
        name = subject[:LONGEST_NAME]
        principal = Principal(name, _roles(claims, rules.role_claim), f"jwt:{name}")
        if not principal.may:
            raise UnauthenticatedError(
                f"the bearer token's claim {rules.role_claim!r} names no role of this service", rule="jwt"
            )
        return principal, float(claims["exp"])

    def close(self) -> None:
        self._keys.close()

    def _header(self, token: str) -> dict[str, Any]:
        """What a token says of its signature, if it could be one of our issuer's: before anything is done for it."""
        if len(token) > _MAX_TOKEN or token.count(".") != 2:
            raise jwt.DecodeError(f"it does not have three parts of together {_MAX_TOKEN:,} characters at most")
        header: dict[str, Any] = jwt.get_unverified_header(token)
        if header.get("alg") not in self._issuer.algorithms:
            raise jwt.InvalidAlgorithmError("its algorithm is not one of 'jwt_algorithms'")
        return header

    async def _key(self, kid: object, token: str, caller: str) -> jwt.PyJWK:
        """The key that a token names. For one of another issuer nobody asks ours."""
        key = self._keys.known(kid)
        if key is not None:
            return key
        if self._issuer_said_by(token) != self._issuer.issuer:
            raise jwt.InvalidIssuerError("it is from another issuer")
        return await self._keys.fetched(kid, caller)

    @staticmethod
    def _issuer_said_by(token: str) -> object:
        """Who a token says it is from, which proves nothing."""
        try:
            claims: Any = read_json(base64url_decode(token.split(".")[1]))
        except ValueError:
            return None
        return claims.get("iss") if isinstance(claims, dict) else None


def _roles(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Everything that the claim names: policies may ask about groups that are no roles of the service."""
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    given = value if isinstance(value, list) else [value]
    return tuple(name for name in given if isinstance(name, str))


def _parsed(text: str) -> list[jwt.PyJWK]:
    try:
        return parse_keys(text)
    except ValueError as error:
        raise SettingsError(f"the JWT keys are neither a PEM public key nor a JWKS: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"the JWT key file {str(path)!r} cannot be read: {error.strerror or error}") from None
