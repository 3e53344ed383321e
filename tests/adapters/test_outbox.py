"""Every committed change reaches the receiver, in order per tool, once by its id, whatever happens in between."""

import json
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import free_port
from tests.support.receiver import Answer, Received, Receiver, receiving
from tests.support.waiting import PATIENCE, wait_until

from toolcrib import ToolSpec
from toolcrib.adapters.outbox import DeliveryOptions, OutboxDeliverer, as_registration
from toolcrib.adapters.signing import verify
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.core.errors import StoreError
from toolcrib.ports import Change, Store

QUICK = DeliveryOptions(secret="s3cret", seconds=PATIENCE, first_delay=0.02, longest_delay=0.1, poll_seconds=0.02)
"""Quick to try again, and in no hurry for an answer: an event whose answer is given up comes twice."""


def event(store: Store, tool: str, number: int) -> None:
    document = ToolSpec(name=tool, description=str(number)).to_dict()
    payload = {"id": f"{tool}-{number}", "event": "tool.updated", "tool_id": tool, "number": number}
    store.commit([Change(tool, document, event=payload)])


def in_its_eyes(received: list[Received]) -> dict[str, list[int]]:
    """What a receiver that knows the ids has seen of each tool."""
    known: set[str] = set()
    seen = defaultdict(list)
    for request in received:
        if request.headers["toolcrib-event-id"] not in known:
            known.add(request.headers["toolcrib-event-id"])
            body = json.loads(request.body)
            seen[body["tool_id"]].append(body["number"])
    return seen


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def running() -> Iterator[Callable[..., OutboxDeliverer]]:
    started: list[OutboxDeliverer] = []

    def start(store: Store, url: str, options: DeliveryOptions = QUICK, **more: Any) -> OutboxDeliverer:
        deliverer = OutboxDeliverer(store, url, options, **more)
        deliverer.start()
        started.append(deliverer)
        return deliverer

    yield start
    for deliverer in started:
        deliverer.stop()


def test_a_change_in_the_catalogue_arrives_signed(receiver: Receiver, running: Any) -> None:
    store = MemoryStore()
    catalogue = Catalogue(store, announce=True)
    running(store, receiver.url)
    catalogue.publish(ToolSpec(name="hammer", description="Drives nails."), principal="ada")
    catalogue.update("hammer", description="Drives nails well.")
    catalogue.delete("hammer")
    wait_until(lambda: not store.outbox())
    bodies = [json.loads(request.body) for request in receiver.received]
    assert [body["event"] for body in bodies] == ["tool.created", "tool.updated", "tool.deleted"]
    for request, body in zip(receiver.received, bodies, strict=True):
        assert request.headers["toolcrib-event-id"] == body["id"]
        assert verify("s3cret", request.body, request.headers["toolcrib-signature"], now=request.at)
    assert len(bodies) == 3


def test_a_receiver_that_was_down_gets_everything_in_order_once(running: Any) -> None:
    store, port = MemoryStore(), free_port()
    running(store, f"http://127.0.0.1:{port}")
    for number in range(5):
        for tool in ("a", "b", "c"):
            event(store, tool, number)
    wait_until(lambda: sum(entry.attempts for entry in store.outbox()) >= 3)
    assert len(store.outbox()) == 15
    assert any(entry.attempts and "cannot be reached" in entry.last_error for entry in store.outbox())
    with receiving(port) as receiver:
        wait_until(lambda: not store.outbox())
        assert in_its_eyes(receiver.received) == {tool: [0, 1, 2, 3, 4] for tool in ("a", "b", "c")}


def test_a_tool_whose_event_is_refused_holds_up_no_other(receiver: Receiver, running: Any) -> None:
    def moody(request: Received) -> Answer:
        poisoned = json.loads(request.body)["tool_id"] == "bad" and not healed.is_set()
        return (422 if poisoned else 200), {}, b"no"

    healed = threading.Event()
    receiver.answer = moody
    store = MemoryStore()
    for number in range(250):  # more than one batch of nothing but the bad tool's
        event(store, "bad", number)
    event(store, "good", 0)
    running(store, receiver.url)
    wait_until(lambda: "good" in in_its_eyes(receiver.received))
    assert in_its_eyes(receiver.received)["bad"] == [0]
    assert "status 422: no" in store.outbox(limit=1)[0].last_error
    healed.set()
    wait_until(lambda: not store.outbox(), 100)
    assert in_its_eyes(receiver.received) == {"bad": list(range(250)), "good": [0]}


def test_the_wait_doubles_up_to_its_limit(receiver: Receiver) -> None:
    receiver.answer = lambda _: (500, {}, b"")
    now = [1000.0]
    store = MemoryStore()
    event(store, "a", 0)
    options = DeliveryOptions(first_delay=1, longest_delay=8)
    deliverer = OutboxDeliverer(store, receiver.url, options, clock=lambda: now[0])
    waits = []
    for _ in range(6):
        deliverer.deliver_due()
        (entry,) = store.outbox()
        waits.append(entry.not_before - now[0])
        deliverer.deliver_due()  # not due: nothing happens
        now[0] = entry.not_before
    assert len(receiver.received) == 6
    assert [entry.attempts for entry in store.outbox()] == [6]
    for wait, most in zip(waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert most / 2 <= wait <= most
    deliverer.stop()


def test_several_deliverers_repeat_but_never_reorder(receiver: Receiver, running: Any) -> None:
    store = MemoryStore()
    for _ in range(3):
        running(store, receiver.url)
    for number in range(30):
        for tool in ("a", "b"):
            event(store, tool, number)
    wait_until(lambda: not store.outbox())
    assert in_its_eyes(receiver.received) == {"a": list(range(30)), "b": list(range(30))}


def test_a_crash_after_the_answer_repeats_the_event_with_the_same_id(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    event(store, "a", 0)
    deliverer = OutboxDeliverer(store, receiver.url, QUICK)

    def crash(sequence: int) -> None:
        raise StoreError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "acknowledge", crash)
        with pytest.raises(StoreError):
            deliverer.deliver_due()
    assert deliverer.deliver_due() == 1
    assert len(receiver.received) == 2
    assert in_its_eyes(receiver.received) == {"a": [0]}
    deliverer.stop()


def test_a_store_that_fails_for_a_while_does_not_end_the_thread(
    receiver: Receiver, running: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    outbox = store.outbox

    failures: list[int] = []

    def fail(**_: int) -> None:
        failures.append(1)
        raise StoreError("the primary is away")

    monkeypatch.setattr(store, "outbox", fail)
    running(store, receiver.url)
    wait_until(lambda: len(failures) >= 2)
    monkeypatch.setattr(store, "outbox", outbox)
    event(store, "a", 0)
    wait_until(lambda: receiver.received)


def test_stopping_ends_after_the_delivery_under_way_and_keeps_what_waits(receiver: Receiver) -> None:
    may_end = threading.Semaphore(0)

    def held(request: Received) -> Answer:
        return 200 if may_end.acquire(timeout=PATIENCE) else 503, {}, b""

    receiver.answer = held
    store = MemoryStore()
    for number in range(20):
        event(store, f"tool{number}", 0)
    deliverer = OutboxDeliverer(store, receiver.url, replace(QUICK, seconds=2 * PATIENCE))
    deliverer.start()
    wait_until(lambda: receiver.received)
    stopping = threading.Thread(target=deliverer.stop)
    stopping.start()
    assert len(store.outbox()) == 20
    may_end.release()  # one delivery can end, and no other
    stopping.join()
    assert len(store.outbox()) == 19


DELIVER = """
import sys, time
from toolcrib.adapters.outbox import DeliveryOptions, OutboxDeliverer
from toolcrib.adapters.stores.{module} import {name}
store = {name}({argument})
options = DeliveryOptions(seconds=600, first_delay=0.02, longest_delay=0.1, poll_seconds=0.02)
OutboxDeliverer(store, sys.argv[1], options).start()
time.sleep(600)
"""


@pytest.mark.timeout(400)
def test_killed_deliverers_lose_nothing(receiver: Receiver, tmp_path: Path) -> None:
    """The outbox is in the store, so a kill in the middle costs at most a repetition."""
    pytest.importorskip("toolcrib.adapters.stores.sqlite")
    from toolcrib.adapters.stores.sqlite import SqliteStore

    store = SqliteStore(tmp_path / "tools.db")
    for number in range(20):
        for tool in ("a", "b"):
            event(store, tool, number)
    script = DELIVER.format(module="sqlite", name="SqliteStore", argument=f"{str(tmp_path / 'tools.db')!r}")
    kills = 0
    while store.outbox():
        before, dead = len(receiver.received), threading.Event()

        def held(_: Received, before: int = before, dead: threading.Event = dead) -> Answer:
            """However late the kill comes, its deliverer has not done everything."""
            if len(receiver.received) > before + 15:
                dead.wait()
            return 200, {}, b""

        receiver.answer = held
        process = subprocess.Popen([sys.executable, "-c", script, receiver.url])
        wait_until(lambda before=before: len(receiver.received) > before + 5 or not store.outbox(), 100)  # type: ignore[misc]
        process.kill()
        process.wait()
        dead.set()
        kills += 1
    assert kills >= 2
    assert in_its_eyes(receiver.received) == {"a": list(range(20)), "b": list(range(20))}
    store.close()


def test_the_body_of_a_policy_db_registration(receiver: Receiver) -> None:
    store = MemoryStore()
    binding = {"source_code_link": "https://tools.example.org/bundles/x/tool.zip"}
    catalogue = Catalogue(store, announce=True)
    catalogue.publish({"name": "hammer", "description": "", "version": "1.2.0", "binding": binding})
    deliverer = OutboxDeliverer(store, f"{receiver.url}/policy", QUICK, shape=as_registration)
    assert deliverer.deliver_due() == 1
    body = json.loads(receiver.received[0].body)
    assert receiver.received[0].path == "/policy"
    assert (body["name"], body["version"]) == ("hammer", "1.2.0")
    assert (body["code_address"], body["code_type"]) == (binding["source_code_link"], "zip")
    assert body["input_schema"] == {"type": "object", "properties": {}}
    assert set(body) == {
        "name", "version", "release_tag", "code_address", "code_type", "input_schema", "output_schema", "settings",
        "parameters", "execution_changed",
    }  # fmt: skip
    assert body["execution_changed"] is True
    catalogue.update("hammer", description="Drives nails.", tags=("nails",))
    catalogue.update("hammer", timeout_seconds=5)
    catalogue.update("hammer", parameters={"type": "object", "properties": {"nail": {"type": "string"}}})
    assert deliverer.deliver_due() == 3
    changed = [json.loads(told.body)["execution_changed"] for told in receiver.received[1:]]
    assert changed == [False, True, True]
    deliverer.stop()


def test_a_bundle_is_registered_under_the_address_of_today(receiver: Receiver) -> None:
    store, digest = MemoryStore(), "a" * 64
    catalogue = Catalogue(store, announce=True)
    binding = {"source_code_link": f"http://127.0.0.1:8000/bundles/{digest}/tool.zip"}
    catalogue.publish({"name": "hammer", "description": "", "binding": binding})
    catalogue.publish(
        {"name": "saw", "description": "", "binding": {"source_code_link": "https://example.org/saw.zip"}}
    )
    deliverer = OutboxDeliverer(store, receiver.url, QUICK, public_url="https://tools.example", shape=as_registration)
    assert deliverer.deliver_due() == 2
    assert [json.loads(told.body)["code_address"] for told in receiver.received] == [
        f"https://tools.example/bundles/{digest}/tool.zip",
        "https://example.org/saw.zip",
    ]
    deliverer.stop()
