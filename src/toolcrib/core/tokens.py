"""API tokens: what one is, and what is kept of it.

A token is shown once, when it is made. What is kept is its SHA-256; a token is 256 random bits, so there is nothing
to guess and no need for a slow hash.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

from toolcrib.core.errors import SettingsError
from toolcrib.core.roles import Role

PREFIX = "tcrib_"
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True)
class TokenRecord:
    id: str
    """Short and public: it names the token in lists, logs and ``revoke``."""
    name: str
    """Who holds it: the principal of every request made with it."""
    role: str
    digest: str
    created_at: float
    expires_at: float = 0.0
    """0 if it never expires."""


def could_be(token: str) -> bool:
    """Whether it looks like a token, so that nobody looks for what cannot be there."""
    return _TOKEN.fullmatch(token) is not None


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def new_token(name: str, role: Role, *, now: float, seconds: float = 0.0) -> tuple[str, TokenRecord]:
    """A new token, the only time that it can be seen, and what is kept of it."""
    if not name or len(name) > 128 or not name.isprintable():
        raise SettingsError(f"{name!r:.80} is not a token's name; use 1 to 128 printable characters")
    token = PREFIX + secrets.token_urlsafe(32)
    record = TokenRecord(
        id=secrets.token_hex(6),
        name=name,
        role=role.value,
        digest=digest_of(token),
        created_at=now,
        expires_at=now + seconds if seconds > 0 else 0.0,
    )
    return token, record
