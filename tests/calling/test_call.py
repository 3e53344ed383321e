"""registry.execute: one path, in order, that never raises."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from toolcrib import SafetyLevel, StoreError, ToolContext, ToolRegistry, ToolResult, tool
from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.calling.layers import Layer
from toolcrib.core.errors import UNEXPECTED
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool
from toolcrib.ports import AuditEvent, Decision, PolicyRequest


@tool(timeout_seconds=60)
async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool
async def boom() -> None:
    """Raise."""
    raise RuntimeError("no luck")


@tool(safety_level="dangerous")
async def wipe(path: str) -> str:
    """Wipe a disk."""
    return f"wiped {path}"


@tool(is_terminal=True)
async def complete(summary: str) -> ToolResult:
    """End the task."""
    return ToolResult.success_result({"summary": summary}, steps=3)


@tool(returns={"type": "integer"})
async def liar() -> Any:
    """Return the wrong thing."""
    return "text"


class Rules:
    remote = False

    def __init__(self) -> None:
        self.asked: list[PolicyRequest] = []

    def decide(self, request: PolicyRequest) -> Decision:
        self.asked.append(request)
        return Decision(request.principal != "eve", "eve is not trusted", "rule-7")


TOOLS = [add, boom, wipe, complete, liar]


def failing(result: ToolResult) -> tuple[str | None, str]:
    assert not result.success and result.error and "Traceback" not in result.error and "\n" not in result.error
    return result.error_code, result.error


async def test_a_call_with_defaults() -> None:
    result = await ToolRegistry(TOOLS).execute("add", {"a": 2})
    assert (result.success, result.data, result.error, result.error_code) == (True, 3, None, None)
    assert result.metadata["tool"] == "add" and result.metadata["duration_ms"] >= 0
    assert result.to_dict()["data"] == 3


async def test_everything_that_can_go_wrong_is_a_result() -> None:
    registry = ToolRegistry(TOOLS)
    assert failing(await registry.execute("ad", {}))[0] == "tool_not_found"
    for odd in ("x" * 1_000_000, None, ["add"]):
        code, error = failing(await registry.execute(odd, {}))  # type: ignore[arg-type]
        assert code == "tool_not_found" and len(error) < 200
    assert failing(await registry.execute("add", {"a": True})) == (
        "invalid_arguments",
        "argument 'a' of tool 'add': true is not of type \"integer\"",
    )
    assert failing(await registry.execute("add", "a=1"))[0] == "invalid_arguments"  # type: ignore[arg-type]
    assert failing(await registry.execute("boom")) == ("tool_failed", "tool 'boom' failed: RuntimeError: no luck")
    assert failing(await registry.execute("liar"))[0] == "invalid_output"


async def test_a_deadline_is_a_result_that_says_whether_it_still_runs() -> None:
    @tool(timeout_seconds=0.02)
    async def wait() -> None:
        """Wait."""
        await asyncio.sleep(60)

    result = await ToolRegistry([wait]).execute("wait")
    assert failing(result)[0] == "timeout"
    assert result.metadata["still_running"] is False and result.metadata["retryable"] is True


async def test_what_is_above_the_ceiling_needs_approval_and_nobody_means_no() -> None:
    result = await ToolRegistry(TOOLS).execute("wipe", {"path": "/"})
    code, error = failing(result)
    assert code == "approval_required" and "'wipe' is 'dangerous', above the allowed 'high'" in error
    assert result.metadata["rule"] == "safety_level"
    assert (await ToolRegistry(TOOLS, highest_safety_level="dangerous").execute("wipe", {"path": "/"})).success
    low = ToolRegistry(TOOLS, highest_safety_level=SafetyLevel.SAFE)
    assert (await low.execute("add", {"a": 1})).success


async def test_approval_may_be_sync_or_async_and_only_true_is_yes() -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def yes(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        asked.append((spec.name, arguments))
        return True

    async def later(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        await asyncio.sleep(0)
        return bool(arguments["path"] == "/tmp")

    def broken(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        raise RuntimeError("no answer")

    assert (await ToolRegistry(TOOLS, approve=yes).execute("wipe", {"path": "/"})).data == "wiped /"
    assert asked == [("wipe", {"path": "/"})]
    assert (await ToolRegistry(TOOLS, approve=later).execute("wipe", {"path": "/tmp"})).success
    answers: list[Any] = [later, broken, lambda spec, arguments: "yes"]
    for approve in answers:
        refused = await ToolRegistry(TOOLS, approve=approve).execute("wipe", {"path": "/"})
        assert refused.error_code == "approval_required"


async def cancelled(*_: Any, **__: Any) -> Any:
    """Wait for what somebody else cancels."""
    waited_for = asyncio.get_running_loop().create_future()
    waited_for.cancel()
    await waited_for


async def test_what_meets_a_cancellation_that_is_not_the_callers_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    approving = ToolRegistry(TOOLS, approve=cancelled)
    code, error = failing(await approving.execute("wipe", {"path": "/"}))
    assert code == "approval_required" and error.endswith("asking for approval failed: CancelledError")
    layered = ToolRegistry(TOOLS, layers=[lambda run: cancelled])
    assert failing(await layered.execute("add", {"a": 1}))[0] == "layer_failed"
    made = Tool(add.spec, add.function, cancelled)
    assert failing(await ToolRegistry([made]).execute("add", {"a": 1}))[0] == UNEXPECTED.code


async def test_a_caller_that_is_cancelled_while_approval_is_asked_for_is_cancelled() -> None:
    asked = asyncio.Event()

    async def never(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        asked.set()
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    task = asyncio.create_task(ToolRegistry(TOOLS, approve=never).execute("wipe", {"path": "/"}))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "odd",
    [
        {"error": "no", "error_code": 404},
        {"error": "no", "error_code": ["a"]},
        {"error": ValueError("no")},
        {"error": "no", "metadata": None},
        {"error": "no", "metadata": [1]},
    ],
)
async def test_a_tool_may_fill_its_result_with_anything(odd: dict[str, Any]) -> None:
    @tool
    async def refuse() -> ToolResult:
        """Refuse."""
        return ToolResult(False, **odd)

    registry = ToolRegistry([refuse], audit=MemoryAudit())
    result = await registry.execute("refuse")
    assert failing(result)[1] == "no" and isinstance(result.error_code, str | None)
    assert result.metadata["tool"] == "refuse"
    [answer] = await registry.execute_calls([{"type": "tool_use", "id": "t", "name": "refuse", "input": {}}])
    assert "no" in str(answer)


async def test_a_result_that_a_tool_keeps_stays_as_it_is() -> None:
    kept = ToolResult.success_result("kept", mine=1)

    @tool(is_terminal=True)
    async def keeper() -> ToolResult:
        """Return the same again."""
        return kept

    registry = ToolRegistry([keeper])
    first, second = await registry.execute("keeper"), await registry.execute("keeper")
    assert kept == ToolResult.success_result("kept", mine=1)
    assert first.metadata is not second.metadata and first.metadata["mine"] == 1


async def test_a_refused_caller_learns_nothing_of_the_schema() -> None:
    registry = ToolRegistry(TOOLS, policy=Rules())
    eve = await registry.execute("add", {"wrong": 1}, context=ToolContext("eve"))
    assert failing(eve) == ("denied", "the policy does not let 'eve' run 'add': eve is not trusted")
    ann = await registry.execute("add", {"wrong": 1}, context=ToolContext("ann"))
    assert failing(ann)[0] == "invalid_arguments"


async def test_the_policy_sees_the_tool_but_never_its_credentials() -> None:
    rules = Rules()
    secret = add.with_spec(add.spec.with_changes(credentials={"token": "s3cret"}))
    await ToolRegistry([secret], policy=rules).execute("add", {"a": 1})
    assert rules.asked[0].spec["name"] == "add" and "s3cret" not in str(rules.asked[0].spec)


async def test_a_terminal_tool_says_so_in_its_result() -> None:
    registry = ToolRegistry(TOOLS)
    done = await registry.execute("complete", {"summary": "ok"})
    assert done.is_terminal and done.data == {"summary": "ok"} and done.metadata["steps"] == 3
    assert not (await registry.execute("add", {"a": 1})).is_terminal


async def test_the_audit_has_the_attempt_first_and_the_outcome_last() -> None:
    audit = MemoryAudit()
    registry = ToolRegistry(TOOLS, audit=audit, policy=Rules(), clock=lambda: 7.0)
    await registry.execute("add", {"a": 1}, context=ToolContext("ann"))
    await registry.execute("boom")
    await registry.execute("nobody")
    await registry.execute("add", {"a": 1}, context=ToolContext("eve"))
    events = list(reversed(audit.events()))
    assert [(event.tool, event.outcome, event.detail) for event in events] == [
        ("add", "attempt", ""),
        ("add", "done", ""),
        ("boom", "attempt", ""),
        ("boom", "failed", "tool_failed"),
        ("nobody", "attempt", ""),
        ("nobody", "failed", "tool_not_found"),
        ("add", "attempt", ""),
        ("add", "refused", "rule-7: denied"),
    ]
    assert events[0].call == events[1].call != events[2].call
    assert events[0].principal == "ann" and events[0].at == 7.0


async def test_a_crash_leaves_its_own_event() -> None:
    class Broken:
        remote = False

        def decide(self, request: PolicyRequest) -> Decision:
            raise ZeroDivisionError("policy broke")

    audit = MemoryAudit()
    result = await ToolRegistry(TOOLS, policy=Broken(), audit=audit).execute("add", {"a": 1})
    assert (result.error_code, result.error) == ("error", str(UNEXPECTED))
    assert [event.outcome for event in audit.events()] == ["crashed", "attempt"]

    started = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(ToolRegistry([wait], audit=audit).execute("wait"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (audit.events()[0].outcome, audit.events()[0].detail) == ("crashed", "CancelledError")


async def test_a_call_of_an_unknown_tool_is_recorded_too() -> None:
    audit = MemoryAudit()
    result = await ToolRegistry(TOOLS, audit=audit).execute("nobody", {}, context=ToolContext("eve"))
    assert result.error_code == "tool_not_found"
    recorded = [(event.tool, event.principal, event.outcome, event.detail) for event in reversed(audit.events())]
    assert recorded == [("nobody", "eve", "attempt", ""), ("nobody", "eve", "failed", "tool_not_found")]


async def test_a_call_that_cannot_be_recorded_is_not_made() -> None:
    class Full:
        remote = False

        def record(self, *events: AuditEvent) -> None:
            raise StoreError("the disk is full")

    result = await ToolRegistry(TOOLS, audit=Full()).execute("add", {"a": 1})
    assert (result.success, result.error_code, result.error) == (False, StoreError.code, "the disk is full")


async def test_policies_see_the_callers_roles() -> None:
    class Publishers:
        remote = False

        def decide(self, request: PolicyRequest) -> Decision:
            return Decision("publisher" in request.roles, "only publishers")

    registry = ToolRegistry(TOOLS, policy=Publishers())
    assert (await registry.execute("add", {"a": 1}, context=ToolContext("ada", roles=("publisher",)))).success
    refused = await registry.execute("add", {"a": 1}, context=ToolContext("bob"))
    assert failing(refused) == ("denied", "the policy does not let 'bob' run 'add': only publishers")


async def test_layers_wrap_the_run_of_a_checked_call() -> None:
    seen: list[str] = []

    def telling(word: str) -> Layer:
        def layer(run: Runner) -> Runner:
            async def told(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
                seen.append(f"{word} {tool.name} {arguments}")
                return await run(tool, arguments, context)

            return told

        return layer

    registry = ToolRegistry(TOOLS, layers=[telling("outer"), telling("inner")])
    assert (await registry.execute("add", {"a": 1})).data == 2
    assert seen == ["outer add {'a': 1, 'b': 1}", "inner add {'a': 1, 'b': 1}"]
    assert (await registry.execute("add", {})).error_code == "invalid_arguments" and len(seen) == 2


async def test_a_remote_policy_and_audit_do_not_block_the_loop() -> None:
    import threading

    threads: set[str] = set()

    class Far:
        remote = True

        def decide(self, request: PolicyRequest) -> Decision:
            threads.add(threading.current_thread().name)
            return Decision(True)

        def record(self, *events: object) -> None:
            threads.add(threading.current_thread().name)

    assert (await ToolRegistry(TOOLS, policy=Far(), audit=Far()).execute("add", {"a": 1})).success
    assert threads and threading.main_thread().name not in threads


async def test_a_models_call_is_mapped_back_and_answered_in_its_own_words() -> None:
    @tool(name="math.add")
    async def dotted(a: int) -> int:
        """Add one."""
        return a + 1

    registry = ToolRegistry([dotted])
    (definition,) = registry.definitions("openai")
    exported = definition["function"]["name"]
    assert exported != "math.add"
    call = {"id": "c1", "type": "function", "function": {"name": exported, "arguments": '{"a": 2}'}}
    answer = await registry.execute_call("openai", call)
    assert (answer["role"], answer["tool_call_id"], answer["content"]) == ("tool", "c1", "3")
    wrong = await registry.execute_call("openai", {"id": "c2", "function": {"name": exported, "arguments": "{"}})
    assert wrong["role"] == "tool" and "JSON" in wrong["content"]
    unknown = await registry.execute_call("anthropic", {"type": "tool_use", "id": "c3", "name": "nobody", "input": {}})
    assert unknown["is_error"] is True
