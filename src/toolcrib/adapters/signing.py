"""How a receiver knows that a request came from this service: an HMAC over the moment and the body."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.adapters.http import HttpCaller, Reply, caller_to

SIGNATURE_HEADER = "Toolcrib-Signature"
_MAX_ANSWER_BYTES = 64 * 1024


class SignedPost:
    """JSON to one address out of the settings, signed if there is a ``secret``. ``what`` names it in an error."""

    def __init__(
        self,
        url: str,
        what: str,
        *,
        secret: str = "",
        seconds: float = 10,
        caller: HttpCaller | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._secret = secret
        self._seconds = seconds
        self._caller = caller or caller_to(url, what)
        self._clock = clock

    def send(self, value: Any, headers: Mapping[str, str] | None = None) -> Reply:
        """The answer, whatever its status. Raises what :meth:`HttpCaller.post` raises."""
        body = json.dumps(value).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        if self._secret:
            sent[SIGNATURE_HEADER] = sign(self._secret, body, at=self._clock())
        return self._caller.post_blocking(self._url, body, sent, seconds=self._seconds, max_bytes=_MAX_ANSWER_BYTES)

    def close(self) -> None:
        self._caller.close()


def sign(secret: str, body: bytes, *, at: float) -> str:
    """The header's value: ``t=<seconds since the epoch>,v1=<hex HMAC-SHA256 of "<t>.<body>">``."""
    moment = str(int(at))
    return f"t={moment},v1={_mac(secret, moment, body)}"


def verify(secret: str, body: bytes, signature: str, *, now: float, tolerance: float = 300) -> bool:
    """Whether ``signature`` is ours, over this body, and not older (or newer) than ``tolerance`` seconds."""
    fields = {name: value for name, _, value in (part.partition("=") for part in signature.split(","))}
    moment, mac = fields.get("t", ""), fields.get("v1", "")
    if not (moment.isascii() and moment.isdigit()) or not mac.isascii():
        return False
    return hmac.compare_digest(mac, _mac(secret, moment, body)) and abs(now - int(moment)) <= tolerance


def _mac(secret: str, moment: str, body: bytes) -> str:
    return hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
