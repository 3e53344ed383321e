"""A tool whose calls may name a session, in which they find what the calls before them left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcrib.calling.sessions import K, Sessions
from toolcrib.core.context import ToolContext
from toolcrib.core.result import Ran, ToolResult
from toolcrib.core.tool import Tool


def tool_with_sessions(alone: Tool, sessions: Sessions[K], in_session: Callable[[K], Tool]) -> Tool:
    """``alone`` runs calls that name no session; of the others each is one of ``in_session`` of what that keeps."""

    async def run(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        if not context.session:
            return await alone.runner(tool, arguments, context)

        async def work(kept: K, is_new: bool) -> Any:
            shared = in_session(kept)
            return _told(await shared.runner(shared, arguments, context), context.session, is_new)

        return await sessions.use(context, context.seconds_for(tool.spec.timeout_seconds), work)

    return Tool(alone.spec, alone.function, run, context_parameter=alone.context_parameter, decode=alone.decode)


def _told(value: Any, name: str, is_new: bool) -> Any:
    """The value, with the session's name, and that the call has opened it: then nothing of earlier calls is there."""
    facts: dict[str, Any] = {"session": name, "session_opened": True} if is_new else {"session": name}
    if isinstance(value, ToolResult):
        value.metadata.update(facts)
        return value
    return Ran(value.value, {**value.facts, **facts}) if type(value) is Ran else Ran(value, facts)
