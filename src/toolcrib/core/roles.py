"""Who calls, and what their role lets them do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from toolcrib.core.errors import DeniedError, SettingsError, UnauthenticatedError


class Role(StrEnum):
    """Each may do what those before it may: read; change and run; see the audit log and mind the tokens."""

    READER = "reader"
    PUBLISHER = "publisher"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        return _RANKS[self] >= _RANKS[needed]

    @classmethod
    def parse(cls, text: str) -> Role:
        try:
            return cls(text)
        except ValueError:
            raise SettingsError(f"{text!r} is not a role; use 'reader', 'publisher' or 'admin'") from None


_RANKS = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Principal:
    """``name`` is what policies and the audit log see; ``key`` is what requests are counted under."""

    name: str
    role: Role | None = None
    key: str = ""
    roles: tuple[str, ...] = ()
    """What policies may ask about: the role, and whatever else a bearer token names."""

    @classmethod
    def of(cls, who: Who) -> Principal:
        """Who asks, also if only their name is known."""
        return who if isinstance(who, Principal) else cls(who)


Who = Principal | str
"""Who asks: as a door let them in, or by name alone."""

LOCAL = Principal("local", Role.ADMIN, "local", (Role.ADMIN.value,))
"""A program of this machine, if the service is bound to loopback and open."""

NOBODY = Principal("")
"""Somebody without credentials: may see that the service is alive, and how it is spoken to."""


def require(principal: Principal, needed: Role | None) -> None:
    """Every door asks here, for every operation: list, search and get have the same answer."""
    if needed is None:
        return
    if principal.role is None:
        raise UnauthenticatedError(
            "this needs a token; send 'Authorization: Bearer <token>' (an administrator makes one with "
            "'toolcrib tokens create')",
            rule="authentication",
        )
    if not principal.role.covers(needed):
        raise DeniedError(
            f"{principal.name!r} has the role {principal.role.value!r} and this needs {needed.value!r}; "
            "ask an administrator for another token",
            rule="role",
        )
