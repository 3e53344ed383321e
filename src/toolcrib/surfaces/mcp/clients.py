"""One session for each client of the door over HTTP, though every request stands alone.

A client is given a name that nobody can guess, and sends it along: as ``Mcp-Session-Id``, which `initialize` answers
with, or as a cookie, since newer versions of the protocol begin without `initialize`. A client that sends neither back
has no session: nothing else tells it from others of its kind. The name alone opens nothing: a session is its
principal's.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

from toolcrib.core.result import ToolResult

if TYPE_CHECKING:
    from starlette.types import Message, Scope, Send

SESSION = "toolcrib.mcp.session"
"""Where the client's session is left, in the ASGI scope."""
_NAME = "mcp-session-id"
_GIVEN = re.compile(r"mcp-[0-9a-f]{32}")
_INITIALIZE = re.compile(rb'"method"\s*:\s*"initialize"')


def new_session() -> str:
    """A name that nobody can guess."""
    return f"mcp-{secrets.token_hex(16)}"


def session_of(scope: Scope) -> str:
    """The name that the client sends along; empty if it sends none that was given to it."""
    from starlette.requests import Request

    request = Request(scope)
    sent = request.headers.get(_NAME) or request.cookies.get(_NAME) or ""
    return sent if _GIVEN.fullmatch(sent) else ""


def giving_name(send: Send, body: bytes) -> Send:
    """``send`` for the answer to a client without a session: it gives it the name of one."""
    name = new_session()
    as_header = _INITIALIZE.search(body) is not None
    cookie = f"{_NAME}={name}; Path=/mcp; HttpOnly; SameSite=Strict"
    given: tuple[bytes, bytes] = (_NAME.encode(), name.encode()) if as_header else (b"set-cookie", cookie.encode())

    async def send_with_name(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] < 300:
            message = {**message, "headers": [*message.get("headers", ()), given]}
        await send(message)

    return send_with_name


def named(meta: Any) -> object:
    """The session that a call names itself, in its ``_meta``; None if it names none."""
    return None if meta is None else meta.get("session")


def told(result: ToolResult) -> dict[str, Any]:
    """The ``_meta`` of an answer: in which session the tool ran, and whether the call found none and opened it."""
    facts = {fact: result.metadata[fact] for fact in ("session", "session_opened") if fact in result.metadata}
    return {"_meta": facts} if facts else {}
