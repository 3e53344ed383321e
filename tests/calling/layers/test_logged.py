"""Calls in a log, with the secrets taken out."""

import asyncio
import logging
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr

from toolcrib import ToolContext, ToolRegistry, ToolResult, tool
from toolcrib.layers import logged, redact


@tool
async def login(user: str, password: str, card: dict[str, Any] | None = None) -> Any:
    """Log in."""
    if user == "eve":
        raise PermissionError(f"refused eve with password={password}")
    if user == "closed":
        return ToolResult.failure_result("closed\nFAKE: line", "shop_closed")
    return {"api_key": "k-123", "note": f"Bearer {password}-abc", "name": user}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "toolcrib.calls")
    return caplog


async def test_a_line_for_each_call_without_its_secrets(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry([login], layers=[logged()])
    result = await registry.execute("login", {"user": "ann", "password": "hunter2"}, context=ToolContext("ann"))
    assert result.data["api_key"] == "k-123"
    [record] = log.records
    line = record.getMessage()
    assert record.levelno == logging.INFO and line.startswith("call of 'login': done after ")
    assert '"user": "ann"' in line and "********" in line
    assert "hunter2" not in line and "k-123" not in line
    facts: dict[str, Any] = vars(record)["tool_call"]
    assert (facts["tool"], facts["outcome"], facts["principal"]) == ("login", "done", "ann")
    assert "hunter2" not in str(facts)


async def test_errors_are_warnings_and_masked_too(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry([login], layers=[logged()])
    await registry.execute("login", {"user": "eve", "password": "hunter2"})
    await registry.execute("login", {"user": "closed", "password": "hunter2"})
    refused, closed = log.records
    assert refused.levelno == logging.WARNING and "tool_failed" in refused.getMessage()
    assert "hunter2" not in refused.getMessage()
    assert "shop_closed" in closed.getMessage() and "\n" not in closed.getMessage()


async def test_nothing_that_was_said_begins_a_line_or_commands_a_terminal(log: pytest.LogCaptureFixture) -> None:
    odd = "a\nb\r\u2028c\x85d\x1b[31m\x9b31m"

    @tool
    async def refuse(text: str) -> ToolResult:
        """Refuse."""
        return ToolResult.failure_result(text, text * 1000)

    await ToolRegistry([refuse], layers=[logged()]).execute("refuse", {"text": odd})
    line = log.records[0].getMessage()
    assert line.isprintable() and r"\u2028c\x85d" in line and len(line) < 1000


async def test_what_is_not_asked_for_is_not_written(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry([login], layers=[logged(arguments=False, results=False)])
    await registry.execute("login", {"user": "ann", "password": "hunter2"})
    assert "ann" not in log.text


async def test_what_else_is_a_secret_can_be_said(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry(
        [login], layers=[logged(redact=redact("user", patterns=["4[0-9]{3}"], pointers=["/card/number"]))]
    )
    card = {"number": 1, "kind": "4111 visa"}
    await registry.execute("login", {"user": "ann", "password": "hunter2", "card": card})
    line = log.records[0].getMessage()
    assert '"user": "********"' in line and '"number": "********"' in line and "hunter2" not in line
    assert "4111" not in line and "visa" in line


async def test_a_secret_by_its_type_is_not_shown(log: pytest.LogCaptureFixture) -> None:
    @tool
    async def unlock(pin: SecretStr, door: str) -> str:
        """Unlock."""
        return f"{door} opens for {len(pin.get_secret_value())} letters"

    registry = ToolRegistry([unlock], layers=[logged()])
    assert (await registry.execute("unlock", {"pin": "hunter2", "door": "front"})).data == "front opens for 7 letters"
    assert '"pin": "********", "door": "front"' in log.text and "hunter2" not in log.text


class Door(BaseModel):
    name: str
    code: str = Field(json_schema_extra={"writeOnly": True})


async def test_what_the_schema_of_a_result_marks_is_masked(log: pytest.LogCaptureFixture) -> None:
    @tool
    async def door_code(name: str) -> Door:
        """Say the code of a door."""
        return Door(name=name, code="4711")

    result = await ToolRegistry([door_code], layers=[logged()]).execute("door_code", {"name": "north"})
    assert result.data == Door(name="north", code="4711")
    assert "north" in log.text and "4711" not in log.text


async def test_a_redaction_that_breaks_shows_nothing(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry([login], layers=[logged(redact=lambda value: value["no such key"])])
    assert (await registry.execute("login", {"user": "ann", "password": "hunter2"})).success
    assert "ann" not in log.text and "********" in log.text


async def test_long_values_are_cut(log: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry([login], layers=[logged(longest=50)])
    await registry.execute("login", {"user": "x" * 5000, "password": "p"})
    assert len(log.records[0].getMessage()) < 300


def test_what_is_no_logger_is_refused() -> None:
    with pytest.raises(TypeError, match="logger is a"):
        ToolRegistry([login]).use(logged)  # type: ignore[arg-type] # without its parentheses


async def test_a_cancelled_call_is_told_as_such(log: pytest.LogCaptureFixture) -> None:
    @tool
    async def forever() -> None:
        """Wait."""
        await asyncio.Event().wait()

    registry = ToolRegistry([forever], layers=[logged()])
    call = asyncio.create_task(registry.execute("forever"))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert "call of 'forever': cancelled" in log.records[0].getMessage()
