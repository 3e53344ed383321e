"""Who calls, and what their roles let them do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from toolcrib.core.errors import DeniedError, SettingsError, UnauthenticatedError
from toolcrib.core.limits import TokenLimits


class Role(StrEnum):
    """Running and changing are apart: who runs tools cannot change one, who changes tools cannot run one."""

    READER = "reader"
    RUNNER = "runner"
    PUBLISHER = "publisher"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """Whether who has this role may do what asks for ``needed``."""
        return needed in (self, Role.READER) or self is Role.ADMIN

    @classmethod
    def parse(cls, text: str) -> Role:
        try:
            return cls(text)
        except ValueError:
            raise SettingsError(f"{text!r} is not a role; use {ROLE_NAMES}") from None


ROLE_NAMES = "'reader', 'runner', 'publisher' or 'admin'"
LONGEST_NAME = 256
"""Of a principal, and so of an owner."""


def known_roles(names: Collection[str]) -> tuple[Role, ...]:
    """The roles of this service among the names; others are groups that only a policy knows."""
    return tuple(role for role in Role if role.value in names)


@dataclass(frozen=True, slots=True)
class Principal:
    """``name`` is what policies and the audit log see; ``key`` is what requests are counted under.

    Whoever a door let in has a role. One without any is known by name alone: the operator, in a program of their own.
    """

    name: str
    roles: tuple[str, ...] = ()
    """What policies may ask about: the roles, and whatever else a bearer token names."""
    key: str = ""
    limits: TokenLimits | None = None
    """What the token was made for, if it was not made for everything that the roles may do."""
    may: frozenset[Role] = field(init=False, repr=False, compare=False)
    """The roles whose work the principal may do. Empty if no door let them in."""

    def __post_init__(self) -> None:
        held = known_roles(self.roles) if self.roles else ()
        object.__setattr__(self, "may", frozenset(role for role in Role if any(one.covers(role) for one in held)))

    @classmethod
    def of(cls, who: Who) -> Principal:
        """Who asks, also if only their name is known."""
        return who if isinstance(who, Principal) else cls(who)

    @property
    def owns(self) -> str:
        """In whose name they publish: their own if a door let them in, else the operator's, which is empty."""
        return self.name if self.may and self != LOCAL else ""


Who = Principal | str
"""Who asks: as a door let them in, or by name alone."""

LOCAL = Principal("local", (Role.ADMIN.value,), "local")
"""A program of this machine, if the service is bound to loopback and open."""

NOBODY = Principal("")
"""Somebody without credentials: may see that the service is alive, and how it is spoken to."""

ROLE_RULE = "role"
"""The rule that a refusal by :func:`require` names."""


def require(principal: Principal, needed: Role | None) -> None:
    """Every door asks here, for every operation: list, search and get have the same answer."""
    if needed is None or needed in principal.may:
        return
    if not principal.may:
        raise UnauthenticatedError(
            "this needs a token; send 'Authorization: Bearer <token>' (an administrator makes one with "
            "'toolcrib tokens create')",
            rule="authentication",
        )
    has = " and ".join(repr(role.value) for role in known_roles(principal.roles))
    raise DeniedError(
        f"{principal.name!r} has the role {has} and this needs {needed.value!r}; "
        "ask an administrator for another token",
        rule=ROLE_RULE,
    )
