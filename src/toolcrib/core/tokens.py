"""API tokens: what one is, and what is kept of it.

A token is shown once, when it is made. What is kept is its SHA-256; a token is 256 random bits, so there is nothing
to guess and no need for a slow hash.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from toolcrib.core.errors import SettingsError
from toolcrib.core.limits import ACTIONS, TokenLimits
from toolcrib.core.names import check_name
from toolcrib.core.roles import ROLE_NAMES, Principal, Role

PREFIX = "tcrib_"
UNLIMITED = TokenLimits()
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")


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
    limits: TokenLimits = UNLIMITED

    @property
    def principal(self) -> Principal:
        """Whoever comes with it."""
        return Principal(self.name, tuple(self.role.split(",")), f"token:{self.id}", self.limits or None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values. A token without limits is told as it always was."""
        values = asdict(self)
        limits = values.pop("limits")
        return values | ({"limits": {kind: list(given) for kind, given in limits.items()}} if self.limits else {})

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> TokenRecord:
        """What :meth:`to_dict` told."""
        limits = {kind: tuple(given) for kind, given in values.get("limits", {}).items()}
        return cls(**{**values, "limits": TokenLimits(**limits)})


def could_be(token: str) -> bool:
    """Whether it looks like a token, so that nobody looks for what cannot be there."""
    return _TOKEN.fullmatch(token) is not None


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def new_token(
    name: str, *roles: Role, now: float, seconds: float = 0.0, limits: TokenLimits = UNLIMITED
) -> tuple[str, TokenRecord]:
    """A new token, the only time that it can be seen, and what is kept of it."""
    if not roles:
        raise SettingsError(f"a token needs a role; use {ROLE_NAMES}")
    if not name or len(name) > 128 or not name.isprintable():
        raise SettingsError(f"{name!r:.80} is not a token's name; use 1 to 128 printable characters")
    if limits and Role.ADMIN in roles:
        raise SettingsError("the token of an admin cannot be limited; give it the roles that it needs instead")
    unknown = next((action for action in limits.actions if action not in ACTIONS), None)
    if unknown is not None:
        raise SettingsError(f"{unknown!r} is not an action; use {', '.join(ACTIONS)}")
    for tool in limits.tools:
        check_name(tool)
    token = PREFIX + secrets.token_urlsafe(32)
    record = TokenRecord(
        id=secrets.token_hex(6),
        name=name,
        role=",".join(role.value for role in Role if role in roles),
        digest=digest_of(token),
        created_at=now,
        expires_at=now + seconds if seconds > 0 else 0.0,
        limits=limits,
    )
    return token, record
