"""Tools that are HTTP services, against a real one."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.support.clocks import Clock
from tests.support.receiver import Answer, Received, Receiver, receiving
from tests.support.waiting import PATIENCE

from toolcrib import Audio, File, Image, Tool, ToolContext, ToolRegistry, ToolSpec
from toolcrib.adapters.http import HttpCaller
from toolcrib.adapters.runners.bound import bound_tool
from toolcrib.adapters.runners.http_service import HttpServiceRunner
from toolcrib.adapters.runners.system_function import function_tool
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import (
    DeniedError,
    InvalidArgumentsError,
    InvalidOutputError,
    MissingConfigError,
    ToolFailedError,
    ToolTimeoutError,
)
from toolcrib.layers import retry


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        receiver.answer = lambda request: (200, {"Content-Type": "application/json"}, request.body)
        yield receiver


@pytest.fixture
def caller() -> Iterator[HttpCaller]:
    caller = HttpCaller(AddressRules(("127.0.0.1",)))
    yield caller
    caller.close()


def service(caller: HttpCaller, url: str, secrets: dict[str, Any] | None = None, **fields: Any) -> Tool:
    spec = ToolSpec(
        **{
            "name": "weather",
            "description": "Tells the weather.",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
            "binding": {"service_url": url},
            "credentials": dict.fromkeys(secrets or {}, "********"),
            **fields,
        }
    )
    runner = HttpServiceRunner(caller, default_seconds=PATIENCE, max_bytes=10_000)
    return bound_tool(spec, runner, lambda: secrets or {})


async def test_arguments_go_out_and_the_answer_comes_back(receiver: Receiver, caller: HttpCaller) -> None:
    tool = service(caller, f"{receiver.url}/v1/weather?units=si")
    assert await tool.execute({"place": "Zürich"}, context=ToolContext("ada")) == {"place": "Zürich"}
    (request,) = receiver.received
    assert request.path == "/v1/weather?units=si"
    assert json.loads(request.body) == {"place": "Zürich"}
    assert request.headers["content-type"] == "application/json"
    assert request.headers["toolcrib-principal"] == "ada"


async def test_it_is_a_tool_like_any_other(receiver: Receiver, caller: HttpCaller) -> None:
    registry = ToolRegistry()
    registry.register(service(caller, receiver.url))
    result = await registry.execute("weather", {"place": "Bern"})
    assert (result.success, result.data) == (True, {"place": "Bern"})
    with pytest.raises(InvalidArgumentsError):
        await service(caller, receiver.url).execute({"town": "Bern"})
    assert len(receiver.received) == 1


async def test_the_output_schema_holds(receiver: Receiver, caller: HttpCaller) -> None:
    with pytest.raises(InvalidOutputError):
        await service(caller, receiver.url, returns={"type": "array"}).execute({"place": "Bern"})


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ((200, {}, b"[1, 2]"), [1, 2]),
        ((201, {}, b'"x"'), "x"),
        ((204, {}, b""), None),
        ((200, {"Content-Type": "text/plain; charset=utf-8"}, b"sunny"), "sunny"),
        ((200, {"Content-Type": "image/png"}, b"\x89PNG"), Image(b"\x89PNG")),
        ((200, {"Content-Type": "Audio/Wav; rate=8000"}, b"1"), Audio(b"1")),
        ((200, {"Content-Type": "application/pdf"}, b"%PDF-"), File(b"%PDF-", "application/pdf")),
    ],
)
async def test_answers(receiver: Receiver, caller: HttpCaller, answer: Answer, result: Any) -> None:
    receiver.answer = lambda _: answer
    assert await service(caller, receiver.url).execute({"place": "Bern"}) == result


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, {}, b"out of order"), "status 500: out of order"),
        ((404, {}, b""), "status 404"),
        ((302, {"Location": "http://127.0.0.1:1/internal"}, b""), "redirects to 'http://127.0.0.1:1/internal'"),
        ((200, {"Content-Type": "application/zip"}, b"\x89PNG"), "not JSON"),
        ((200, {}, b"[" * 9000), "not JSON"),
        ((200, {}, b"x" * 20_000), "more than 10,000 bytes"),
    ],
)
async def test_failures_are_told(receiver: Receiver, caller: HttpCaller, answer: Answer, reason: str) -> None:
    receiver.answer = lambda _: answer
    with pytest.raises(ToolFailedError) as caught:
        await service(caller, receiver.url).execute({"place": "Bern"})
    assert reason in str(caught.value)


async def test_the_deadline_holds(receiver: Receiver, caller: HttpCaller) -> None:
    deadline, over = 0.2, threading.Event()

    def too_late(request: Received) -> Answer:
        over.wait()
        return 200, {}, b"1"

    receiver.answer = too_late
    began = time.monotonic()
    with pytest.raises(ToolTimeoutError):
        await service(caller, receiver.url, timeout_seconds=deadline).execute({"place": "Bern"})
    assert time.monotonic() - began >= deadline
    over.set()


async def test_many_calls_go_on_at_once(receiver: Receiver, caller: HttpCaller) -> None:
    together = threading.Barrier(40)

    def when_all_are_there(request: Received) -> Answer:
        together.wait(60)
        return 200, {}, b"1"

    receiver.answer = when_all_are_there
    tool = service(caller, receiver.url, timeout_seconds=60)
    assert await asyncio.gather(*(tool.execute({"place": "Bern"}) for _ in range(40))) == [1] * 40


async def test_internal_addresses_are_refused(receiver: Receiver) -> None:
    caller = HttpCaller(AddressRules(public_only=True))
    for url in (receiver.url, "http://169.254.169.254/latest/meta-data", "http://[::1]/"):
        with pytest.raises(DeniedError, match="not a public address"):
            await service(caller, url).execute({"place": "Bern"})
    assert receiver.received == []
    caller.close()


async def test_a_service_that_is_away_fails(caller: HttpCaller) -> None:
    with receiving() as receiver:
        url = receiver.url
    with pytest.raises(ToolFailedError, match="cannot be reached"):
        await service(caller, url).execute({"place": "Bern"})


@pytest.mark.parametrize(
    ("secrets", "headers"),
    [
        ({"bearer_token": "t0ken"}, {"authorization": "Bearer t0ken"}),
        ({"api_key": "k3y"}, {"x-api-key": "k3y"}),
        ({"username": "u", "password": "p"}, {"authorization": f"Basic {base64.b64encode(b'u:p').decode()}"}),
        ({"headers": {"X-One": "1", "X-Two": "2"}, "api_key": "k"}, {"x-one": "1", "x-two": "2", "x-api-key": "k"}),
    ],
)
async def test_credentials_become_headers(
    receiver: Receiver, caller: HttpCaller, secrets: dict[str, Any], headers: dict[str, str]
) -> None:
    await service(caller, receiver.url, secrets).execute({"place": "Bern"})
    sent = receiver.received[0].headers
    assert {name: sent[name] for name in headers} == headers


@pytest.mark.parametrize(
    "secrets", [{"pin": "geheim"}, {"headers": "geheim"}, {"api_key": "geheim\r\nX: y"}, {"bearer_token": "gehéim"}]
)
async def test_credentials_that_fit_no_header_are_refused_and_not_repeated(
    receiver: Receiver, caller: HttpCaller, secrets: dict[str, Any]
) -> None:
    with pytest.raises(MissingConfigError) as caught:
        await service(caller, receiver.url, secrets).execute({"place": "Bern"})
    assert "geh" not in str(caught.value)
    assert receiver.received == []


def system_spec(wanted: str, **fields: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    binding = {"system_function_rpc_id": wanted}
    return ToolSpec(
        **{"name": "double", "description": "Doubles.", "parameters": parameters, "binding": binding, **fields}
    )


async def test_a_system_function_runs_under_the_catalogued_spec() -> None:
    def double(a: int, context: ToolContext) -> dict[str, Any]:
        """Twice as much."""
        return {"value": 2 * a, "for": context.principal}

    async def double_later(a: int) -> int:
        """Twice as much, in a moment."""
        await asyncio.sleep(0)
        return 2 * a

    functions = {"sys.double": double, "sys.later": double_later}
    tool = function_tool(system_spec("sys.double"), functions)
    assert tool.spec.description == "Doubles."
    assert await tool.execute({"a": 4}, context=ToolContext("ada")) == {"value": 8, "for": "ada"}
    assert await function_tool(system_spec("sys.later"), functions).execute({"a": 4}) == 8


async def test_a_system_function_keeps_to_the_specs_deadline() -> None:
    async def slow(a: int) -> int:
        """Takes its time."""
        await asyncio.sleep(30)
        return a

    with pytest.raises(ToolTimeoutError):
        await function_tool(system_spec("slow", timeout_seconds=0.05), {"slow": slow}).execute({"a": 1})


def test_a_system_function_that_nobody_registered_is_named() -> None:
    with pytest.raises(MissingConfigError, match="'sys.dubble'.*did you mean 'sys.double'"):
        function_tool(system_spec("sys.dubble"), {"sys.double": print})


@pytest.mark.parametrize(
    ("status", "headers", "facts"),
    [
        (429, {"Retry-After": "7"}, {"retryable": True, "retry_after_seconds": 7.0}),
        (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, {"retryable": True, "retry_after_seconds": 0.0}),
        (503, {"Retry-After": "soon"}, {"retryable": True}),
        (503, {"Retry-After": "-1"}, {"retryable": True}),
        (502, {}, {"retryable": True}),
        (500, {"Retry-After": "7"}, {"retryable": False}),
        (404, {}, {"retryable": False}),
    ],
)
async def test_a_service_that_is_busy_says_for_how_long(
    receiver: Receiver, caller: HttpCaller, status: int, headers: dict[str, str], facts: dict[str, Any]
) -> None:
    receiver.answer = lambda request: (status, headers, b"busy")
    registry = ToolRegistry([service(caller, receiver.url)])
    result = await registry.execute("weather", {"place": "Oslo"})
    assert result.error_code == "tool_failed"
    told = {name: result.metadata[name] for name in ("retryable", "retry_after_seconds") if name in result.metadata}
    assert told == facts


async def test_a_date_to_come_is_told_in_seconds(receiver: Receiver, caller: HttpCaller) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    receiver.answer = lambda request: (503, {"Retry-After": soon}, b"")
    result = await ToolRegistry([service(caller, receiver.url)]).execute("weather", {"place": "Oslo"})
    assert 3000 < result.metadata["retry_after_seconds"] <= 3600


async def test_a_busy_service_is_asked_again_when_it_said(receiver: Receiver, caller: HttpCaller) -> None:
    answers = iter([(429, {"Retry-After": "3"}, b"busy"), (200, {"Content-Type": "application/json"}, b"18")])
    receiver.answer = lambda request: next(answers)
    clock = Clock()
    registry = ToolRegistry([service(caller, receiver.url)], layers=[retry(clock=clock, sleep=clock.sleep)])
    result = await registry.execute("weather", {"place": "Oslo"})
    assert (result.data, result.metadata["attempts"], clock.slept) == (18, 2, [3.0])
