"""How a receiver knows that a request came from this service: an HMAC over the moment and the body."""

from __future__ import annotations

import hashlib
import hmac

SIGNATURE_HEADER = "Toolcrib-Signature"


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
