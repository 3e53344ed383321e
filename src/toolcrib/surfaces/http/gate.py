"""The gate in front of every HTTP door: host, origin, credentials, rate; in that order.

Whoever has no right to come in can make nobody wait: what is plainly no credential is refused at once, and a look at
a remote store for an unknown one takes its turn among those from the same address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.calling.places import Places
from toolcrib.calling.remembered import Remembered
from toolcrib.core.addresses import is_loopback
from toolcrib.core.errors import RateLimitedError, SettingsError, UnauthenticatedError, UnavailableError
from toolcrib.core.roles import LOCAL, NOBODY, Principal
from toolcrib.core.tokens import PREFIX, TokenRecord, could_be, digest_of
from toolcrib.ports import Bearer, Tokens
from toolcrib.settings import Settings
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.limits import RateLimit
from toolcrib.surfaces.http.origins import Origins

PRINCIPAL = "toolcrib.principal"
"""Where the application leaves who came in, in the ASGI scope."""
_HEADERS = (b"host", b"origin", b"authorization", b"sec-fetch-site", b"sec-fetch-mode", b"x-forwarded-for")
_ONCE = {b"content-length", b"content-type", b"transfer-encoding", *_HEADERS} - {b"x-forwarded-for"}
"""Headers that say one thing. Of two, a proxy in front may have believed the other."""
_REMEMBER_SECONDS = 5.0
"""How long a verified credential is taken at its word: a revoked token works this much longer at most."""
_REMEMBERED = 10_000
_FAILURES_A_SECOND = 5.0
_LATE_SECONDS = 0.5
_LOOKUPS, _LOOKUPS_EACH, _LOOKUPS_WAITING = 8, 4, 200
_ADDRESS_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Access:
    """The settings that decide who comes in. ``open_to_local`` needs no credentials and is for loopback only."""

    open_to_local: bool = True
    rate: float = 0.0
    burst: float = 0.0
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    trusted_proxies: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings, tokens: Tokens) -> Access:
        """What the settings mean: open on loopback unless they say otherwise, credentials elsewhere.

        SettingsError if everybody could come in.
        """
        host, hosts = settings.host, settings.allowed_hosts
        exposed = not is_loopback(host) or any(not is_loopback(name) for name in hosts)
        if exposed and not (settings.jwt_issuer or tokens.all()):
            raise SettingsError(
                f"the service would be open to everybody at {host!r}; make a token with 'toolcrib tokens create' or "
                "set a JWT issuer first, or bind it to 127.0.0.1"
            )
        if exposed and not hosts:
            hosts = ("*",)  # a bearer token is not sent by itself, so a foreign name gains nothing
        open_to_local = settings.auth == "auto" and not exposed
        proxies = frozenset(settings.trusted_proxies)
        return cls(open_to_local, settings.rate, settings.burst, hosts, settings.allowed_origins, proxies)


class Gate:
    """Lets requests in one by one. Only credentials that were not verified just now wait for a store or an issuer."""

    def __init__(
        self,
        access: Access,
        tokens: Tokens | None = None,
        bearer: Bearer | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._tokens = tokens
        self._bearer = bearer
        self._clock = clock
        self._origins = Origins(access.hosts, access.origins)
        self._rate = RateLimit(access.rate, access.burst or 2 * access.rate, clock)
        self._failures = RateLimit(_FAILURES_A_SECOND, 20, clock)
        self._lookups = Places("checking tokens", _LOOKUPS, each=_LOOKUPS_EACH, queued=_LOOKUPS_WAITING)
        self._looking: dict[tuple[str, str], asyncio.Future[tuple[TokenRecord | None, float]]] = {}
        self._remembered: Remembered[str, Principal] = Remembered(_REMEMBERED, clock=clock)

    async def admit(self, scope: Any) -> Principal:
        """Who sent the request. Raises what the caller is told if it may not come in."""
        headers = dict(scope["headers"])
        if len(headers) != len(scope["headers"]):
            headers = _single(scope["headers"])
        host, origin, authorization, fetch_site, fetch_mode, forwarded = (
            headers.get(name, b"").decode("latin-1") for name in _HEADERS
        )
        self._origins.check(host, origin, fetch_site, fetch_mode, scope["method"])
        address = self._address(scope, forwarded)
        if authorization:
            principal = await self._presented(authorization, address)
        else:
            principal = LOCAL if self._access.open_to_local else NOBODY
        self._rate.take(principal.key or address)
        return principal

    def _address(self, scope: Any, forwarded: str) -> str:
        """Where the request came from: what the nearest proxy that is trusted says of who is in front of it."""
        client, proxies = scope.get("client"), self._access.trusted_proxies
        address = str(client[0]) if client else ""
        if not forwarded or address not in proxies:
            return address
        hops = (hop.strip()[:_ADDRESS_LENGTH] for hop in reversed(forwarded.split(",")))
        return next((hop for hop in hops if hop and hop not in proxies), address)

    async def _presented(self, authorization: str, address: str) -> Principal:
        """Whose credentials these are."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise UnauthenticatedError("the Authorization header must be 'Bearer <token>'", rule="authentication")
        digest = digest_of(token)
        remembered = self._remembered.get(digest)
        if remembered is not None:
            return remembered
        try:
            principal, until = await self._verify(token, digest, address)
        except (UnauthenticatedError, UnavailableError) as error:
            await self._failed(address, error)
            raise
        self._remembered.put(digest, principal, seconds=until - self._clock())
        return principal

    async def _failed(self, address: str, error: UnauthenticatedError | UnavailableError) -> None:
        """Who comes too often with what is no credential, or cannot be judged, has each answer late, and sends less."""
        try:
            self._failures.take(address)
        except RateLimitedError:
            await asyncio.sleep(_LATE_SECONDS)
            if isinstance(error, UnauthenticatedError):
                raise

    async def _verify(self, token: str, digest: str, address: str) -> tuple[Principal, float]:
        """Whose token it is, and until when it is taken at its word."""
        if token.startswith(PREFIX):
            record, came = await self._found(token, digest, address)
            if record is None:
                raise UnauthenticatedError("the token is not known; it may have been revoked", rule="token")
            if record.expires_at and record.expires_at <= time.time():
                raise UnauthenticatedError(f"the token {record.id!r} has expired", rule="token")
            return record.principal, _believed_until(came, record.expires_at)
        if self._bearer is None:
            raise UnauthenticatedError("the token is not one of this service", rule="token")
        principal, expires_at = await self._bearer.verify(token, address)
        return principal, _believed_until(self._clock(), expires_at)

    async def _found(self, token: str, digest: str, address: str) -> tuple[TokenRecord | None, float]:
        """What the store says of the token, and when it said so: equal looks at a remote store are one."""
        if self._tokens is None or not could_be(token):
            return None, 0.0
        if not self._tokens.remote:
            return self._tokens.find(digest), self._clock()
        key = digest, address  # of one address, so that nobody waits in the line of another
        looking = self._looking.get(key)
        if looking is None:
            looking = self._looking[key] = asyncio.ensure_future(self._look(self._tokens, digest, address))
            looking.add_done_callback(lambda _: self._looking.pop(key))
        try:
            return await asyncio.shield(looking)  # who leaves does not end the look of the others
        finally:
            del looking  # as in calling/blocking.py

    async def _look(self, tokens: Tokens, digest: str, address: str) -> tuple[TokenRecord | None, float]:
        async with self._lookups.taken(address):
            return await in_thread(HOUSEKEEPING, tokens.find, digest), self._clock()


def _believed_until(came: float, expires_at: float) -> float:
    """By the gate's clock: from when the store or the issuer said so, and no longer than the token itself is good."""
    return came + (min(_REMEMBER_SECONDS, max(0.0, expires_at - time.time())) if expires_at else _REMEMBER_SECONDS)


def _single(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The headers by name. A list in several lines is one list; what can be said once only must not stand twice."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name not in found:
            found[name] = value
        elif name in _ONCE:
            raise RequestError(f"the request has two {name.decode().title()} headers; send one")
        else:
            found[name] += b"," + value
    return found
