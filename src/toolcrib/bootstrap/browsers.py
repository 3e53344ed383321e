"""The browser tools of a running system: each call in a browser of its own, or in that of the session it names."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache, cached_property
from typing import TYPE_CHECKING

from toolcrib.adapters.runners.bound import described_tool
from toolcrib.adapters.runners.placed import placed_tool
from toolcrib.adapters.runners.sessions import tool_with_sessions
from toolcrib.bootstrap.local import shipped_names, shipped_tool
from toolcrib.calling.places import Places
from toolcrib.calling.sessions import Sessions
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, ToolValidationError, did_you_mean
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.toolsets.browser import BrowserSession

_MOST_STEPS = 200
_current: ContextVar[BrowserSession] = ContextVar("toolcrib_browser_session")


class Browsers:
    """What the browser tools share: places for the calls that run, and the sessions, each a Chromium of its own.

    ``processes`` is how many answer the same callers.
    """

    processes = 1

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def places(self) -> Places:
        most = max(1, self._settings.max_browsers)
        return Places("browsers", most, each=max(1, most - 1), waiting=32 * most, queued=8 * most)

    @cached_property
    def sessions(self) -> Sessions[BrowserSession]:
        settings = self._settings
        return Sessions(
            self._open,
            most=settings.max_sessions,
            each=settings.max_caller_sessions,
            idle_seconds=settings.session_idle_seconds,
            processes=self.processes,
        )

    def own_tool(self, name: str) -> Tool | None:
        """The tool that ships under this name, for this machine's own program."""
        tool = shipped_tool(name, self._settings.chromium)
        return None if tool is None else self._with_sessions(tool, tool.spec, name)

    def kept_tool(self, spec: ToolSpec, name: str) -> Tool:
        """The same under the catalogue's description of it. Of its calls only so many run at once."""
        tool = shipped_tool(name, self._settings.chromium)
        if tool is None:
            raise ToolValidationError(
                f"{spec.name!r} cannot run: no tool {name!r} ships with Toolcrib{did_you_mean(name, shipped_names())}"
            )
        described = described_tool(tool, spec, isolate=True)
        return self._with_sessions(placed_tool(described, self.places), described.spec, name)

    def close(self) -> None:
        if "sessions" in vars(self):
            self.sessions.close()

    def _with_sessions(self, alone: Tool, spec: ToolSpec, name: str) -> Tool:
        @cache
        def shared() -> Tool:
            from toolcrib.toolsets.browser import session_tool

            return placed_tool(described_tool(session_tool(name, _current.get), spec, isolate=False), self.places)

        def in_session(session: BrowserSession) -> Tool:
            if session.addresses != AddressRules.in_force():
                raise DeniedError("the session was opened under other address rules; end it first", rule="addresses")
            _current.set(session)
            return shared()

        return tool_with_sessions(alone, self.sessions, in_session)

    def _open(self, name: str) -> BrowserSession:
        from toolcrib.toolsets.browser import BrowserSession

        return BrowserSession(name=name, chromium=self._settings.chromium, max_steps=_MOST_STEPS)
