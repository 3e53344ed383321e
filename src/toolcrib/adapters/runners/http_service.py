"""Tools that are HTTP services: the arguments go out as a JSON object, the answer is the result.

Credentials become headers by one rule, whatever the service:

=========================  ==========================================
credential                 header
=========================  ==========================================
``headers`` (an object)    each as it is
``bearer_token``           ``Authorization: Bearer ...``
``username``, ``password`` ``Authorization: Basic ...``
``api_key``                ``X-API-Key: ...``
=========================  ==========================================

Any other one is refused, so that no secret is silently left out. So are headers that say where a request goes, where
it ends or who asks: that is not the publisher's to say.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.adapters.http import DEFAULT_MAX_BYTES, HttpCaller, Reply
from toolcrib.adapters.runners.bound import BoundRunner, Credentials, check_values, open_credentials, trace_to_send
from toolcrib.core.backoff import seconds_asked
from toolcrib.core.content import part_of
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import RETRY_AFTER, MissingConfigError, ToolFailedError
from toolcrib.core.tool import Tool

_KNOWN = frozenset({"headers", "bearer_token", "username", "password", "api_key"})
_PRINCIPAL = "Toolcrib-Principal"
_OURS = frozenset(
    {
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te", "trailer",
        "upgrade", "expect", _PRINCIPAL.lower(),
    }
)  # fmt: skip
"""Two names for one host would let whoever may reach the one ask for the other. To many servers ``_`` is ``-``."""
_NAME = re.compile(r"[0-9A-Za-z!#$%&'*+.^_`|~-]+")
_PASSING = frozenset({429, 502, 503, 504})
"""What a service answers that may answer otherwise in a moment."""
_MEDIA = re.compile("(image|audio)/.+|application/pdf")
_VALUE = re.compile("(?:[!-~](?:[ -~]*[!-~])?)?")
"""What HTTP refuses is refused here: its own complaint quotes the value, and whoever runs the tool would read it."""


@dataclass(eq=False)
class HttpServiceRunner(BoundRunner):
    """POSTs the arguments to ``binding.service_url``.

    A refused address is a DeniedError; no answer, a redirect, a status that is not 2xx and too large an answer are
    ToolFailedErrors. Of a service that is busy or down for a moment the error says so, and how long to wait if the
    service does.
    """

    caller: HttpCaller
    max_bytes: int = DEFAULT_MAX_BYTES
    traced: bool = False
    """Whether the service is told which trace the call belongs to."""

    async def __call__(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, credentials: Credentials | None = None
    ) -> Any:
        spec = tool.spec
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "toolcrib"}
        if context.principal:
            headers[_PRINCIPAL] = context.principal.encode("ascii", "backslashreplace").decode()
        if self.traced:
            headers |= trace_to_send()
        async with self.deadline(spec, context) as seconds:
            headers |= credential_headers(spec.name, await open_credentials(credentials))
            reply = await self.caller.post(
                spec.binding.service_url,
                json.dumps(arguments).encode(),
                headers,
                seconds=seconds,
                max_bytes=self.max_bytes,
            )
        return _result(spec.name, reply)


def credential_headers(name: str, credentials: Mapping[str, Any]) -> dict[str, str]:
    """The headers that the table in this module's description makes of the credentials."""
    for key in credentials.keys() - _KNOWN:
        raise MissingConfigError(
            f"the credential {key!r} of {name!r} fits no header; use {', '.join(map(repr, sorted(_KNOWN)))}"
        )
    given = credentials.get("headers", {})
    if not isinstance(given, Mapping):
        raise MissingConfigError(f"the credential 'headers' of {name!r} must be an object of header names and values")
    headers = {str(header): str(value) for header, value in given.items()}
    if refused := next((header for header in headers if header.strip().lower().replace("_", "-") in _OURS), None):
        raise MissingConfigError(f"the credential 'headers' of {name!r} may not set {refused!r}; leave that header out")
    if "api_key" in credentials:
        headers["X-API-Key"] = str(credentials["api_key"])
    if "bearer_token" in credentials:
        headers["Authorization"] = f"Bearer {credentials['bearer_token']}"
    elif "username" in credentials:
        pair = f"{credentials['username']}:{credentials.get('password', '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    if not all(_NAME.fullmatch(header) and _VALUE.fullmatch(value) for header, value in headers.items()):
        raise MissingConfigError(
            f"a credential of {name!r} has characters that cannot stand in a header, or a blank at an end of it"
        )
    return headers


def _result(name: str, reply: Reply) -> Any:
    if 300 <= reply.status < 400:
        raise ToolFailedError(
            name, f"its service redirects to {reply.headers.get('location', '')!r:.200}, not followed"
        )
    if not reply.ok:
        error = ToolFailedError(name, f"its service answered with status {reply.status}: {reply.excerpt()}")
        if reply.status in _PASSING:
            error.facts = {"retryable": True, **_wait_asked_by(reply)}
        raise error
    if not reply.body:
        return None
    media_type = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if _MEDIA.fullmatch(media_type):
        return part_of(reply.body, media_type)
    try:
        check_values(name, reply.body)
        return reply.json()
    except (ToolFailedError, ValueError) as error:
        if media_type.startswith("text/"):
            return reply.body.decode(errors="replace")
        if isinstance(error, ToolFailedError):
            raise
    raise ToolFailedError(name, "its service answered with something that is not JSON")


def _wait_asked_by(reply: Reply) -> dict[str, float]:
    seconds = seconds_asked(reply.headers.get("retry-after", ""), time.time())
    return {} if seconds is None else {RETRY_AFTER: seconds}
