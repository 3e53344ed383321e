"""JWT bearer tokens from an issuer that the settings name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcrib.core.errors import MissingDependencyError, SettingsError, UnauthenticatedError, UnavailableError
from toolcrib.core.roles import Principal

try:
    import jwt
except ImportError:
    raise MissingDependencyError("PyJWT", extra="server") from None

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_KEEP_SECONDS = 3600.0
_FETCH_SECONDS = 10.0


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
    """Verifies a JWT and says who it is. A key that is not known asks the issuer again, every ``refetch_seconds``."""

    def __init__(self, issuer: Issuer, *, refetch_seconds: float = 30.0) -> None:
        self._issuer = issuer
        self._keys: jwt.PyJWKClient | jwt.PyJWKSet | str
        if urlsplit(issuer.keys).scheme in ("https", "http"):
            self._keys = jwt.PyJWKClient(
                issuer.keys, lifespan=_KEEP_SECONDS, timeout=_FETCH_SECONDS, cooldown_duration=refetch_seconds
            )
        else:
            self._keys = _parsed(issuer.keys if "-----BEGIN" in issuer.keys else _read(Path(issuer.keys)))

    def verify(self, token: str) -> tuple[Principal, float]:
        rules = self._issuer
        try:
            claims = jwt.decode(
                token,
                self._key(jwt.get_unverified_header(token).get("kid")),
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
        principal = Principal(subject[:256], _roles(claims, rules.role_claim), f"jwt:{subject[:256]}")
        if not principal.may:
            raise UnauthenticatedError(
                f"the bearer token's claim {rules.role_claim!r} names no role of this service", rule="jwt"
            )
        return principal, float(claims["exp"])

    def _key(self, kid: object) -> jwt.PyJWK | str:
        """The key that a token names. An issuer with one key need not be told which."""
        if isinstance(self._keys, str):
            return self._keys
        if isinstance(self._keys, jwt.PyJWKClient):
            return _fetched(self._keys, kid)
        return _listed(self._keys, kid)


def _fetched(client: jwt.PyJWKClient, kid: object) -> jwt.PyJWK:
    try:
        return client.get_signing_key(kid) if isinstance(kid, str) else _listed(client.get_jwk_set(), kid)
    except (jwt.PyJWKClientConnectionError, ValueError) as error:
        raise UnavailableError(f"the issuer's keys at {client.uri!r} could not be fetched: {error}") from None


def _listed(keys: jwt.PyJWKSet, kid: object) -> jwt.PyJWK:
    matching = [key for key in keys.keys if kid is None or key.key_id == kid]
    if len(matching) != 1:
        raise jwt.InvalidKeyError("it was signed with a key that the issuer does not list")
    return matching[0]


def _roles(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Everything that the claim names: policies may ask about groups that are no roles of the service."""
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    given = value if isinstance(value, list) else [value]
    return tuple(name for name in given if isinstance(name, str))


def _parsed(text: str) -> jwt.PyJWKSet | str:
    if "PRIVATE KEY" in text:
        raise SettingsError("the JWT key is a private key; give the issuer's public key")
    if "-----BEGIN" in text:
        return text
    try:
        return jwt.PyJWKSet.from_json(text)
    except (ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise SettingsError(f"the JWT keys are neither a PEM public key nor a JWKS: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"the JWT key file {str(path)!r} cannot be read: {error.strerror or error}") from None
