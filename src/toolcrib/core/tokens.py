"""API tokens: what one is, and what is kept of it.

A token is shown once, when it is made. What is kept is its SHA-256; a token is 256 random bits, so there is nothing
to guess and no need for a slow hash.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from toolcrib.core.errors import SettingsError
from toolcrib.core.roles import ROLE_NAMES, Principal, Role

PREFIX = "tcrib_"


@dataclass(frozen=True, slots=True)
class TokenRecord:
    id: str
    """Short and public: it names the token in lists, logs and ``revoke``."""
    name: str
    """Who holds it: the principal of every request made with it."""
    role: str
    """Its roles, parted by commas."""
    digest: str
    created_at: float
    expires_at: float = 0.0
    """0 if it never expires."""

    @property
    def principal(self) -> Principal:
        """Whoever comes with it."""
        return Principal(self.name, tuple(self.role.split(",")), f"token:{self.id}")


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def new_token(name: str, *roles: Role, now: float, seconds: float = 0.0) -> tuple[str, TokenRecord]:
    """A new token, the only time that it can be seen, and what is kept of it."""
    if not roles:
        raise SettingsError(f"a token needs a role; use {ROLE_NAMES}")
    if not name or len(name) > 128 or not name.isprintable():
        raise SettingsError(f"{name!r:.80} is not a token's name; use 1 to 128 printable characters")
    token = PREFIX + secrets.token_urlsafe(32)
    record = TokenRecord(
        id=secrets.token_hex(6),
        name=name,
        role=",".join(role.value for role in Role if role in roles),
        digest=digest_of(token),
        created_at=now,
        expires_at=now + seconds if seconds > 0 else 0.0,
    )
    return token, record
