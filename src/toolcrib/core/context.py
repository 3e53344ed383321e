"""What a tool may know of the call that runs it, and what it may tell meanwhile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Self

from toolcrib.core.errors import InvalidArgumentsError
from toolcrib.core.limits import TokenLimits
from toolcrib.core.logs import CallLogger
from toolcrib.core.progress import Listener, progress_event
from toolcrib.core.roles import Principal


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Give a function a parameter of this type and it is filled in at the call; models never see it.

    ``principal`` is who calls and ``roles`` what they are, ``values`` whatever the caller passed along. ``session``
    names what calls of this principal share; a tool that keeps nothing between calls need not mind it.
    """

    principal: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    limits: TokenLimits | None = None
    """What the caller's token was made for."""
    timeout_seconds: float | None = None
    """The deadline of this call; the tool's own holds if that is shorter."""
    call_id: str = ""
    """The id under which a model asked for the call."""
    tool: str = ""
    """The tool that the context is handed to."""
    listener: Listener | None = field(default=None, repr=False, compare=False)
    """Who hears what the call tells."""
    session: str = ""
    """Calls of one principal that name the same session use what a tool keeps between them, such as a browser."""

    def __post_init__(self) -> None:
        if self.timeout_seconds is not None:
            _check_seconds(self.timeout_seconds)
        if self.session:
            _check_session(self.session)
        roles: Any = self.roles
        if type(roles) is not tuple:
            object.__setattr__(self, "roles", (roles,) if isinstance(roles, str) else tuple(roles))

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Tell the caller how far the work is: ``context.progress(0.4, "page 3 of 8")``. Nobody need listen.

        The fraction is a number from 0 to 1, or None if that is not known. Raises TypeError for anything else.
        """
        event = progress_event(fraction, message)  # a mistake is told also if nobody listens
        if self.listener is not None:
            self.listener(event)

    @property
    def logger(self) -> CallLogger:
        """The ``logging.Logger`` of the tool, ``toolcrib.tools.<name>``. Its records say whose call it is.

        In every isolation they reach the handlers of the process that called.
        """
        return CallLogger(self.tool, self.call_id, self.principal)

    def seconds_for(self, own: float | None) -> float | None:
        """The deadline of a tool in this call, whose ``own`` is never made longer."""
        given = self.timeout_seconds
        if given is None:
            return own
        return given if own is None or given < own else own

    def heard_by(self, listener: Listener | None) -> Self:
        return self._with("listener", listener)

    def handed_to(self, tool: str) -> Self:
        return self._with("tool", tool)

    def asked_as(self, call_id: str) -> Self:
        """The same for the call that a model asked for under this id."""
        return self._with("call_id", call_id)

    def in_session(self, name: object) -> Self:
        """The same call in the session that its caller names; InvalidArgumentsError if that is no name."""
        return self._with("session", _check_session(name))

    def _with(self, field: str, value: Any) -> Self:
        """What ``replace`` does, for less: each call of a tool that takes its context passes here."""
        if type(self) is not ToolContext:
            return replace(self, **{field: value})
        copy = object.__new__(type(self))
        for put, known in zip(_puts, _known(self), strict=False):
            put(copy, known)
        _members[field].__set__(copy, value)
        return copy

    def within(self, seconds: object) -> Self:
        """The same call with another deadline, never a longer one."""
        return replace(self, timeout_seconds=self.seconds_for(_check_seconds(seconds)))

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """The context of a call that a door takes from ``principal``."""
        return cls(principal.name, roles=principal.roles, limits=principal.limits)


def _check_seconds(given: object) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 < given <= _LONGEST:
        return float(given)
    raise InvalidArgumentsError(f"timeout_seconds must be a number of seconds above 0, not {given!r:.60}")


def _check_session(given: object) -> str:
    if isinstance(given, str) and _SESSION.fullmatch(given):
        return given
    raise InvalidArgumentsError(
        f"session must be a name of up to 64 letters, digits, '-', '_' and '.', which begins with a letter or a digit, "
        f"not {given!r:.80}"
    )


SESSION_PATTERN = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_SESSION = re.compile(SESSION_PATTERN)
_LONGEST = 1e308
"""Whole numbers have no end, floats have."""
_members = {name: getattr(ToolContext, name) for name in ToolContext.__slots__}
_puts = tuple(member.__set__ for member in _members.values())
_known = attrgetter(*_members)
NO_CONTEXT = ToolContext()
