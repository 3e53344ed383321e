"""The caller and the one rule of roles."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.adapters.tokens import Role
from toolcrib.core.errors import DeniedError, UnauthenticatedError


@dataclass(frozen=True, slots=True)
class Principal:
    """``name`` is what policies and the audit log see; ``key`` is what requests are counted under."""

    name: str
    role: Role | None
    key: str = ""


LOCAL = Principal("local", Role.ADMIN, "local")
"""A program of this machine, where the service is bound to loopback and open."""

NOBODY = Principal("", None)
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
            f"{principal.name!r} is a {principal.role.value} and this needs a {needed.value}; "
            "ask an administrator for another token",
            rule="role",
        )
