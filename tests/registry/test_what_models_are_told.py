"""What a model is told of each error: what was wrong, what is allowed, and what to do now, in a sentence or two."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from toolcrib import (
    MissingConfigError,
    RateLimitedError,
    ToolBusyError,
    ToolRegistry,
    ToolResult,
    UnavailableError,
    tool,
)
from toolcrib.core.errors import ToolcribError, kind_for_code
from toolcrib.formats import render_result
from toolcrib.ports import Decision, PolicyRequest

_END = threading.Event()


@tool
async def resize(path: str, size: int, mode: Literal["fit", "fill"] = "fit") -> str:
    """Resize."""
    return path


@tool(returns={"type": "integer"})
async def broken() -> Any:
    """Return what is forbidden."""
    return "x" * 10_000 + "!"


@tool(safety_level="dangerous")
async def wipe() -> None:
    """Wipe."""


@tool
async def secret() -> None:
    """Denied by the policy."""


@tool(timeout_seconds=0.05)
async def slow() -> None:
    """Wait."""
    await asyncio.sleep(600)


@tool(timeout_seconds=0.05)
def slow_thread() -> None:
    """Wait where nobody can stop it."""
    _END.wait()


@tool
async def raises(kind: str) -> None:
    """Raise."""
    raise {
        "own": ValueError("the disk is full"),
        "busy": ToolBusyError("tool 'raises' has 4 calls still running"),
        "limited": RateLimitedError("more than 5 calls a second", 3.2),
        "limited and told": RateLimitedError("more than 5 calls a second; try again in 3.2 s", 3.2),
        "config": MissingConfigError("'raises' needs API_KEY, which is not set"),
        "unavailable": UnavailableError("the archive does not answer"),
    }[kind]


@tool
async def odd() -> ToolResult:
    """Fail with a code of its own."""
    return ToolResult.failure_result("the printer has no paper; add some", "no_paper")


class Denies:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(request.tool != "secret", rule="secrets", reason="secrets stay here")


TOLD = [
    ("resise", {}, "tool_not_found", "no tool is called 'resise'; did you mean 'resize'?"),
    (
        "zzz", {}, "tool_not_found",
        "no tool is called 'zzz'. Call only tools that you were given, by their exact names.",
    ),
    (
        "secret", {}, "denied",
        ("the policy does not let an anonymous caller run 'secret': secrets stay here. "
        "Do not call it again; go on without it or tell the user."),
    ),
    (
        "wipe", {}, "approval_required",
        ("'wipe' is 'dangerous', above the allowed 'high', and nobody is there to approve it. "
        "Nothing was run; ask the user to approve it, or go on without it."),
    ),
    (
        "slow", {}, "timeout",
        (
            "tool 'slow' passed its deadline of 0.05 s; it was stopped. "
            "Call it again with less to do, or go on without it."
        ),
    ),
    (
        "slow_thread", {}, "timeout",
        ("tool 'slow_thread' passed its deadline of 0.05 s; its thread is still running. "
        "It may still have its effect, so look before you call it again."),
    ),
    ("raises", {"kind": "own"}, "tool_failed", "tool 'raises' failed: ValueError: the disk is full"),
    ("raises", {"kind": "busy"}, "tool_busy", "tool 'raises' has 4 calls still running. Try again later."),
    (
        "raises", {"kind": "limited"}, "rate_limited",
        "more than 5 calls a second. Try again in 3.2 seconds.",
    ),
    (
        "raises", {"kind": "limited and told"}, "rate_limited",
        "more than 5 calls a second; try again in 3.2 s",
    ),
    (
        "raises", {"kind": "config"}, "missing_config",
        "'raises' needs API_KEY, which is not set. Only who runs the tools can mend this; tell the user.",
    ),
    (
        "raises", {"kind": "unavailable"}, "unavailable",
        "the archive does not answer. Try again in a moment.",
    ),
    ("odd", {}, "no_paper", "the printer has no paper; add some"),
]  # fmt: skip


@pytest.fixture
def registry() -> Iterator[ToolRegistry]:
    _END.clear()
    yield ToolRegistry([resize, broken, wipe, secret, slow, slow_thread, raises, odd], policy=Denies())
    _END.set()


async def told(registry: ToolRegistry, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a model of OpenAI reads. Every other provider's is told the same sentence."""
    answer = await registry.execute_call("openai", {"id": "1", "function": {"name": name, "arguments": arguments}})
    read: dict[str, Any] = json.loads(answer["content"])
    return read


@pytest.mark.parametrize(("name", "arguments", "code", "sentence"), TOLD)
async def test_each_error_says_what_was_wrong_and_what_to_do(
    registry: ToolRegistry, name: str, arguments: dict[str, Any], code: str, sentence: str
) -> None:
    read = await told(registry, name, arguments)
    assert (read["error_code"], read["error"]) == (code, sentence)
    for speaker, call in {
        "anthropic": {"id": "1", "name": name, "input": arguments},
        "gemini": {"name": name, "args": arguments},
        "mcp": {"name": name, "arguments": arguments},
    }.items():
        if not name.startswith("slow"):
            assert sentence in str(_unquoted(await registry.execute_call(speaker, call)))


def _unquoted(answer: dict[str, Any]) -> str:
    """The sentence in an answer, wherever the provider wants it."""
    content = answer.get("content", answer.get("functionResponse"))
    if isinstance(content, dict):
        return str(content["response"]["error"])
    return str(content[0]["text"] if isinstance(content, list) else content)


async def test_all_that_is_wrong_is_told_at_once_with_what_is_allowed(registry: ToolRegistry) -> None:
    read = await told(registry, "resize", {"size": "3", "mode": "cut", "color": 1})
    assert read["error_code"] == "invalid_arguments" and read["error"].startswith("4 arguments are wrong: (1) ")
    for complaint in (
        "tool 'resize' has no argument 'color'; it takes 'path', 'size', 'mode'",
        'argument \'mode\' of tool \'resize\': "cut" is not one of "fit" or "fill"',
        "argument 'size' of tool 'resize': \"3\" is not of type \"integer\"",
        "tool 'resize' needs the argument 'path'",
    ):
        assert complaint in read["error"]


async def test_a_long_value_does_not_hide_what_is_wrong_with_it(registry: ToolRegistry) -> None:
    read = await told(registry, "broken", {})
    assert read["error_code"] == "invalid_output" and len(read["error"]) < 500
    assert read["error"].endswith('is not of type "integer". The tool is at fault, not your call; go on without it.')
    wrong = await told(registry, "resize", {"path": "a", "size": "9" * 10_000})
    assert wrong["error"].endswith('is not of type "integer"') and len(wrong["error"]) < 400


async def test_an_unexpected_error_says_nothing_of_itself() -> None:
    def breaks(_run: Any) -> Any:
        def run(*_: Any) -> Any:
            raise RuntimeError("an inner matter")

        return run

    broken_registry = ToolRegistry([resize], layers=[breaks])
    read = await told(broken_registry, "resize", {"path": "a", "size": 1})
    assert "an inner matter" not in str(read) and len(read["error"]) > 20


def test_what_may_be_tried_again_says_so() -> None:
    kinds: list[type[ToolcribError]] = [ToolcribError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        known = kind_for_code(kind.code)
        assert known is not None
        if kind.retryable and kind.code in ("timeout", "tool_busy", "rate_limited", "unavailable", "store_failed"):
            assert "again" in known.way_out, kind


def test_a_result_that_went_well_needs_no_way_out() -> None:
    assert ToolResult(True, 1).way_out == ""
    rendered = render_result("anthropic", "1", ToolResult.failure_result("no", "denied"))
    assert rendered["content"] == "no. Do not call it again; go on without it or tell the user."
