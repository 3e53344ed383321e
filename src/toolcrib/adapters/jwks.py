"""The public keys of an issuer of JWTs: given once, or fetched beside the requests and remembered.

No request fetches keys. A key that is known answers at once, also while the issuer cannot be reached; one that is not
known asks for a fetch, of which there is one at a time and few in a minute, whoever asks and how often.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from toolcrib.adapters.http import Reply, caller_to
from toolcrib.calling.places import Places
from toolcrib.core.addresses import is_loopback
from toolcrib.core.errors import MissingDependencyError, SettingsError, ToolcribError, UnavailableError
from toolcrib.core.json import read_json

try:
    import jwt
except ImportError:
    raise MissingDependencyError("PyJWT", extra="server") from None

logger = logging.getLogger("toolcrib.keys")

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key. A shared secret in a public list of keys would let everybody sign."""
_MAX_KEYS = 100
_MAX_BYTES = 1_000_000
_WAITING, _WAITING_EACH = 64, 8


@dataclass(frozen=True, slots=True)
class Times:
    """In seconds: how often keys are fetched, how long they are believed, and how long a request waits for them."""

    refresh: float = 3600.0
    believed: float = 86_400.0
    pause: float = 30.0
    """Between two fetches because of keys that are not known."""
    first_pause: float = 5.0
    """The same as long as there are no keys at all."""
    fetch: float = 10.0
    wait: float = 3.0


class ListedKeys:
    """Keys as the settings give them."""

    def __init__(self, keys: Sequence[jwt.PyJWK]) -> None:
        self._keys = keys

    def known(self, kid: object) -> jwt.PyJWK | None:
        """The key that a token names. An issuer with one key need not be told which."""
        matching = [key for key in self._keys if kid is None or key.key_id == kid]
        return matching[0] if len(matching) == 1 else None

    async def fetched(self, kid: object, caller: str) -> jwt.PyJWK:
        del kid, caller
        raise _unlisted()

    def close(self) -> None: ...


class FetchedKeys:
    """Keys at an address. Never on the way of a request: each fetch is a call of its own, on the caller's thread."""

    def __init__(self, url: str, times: Times, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise SettingsError(
                f"the issuer's keys at {url!r} would come by http, where anybody on the way can put keys of their own; "
                "use https"
            )
        self._url = url
        self._times = times
        self._clock = clock
        self._http = caller_to(url, "the issuer's keys")
        self._places = Places("the issuer's keys", _WAITING, each=_WAITING_EACH)
        self._lock = threading.Lock()
        self._keys = ListedKeys(())
        self._came = -times.believed
        self._failure = ""
        self._fetching: Future[None] | None = None
        self._next = clock()

    def known(self, kid: object) -> jwt.PyJWK | None:
        """The key, if it was listed when the keys came last; they are fetched again if that is long ago."""
        if self._clock() - self._came > self._times.refresh:
            self._fetch_soon()
        return self._keys.known(kid) if self._are_believed() else None

    async def fetched(self, kid: object, caller: str) -> jwt.PyJWK:
        """A key that was not known: what the fetch brings that is under way, if it brings it soon.

        Raises jwt.InvalidKeyError if the issuer does not list it, UnavailableError if nobody can say.
        """
        under_way = self._fetch_soon()
        if under_way is not None:
            await self._wait(under_way, caller)
        with self._lock:
            waiting, believed = self._fetching is not None, self._are_believed()
        key = self._keys.known(kid) if believed else None
        if key is not None:
            return key
        if self._failure or waiting or not believed:
            reason = self._failure or "it has not answered yet"
            raise UnavailableError(f"the issuer's keys at {self._url!r} could not be fetched: {reason}; try again")
        raise _unlisted()

    def close(self) -> None:
        self._http.close()

    def _are_believed(self) -> bool:
        return self._clock() - self._came < self._times.believed

    async def _wait(self, under_way: Future[None], caller: str) -> None:
        """For the fetch, but not for long; those for whom there is no place do not wait."""
        if not self._places.try_take(caller):
            return
        try:
            await asyncio.wait([asyncio.wrap_future(under_way)], timeout=self._times.wait)
        finally:
            self._places.give_back(caller)

    def _fetch_soon(self) -> Future[None] | None:
        """The fetch that is under way, if there is one or it is time for one."""
        with self._lock:
            if self._fetching is not None or self._clock() < self._next:
                return self._fetching
            under_way = self._fetching = Future()
        reply = self._http.get(self._url, seconds=self._times.fetch, max_bytes=_MAX_BYTES)
        reply.add_done_callback(self._take)
        return under_way

    def _take(self, reply: Future[Reply]) -> None:
        """What came, or why nothing did. Whatever broke, the fetch is over and another may follow."""
        keys, failure = None, "the answer cannot be read"
        try:
            keys, failure = ListedKeys(_keys_of(reply.result())), ""
        except CancelledError:
            failure = "the service is ending"
        except (TimeoutError, ValueError, ToolcribError) as error:
            failure = str(error)
            logger.warning("the issuer's keys at %r could not be fetched: %s", self._url, failure)
        finally:
            self._settle(keys, failure)

    def _settle(self, keys: ListedKeys | None, failure: str) -> None:
        with self._lock:
            under_way, self._fetching = self._fetching, None
            now = self._clock()
            if keys is not None:
                self._keys, self._came = keys, now
            self._failure = failure
            self._next = now + (self._times.pause if self._are_believed() else self._times.first_pause)
        if under_way is not None:
            under_way.set_result(None)


def parse_keys(text: str | bytes) -> list[jwt.PyJWK]:
    """The keys of a JWKS that can verify a signature; ValueError if there are none."""
    value: Any = read_json(text)
    listed = value.get("keys") if isinstance(value, dict) else None
    if not isinstance(listed, list) or not all(isinstance(key, dict) for key in listed):
        raise ValueError("it is not a list of keys")
    if len(listed) > _MAX_KEYS:
        raise ValueError(f"it lists {len(listed)} keys, and {_MAX_KEYS} is the most")
    keys = [key for key in map(_usable, listed) if key is not None]
    if not keys:
        raise ValueError("it lists no key that can verify a signature")
    return keys


def _keys_of(reply: Reply) -> list[jwt.PyJWK]:
    if reply.status != 200:
        raise ValueError(f"the answer has the status {reply.status}")
    try:
        return parse_keys(reply.body)
    except ValueError as error:
        raise ValueError(f"the answer is no JWKS: {error}") from None


def _usable(listed: dict[str, Any]) -> jwt.PyJWK | None:
    if listed.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(listed)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        return None  # of a kind that we do not know, which is no reason to refuse the others
    return key if key.algorithm_name in ALGORITHMS else None


def _unlisted() -> jwt.InvalidKeyError:
    return jwt.InvalidKeyError("it was signed with a key that the issuer does not list")
