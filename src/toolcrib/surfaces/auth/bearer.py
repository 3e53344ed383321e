"""JWT bearer tokens from an issuer that the settings name."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcrib.core.errors import MissingDependencyError, SettingsError, UnauthenticatedError, UnavailableError
from toolcrib.core.roles import Principal, Role

try:
    import jwt
except ImportError:
    raise MissingDependencyError("PyJWT", extra="server") from None

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_REFETCH_SECONDS = 30.0
_KEEP_SECONDS = 3600.0
_MAX_JWKS_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Issuer:
    """``keys`` is a PEM public key, a file of one, a JWKS file, or the https address of a JWKS.

    ``role_claim`` is dotted for a nested claim and holds a role or a list of them; the highest counts.
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


class Bearer:
    """Verifies a JWT and says who it is. May fetch the issuer's keys, so call it in a thread."""

    def __init__(self, issuer: Issuer, fetch: Callable[[str], bytes] | None = None) -> None:
        self._issuer = issuer
        self._keys = _Keys(issuer.keys, fetch or _fetch)

    def verify(self, token: str) -> tuple[Principal, float]:
        """The principal and when the token expires; UnauthenticatedError where it is not valid."""
        rules = self._issuer
        try:
            key = self._keys.get(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=list(rules.algorithms),
                audience=rules.audience,
                issuer=rules.issuer,
                leeway=rules.leeway_seconds,
                options={"require": ["exp", "iss", "aud", "sub"], "strict_aud": False},
            )
        except jwt.PyJWTError as error:
            raise UnauthenticatedError(f"the bearer token is not valid: {error}", rule="jwt") from None
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject:
            raise UnauthenticatedError("the bearer token has no subject", rule="jwt")
        roles = _roles(claims, rules.role_claim)
        held = [role for role in Role if role.value in roles]
        if not held:
            raise UnauthenticatedError(
                f"the bearer token's claim {rules.role_claim!r} names no role of this service", rule="jwt"
            )
        return Principal(subject[:256], held[-1], f"jwt:{subject[:256]}", roles), float(claims["exp"])


def _roles(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Everything that the claim names: policies may ask about groups that are no roles of the service."""
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    given = value if isinstance(value, list) else [value]
    return tuple(name for name in given if isinstance(name, str))


class _Keys:
    def __init__(self, source: str, fetch: Callable[[str], bytes]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._fetched_at = 0.0
        self._url = source if urlsplit(source).scheme in ("https", "http") else ""
        self._single: Any = None
        self._set: jwt.PyJWKSet | None = None
        if not self._url:
            self._take(source if "-----BEGIN" in source else _read(Path(source)))

    def get(self, kid: object) -> Any:
        if self._single is not None:
            return self._single
        if self._url:
            self._refresh(_KEEP_SECONDS)
        found = self._find(kid)
        if found is None and self._url:
            self._refresh(_REFETCH_SECONDS)  # the issuer has changed its keys
            found = self._find(kid)
        if found is None:
            raise UnauthenticatedError("the bearer token was signed with a key the issuer does not list", rule="jwt")
        return found

    def _find(self, kid: object) -> Any:
        keys = self._set.keys if self._set is not None else []
        if kid is None:
            return keys[0] if len(keys) == 1 else None
        return next((key for key in keys if key.key_id == kid), None)

    def _refresh(self, seconds: float) -> None:
        with self._lock:
            if self._fetched_at and time.monotonic() - self._fetched_at < seconds:
                return
            self._take(self._fetch(self._url).decode(errors="replace"))
            self._fetched_at = time.monotonic()

    def _take(self, text: str) -> None:
        if "-----BEGIN" in text:
            if "PRIVATE KEY" in text:
                raise SettingsError("the JWT key is a private key; give the issuer's public key")
            self._single = text
            return
        try:
            self._set = jwt.PyJWKSet.from_dict(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
            raise SettingsError(f"the JWT keys are neither a PEM public key nor a JWKS: {error}") from None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise SettingsError(f"the JWT key file {str(path)!r} cannot be read: {error.strerror or error}") from None


def _fetch(url: str) -> bytes:
    import httpx

    try:
        answer = httpx.get(url, timeout=10, follow_redirects=False)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise UnavailableError(f"the issuer's keys at {url!r} could not be fetched: {error}") from None
    return answer.content[:_MAX_JWKS_BYTES]
