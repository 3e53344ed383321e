"""The only way out of a guarded browser or bundle: a proxy that holds the address rules against every connection.

Rules inside the browser miss what its request hooks miss: later hops of a redirect, WebSockets, service workers. A
connection that is never made cannot be missed. Each accepted connection leads to one checked host and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from toolcrib import AddressRules, DeniedError

BROWSERS_OWN_HOST = "content-autofill.googleapis.com"
"""Asked by Chromium itself, which no switch prevents: refused always, and not worth telling."""
Lookup = Callable[[str, int], Awaitable[Sequence[Any]]]
_REFUSED = "x-toolcrib-refused"
_HEAD_LIMIT = 256 * 1024
_CHUNK = 64 * 1024
_HOP_HEADERS = (b"proxy-connection:", b"connection:", b"proxy-authorization:", b"keep-alive:")


class GuardProxy:
    """An HTTP proxy for one session. ``on_refused(url, reason)`` hears of everything it turned away.

    What ``rules`` let through must be among what ``only`` lists too. Beyond ``most`` connections it hangs up.
    ``lookup`` finds the addresses of a name; without one the event loop does, in threads that it has for everybody.
    """

    def __init__(
        self,
        rules: AddressRules,
        on_refused: Callable[[str, str], None] = lambda *_: None,
        *,
        only: AddressRules | None = None,
        most: int = 1000,
        lookup: Lookup | None = None,
    ) -> None:
        self._rules = rules
        self._only = only or AddressRules()
        self._most = most
        self._lookup = lookup
        self._on_refused = on_refused
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    async def start(self, listening: socket.socket | None = None) -> None:
        """Serve on loopback, or at a socket that listens elsewhere, such as in another network namespace."""
        where: dict[str, Any] = {"host": "127.0.0.1", "port": 0} if listening is None else {"sock": listening}
        self._server = await asyncio.start_server(self._accept, limit=_HEAD_LIMIT, start_serving=False, **where)
        await self._server.start_serving()  # who is cancelled meanwhile has a server to close
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= self._most:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
            pass  # the browser or the server hung up, or spoke nonsense: the connection ends, nothing else does
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, _version = line.decode("latin-1").split(" ", 2)
        tunnel = method == "CONNECT"
        url = f"https://{target}" if tunnel else target
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if tunnel else 80)
        addresses, refusal = await self._checked(host, port)
        if refusal and host != BROWSERS_OWN_HOST:
            self._on_refused(url, refusal)
        if refusal:
            return await _answer(writer, "403 Refused by the address rules", refusal)
        try:
            upstream_reader, upstream = await _connect(addresses, port)
        except OSError as error:
            return await _answer(writer, "502 Bad Gateway", f"{host} did not answer: {error}", refused=False)
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
                await asyncio.gather(_pipe(reader, upstream), _pipe(upstream_reader, writer))
            else:
                path = parts._replace(scheme="", netloc="").geturl() or "/"
                upstream.write(_rewritten(f"{method} {path} HTTP/1.1", rest))
                await asyncio.gather(_pipe(reader, upstream), _answer_from(upstream_reader, writer))
        finally:
            upstream.close()

    async def _checked(self, host: str, port: int) -> tuple[list[str], str]:
        """The addresses of the host, or why it may not be reached. The name is resolved once, so it cannot change."""
        if host == BROWSERS_OWN_HOST:
            return [], "the browser's own questions are not let out"
        if refusal := self._only.refusal(host, port):
            return [], refusal
        try:
            lookup = self._lookup or asyncio.get_running_loop().getaddrinfo
            return await self._rules.resolve(host, port, lookup), ""
        except DeniedError as error:
            return [], error.message
        except OSError:
            return [], ""


def refusal_in(headers: Mapping[str, str]) -> str | None:
    """The rule that the guard's answer names; None for an answer that is not the guard's."""
    return unquote(headers[_REFUSED]) if _REFUSED in headers else None


async def _connect(addresses: list[str], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    error: OSError = OSError("the name does not resolve")
    for address in addresses:
        try:
            return await asyncio.open_connection(address, port)
        except OSError as failed:
            error = failed
    raise error


def _rewritten(first_line: str, headers: bytes) -> bytes:
    """A head that ends the connection with its message: the browser's next request may be for another host."""
    kept = [line for line in headers.split(b"\r\n") if line and not line.lower().startswith(_HOP_HEADERS)]
    upgrade = any(line.lower().startswith(b"upgrade:") for line in kept)
    kept.append(b"Connection: Upgrade" if upgrade else b"Connection: close")
    return first_line.encode("latin-1") + b"\r\n" + b"\r\n".join(kept) + b"\r\n\r\n"


async def _answer_from(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The server's answer, with word to the browser not to use the connection again."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        interim = line.split(b" ", 2)[1:2] in ([b"100"], [b"102"], [b"103"])
        writer.write(head if interim else _rewritten(line.decode("latin-1"), rest))
        if not interim:
            return await _pipe(reader, writer)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, reason: str, *, refused: bool = True) -> None:
    body = f"Toolcrib did not open this address: {reason}.\n".encode()
    mark = f"{_REFUSED}: {quote(reason)}\r\n" if refused else ""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n{mark}Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
