"""One HTTP client for everything that leaves the process: address rules, a hard deadline, a bounded answer.

It follows no redirect, reads no proxy from the environment and undoes no compression: each would reach or produce
something that nobody checked.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from toolcrib.calling.own_loop import OwnLoop, give_up_others
from toolcrib.core.addresses import AddressRules, Lookup, check_service_url
from toolcrib.core.errors import DeniedError, MissingDependencyError, SettingsError, UnavailableError
from toolcrib.core.json import read_json

try:
    import httpcore
except ImportError as error:
    raise MissingDependencyError("httpcore", extra="server") from error

DEFAULT_MAX_BYTES = 10 * 1024 * 1024
_MAX_PIECES = 50_000
"""Of an answer. A server may send each byte as a piece of its own, which takes as long as a large one."""
_AT_ONCE_BYTES, _AT_ONCE_PIECES = 4096, 16
"""What is read and taken apart before others have their turn: every call is on the one event loop."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON, or ValueError."""
        return read_json(self.body)

    def excerpt(self) -> str:
        return self.body[:300].decode(errors="replace").strip()


class HttpCaller:
    """GETs and POSTs from any thread and from any event loop.

    The connections live on an event loop of their own, so that a pool survives the caller's loop and a plain thread
    gets the same deadline as a coroutine. ``lookup`` finds the addresses of names, without one that event loop does.
    """

    def __init__(self, rules: AddressRules, lookup: Lookup | None = None) -> None:
        self._rules = rules
        self._lookup = lookup
        self._loop = OwnLoop("toolcrib-http")
        self._pool: httpcore.AsyncConnectionPool | None = None
        self._pool_loop: asyncio.AbstractEventLoop | None = None

    def get(self, url: str, *, seconds: float, max_bytes: int = DEFAULT_MAX_BYTES) -> Future[Reply]:
        """The answer to a GET, by the rules of :meth:`post`, for those who do not wait for it."""
        return self._loop.submit(self._ask("GET", url, b"", {}, seconds, max_bytes))

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> Reply:
        """The answer, whatever its status, headers in lower case.

        Raises TimeoutError past the deadline, DeniedError for an address that the rules refuse, UnavailableError if
        nothing or too much came back.
        """
        return await asyncio.wrap_future(self._loop.submit(self._ask("POST", url, body, headers, seconds, max_bytes)))

    def post_blocking(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> Reply:
        """:meth:`post` for a thread."""
        return self._loop.submit(self._ask("POST", url, body, headers, seconds, max_bytes)).result()

    def close(self) -> None:
        """Give up what is under way and close the connections. The next call opens new ones."""
        pool, self._pool = self._pool, None
        self._loop.close(partial(_end, pool))

    async def _ask(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float, max_bytes: int
    ) -> Reply:
        target = check_service_url(url)
        host, pool = target.netloc, self._connections()
        sent = [("Host", host), ("Accept-Encoding", "identity"), *headers.items()]
        if method == "POST":
            sent.append(("Content-Length", str(len(body))))
        try:
            async with (
                asyncio.timeout(seconds),
                pool.stream(method, target.geturl(), headers=_encoded(sent), content=body) as response,
            ):
                content = await _read(response, max_bytes, host)
        except (httpcore.TimeoutException, TimeoutError):
            raise TimeoutError(f"{host!r} did not answer within {seconds:g} s") from None
        except httpcore.LocalProtocolError:
            raise UnavailableError(f"{host!r} cannot be sent a header of the request") from None  # it may be a secret
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
            if isinstance(error, DeniedError):
                raise
            raise UnavailableError(f"{host!r} cannot be reached: {str(error) or type(error).__name__}") from None
        names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        return Reply(response.status, names, content)

    def _connections(self) -> httpcore.AsyncConnectionPool:
        # Only ever called on the loop's thread. A forked child has a loop of its own, and so connections of its own.
        if self._pool is None or self._pool_loop is not asyncio.get_running_loop():
            self._pool_loop = asyncio.get_running_loop()
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=ssl.create_default_context(),
                network_backend=_JudgedBackend(self._rules, self._lookup),
                max_connections=100,
                max_keepalive_connections=20,
                keepalive_expiry=15,
            )
        return self._pool


def caller_to(url: str, what: str) -> HttpCaller:
    """A caller for one address out of the settings, which may be an internal one; SettingsError if it is none."""
    try:
        target = check_service_url(url)
    except ValueError as error:
        raise SettingsError(f"the address of {what} is wrong: {error}") from None
    return HttpCaller(AddressRules(allow=(target.netloc,)))


class _JudgedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that the rules judged: no second look at the name."""

    def __init__(self, rules: AddressRules, lookup: Lookup | None) -> None:
        self._rules = rules
        self._lookup = lookup
        self._sockets = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        lookup = self._lookup or asyncio.get_running_loop().getaddrinfo
        addresses = await self._rules.resolve(host, port, lookup)
        failure: Exception = UnavailableError(f"{host!r} has no address")
        for address in addresses:
            try:
                return _Sips(await self._sockets.connect_tcp(address, port, timeout, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - the library's signature
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        raise DeniedError(f"unix sockets such as {path!r} may not be called", rule="egress")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Sips(httpcore.AsyncNetworkStream):
    """A connection that is read a little at a time: httpcore takes apart what it has without giving way to others."""

    def __init__(self, whole: httpcore.AsyncNetworkStream) -> None:
        self._whole = whole

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await asyncio.sleep(0)
        return await self._whole.read(min(max_bytes, _AT_ONCE_BYTES), timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._whole.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._whole.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        return _Sips(await self._whole.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._whole.get_extra_info(info)


async def _end(pool: httpcore.AsyncConnectionPool | None) -> None:
    await give_up_others()
    if pool is not None:
        await pool.aclose()


async def _read(response: httpcore.Response, max_bytes: int, host: str) -> bytes:
    pieces, size = [], 0
    async for piece in response.aiter_stream():
        size += len(piece)
        if size > max_bytes:
            raise UnavailableError(f"{host!r} answered more than {max_bytes:,} bytes")
        pieces.append(piece)
        if len(pieces) > _MAX_PIECES:
            raise UnavailableError(f"{host!r} answered in more than {_MAX_PIECES:,} pieces")
        if len(pieces) % _AT_ONCE_PIECES == 0:
            await asyncio.sleep(0)
    return b"".join(pieces)


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
