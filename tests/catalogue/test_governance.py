"""Who may change the catalogue, what is written down about it, and what the world is told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.receiver import Receiver

from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import open_audit, open_catalogue, open_outbox, open_policy
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import (
    DeniedError,
    PolicyUnavailableError,
    SettingsError,
    StoreError,
    ToolExistsError,
    ToolInUseError,
)
from toolcrib.core.json import MASK
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import AuditEvent, AuditLog, Change, Decision, PolicyRequest, Record
from toolcrib.settings import Settings


def spec(name: str = "weather", **fields: Any) -> ToolSpec:
    return ToolSpec.parse({"name": name, "description": f"Tells the {name}", **fields})


@dataclass
class Rules:
    """A policy that keeps what it was asked and answers as the test says."""

    remote = False
    decision: Decision = field(default_factory=lambda: Decision(True))
    asked: list[PolicyRequest] = field(default_factory=list)

    def decide(self, request: PolicyRequest) -> Decision:
        self.asked.append(request)
        return self.decision


class Unreachable:
    remote = True

    def decide(self, request: PolicyRequest) -> Decision:
        raise PolicyUnavailableError("nobody answers")


def outcomes(audit: AuditLog, **wanted: Any) -> list[tuple[str, str, str]]:
    return [(event.action, event.tool, event.outcome) for event in reversed(audit.events(**wanted))]


# Policy


def test_the_policy_is_asked_before_every_change() -> None:
    rules = Rules()
    catalogue = Catalogue(MemoryStore(), policy=rules)
    catalogue.publish(spec(), principal="ann")
    catalogue.update("weather", description="x", principal="bob")
    catalogue.restore("weather", 1, principal="cid")
    catalogue.delete("weather", principal="dot")
    assert [(asked.principal, asked.action, asked.tool) for asked in rules.asked] == [
        ("ann", "create", "weather"),
        ("bob", "update", "weather"),
        ("cid", "update", "weather"),
        ("dot", "delete", "weather"),
    ]
    assert "credentials" not in rules.asked[0].spec
    assert rules.asked[1].spec["description"] == "x"
    assert rules.asked[0].digest == spec().digest


def test_a_refused_change_is_not_made_and_learns_nothing_of_the_tool() -> None:
    rules, audit = Rules(), MemoryAudit()
    catalogue = Catalogue(MemoryStore(), policy=rules, audit=audit)
    catalogue.publish_many(
        [spec(parameters={"type": "object", "properties": {"a": {}}}), spec("b", replaced_by="weather")]
    )
    rules.decision = Decision(False, "the shop is closed", "hours")
    with pytest.raises(DeniedError, match="does not let 'eve' delete 'weather': the shop is closed") as caught:
        catalogue.delete("weather", principal="eve")
    assert caught.value.rule == "hours"
    for attempt in (
        lambda: catalogue.publish(spec("new")),
        lambda: catalogue.update("weather", parameters={"type": "object", "properties": {}}),
        lambda: catalogue.restore("weather", 1),
    ):
        with pytest.raises(DeniedError):
            attempt()
    assert {record.version for record in catalogue.store.history("weather")} == {1}
    assert "new" not in catalogue
    assert [event[2] for event in outcomes(audit)][-2:] == ["attempt", "refused"]


def test_an_unreachable_policy_refuses() -> None:
    audit = MemoryAudit()
    catalogue = Catalogue(MemoryStore(), policy=Unreachable(), audit=audit)
    assert not catalogue.remote
    with pytest.raises(PolicyUnavailableError):
        catalogue.publish(spec())
    assert outcomes(audit) == [("create", "weather", "attempt"), ("create", "weather", "refused")]


def test_the_settings_name_the_policy(tmp_path: Path, settings: Settings) -> None:
    rules = tmp_path / "rules.cedar"
    rules.write_text('permit(principal == User::"ann", action == Action::"create", resource);')
    given = settings.with_changes("test", policy="cedar", policy_file=str(rules))
    catalogue = open_catalogue("memory:", given)
    catalogue.publish(spec(), principal="ann")
    with pytest.raises(DeniedError):
        catalogue.publish(spec("other"), principal="bob")
    with pytest.raises(SettingsError, match="TOOLCRIB_POLICY_FILE"):
        open_catalogue("memory:", settings.with_changes("test", policy="cedar"))


def test_the_settings_give_principals_their_roles(tmp_path: Path, settings: Settings) -> None:
    rules = tmp_path / "rules.cedar"
    rules.write_text('permit(principal in Role::"publishers", action == Action::"create", resource);')
    given = settings.with_changes("test", policy="cedar", policy_file=str(rules), policy_roles=("ann=publishers",))
    catalogue = open_catalogue("memory:", given)
    catalogue.publish(spec(), principal="ann")
    with pytest.raises(DeniedError):
        catalogue.publish(spec("other"), principal="bob")
    catalogue.close()
    with pytest.raises(SettingsError, match="'ann'; write principal=role"):
        open_catalogue("memory:", given.with_changes("test", policy_roles=("ann",)))


def test_the_webhooks_answer_about_the_same_tool_may_hold_for_a_while(settings: Settings) -> None:
    receiver = Receiver()
    receiver.answer = lambda _: (200, {}, b'{"allow": true}')
    given = settings.with_changes("test", policy="webhook", policy_webhook_url=receiver.url, policy_webhook_cache=60.0)
    policy, close = open_policy(given)
    assert policy is not None
    for _ in range(3):
        assert policy.decide(PolicyRequest("ann", "run", "weather", {}, digest="d1")).allow
    assert policy.decide(PolicyRequest("ann", "run", "weather", {}, digest="d2")).allow
    catalogue = open_catalogue("memory:", given)
    catalogue.close()
    close()
    receiver.stop()
    assert len(receiver.received) == 2


def test_the_webhook_is_asked_and_told(settings: Settings) -> None:
    receiver = Receiver()
    receiver.answer = lambda _: (200, {}, b'{"allow": true}')
    given = settings.with_changes("test", policy="webhook", policy_webhook_url=receiver.url)
    catalogue = open_catalogue("memory:", given)
    catalogue.publish(spec(credentials={"key": "hunter2"}), principal="ann")
    outbox = open_outbox(given, catalogue.store)
    assert outbox is not None
    assert outbox.deliver_due() == 1
    outbox.stop()
    catalogue.close()
    receiver.stop()
    question, event = (json.loads(request.body) for request in receiver.received)
    assert (question["action"], question["tool"]) == ("create", "weather")
    assert (event["event"], event["tool_id"], event["principal"]) == ("tool.created", "weather", "ann")
    assert event["execution"]["credentials"] == {"key": MASK}
    assert b"hunter2" not in b"".join(request.body for request in receiver.received)
    assert catalogue.store.outbox() == []


# Events


def test_a_field_that_a_release_before_did_not_have_is_no_change() -> None:
    store, old = MemoryStore(), spec().to_dict()
    del old["binding"]["command"]
    store.commit([Change("weather", old)])
    catalogue = Catalogue(store, announce=True)
    catalogue.update("weather", tags=["sky"])
    (event,) = (entry.payload for entry in store.outbox())
    assert (event["changed"], event["execution_changed"]) == (["tags"], False)


def test_every_committed_change_leaves_an_event() -> None:
    catalogue = Catalogue(MemoryStore(), announce=True, clock=lambda: 5.0)
    catalogue.publish(spec(version="1.0.0"), principal="ann")
    catalogue.update("weather", tags=["sky"])
    catalogue.update("weather", execution_mode="batch")
    with pytest.raises(ToolExistsError):
        catalogue.publish(spec())
    catalogue.delete("weather", principal="bob")
    events = [entry.payload for entry in catalogue.store.outbox()]
    assert [event["event"] for event in events] == ["tool.created", "tool.updated", "tool.updated", "tool.deleted"]
    assert [event["changed"] for event in events[1:]] == [["tags"], ["execution_mode"], []]
    assert [event["execution_changed"] for event in events[1:3]] == [False, True]
    assert len({event["id"] for event in events}) == 4
    first = {key: events[0][key] for key in ("tool_id", "version", "digest", "at", "principal")}
    assert first == {
        "tool_id": "weather", "version": "1.0.0", "digest": spec(version="1.0.0").digest, "at": 5.0, "principal": "ann",
    }  # fmt: skip


def test_without_a_reader_the_outbox_stays_empty(catalogue: Catalogue) -> None:
    catalogue.publish(spec(binding={"source_code_link": "http://elsewhere.example/tool.zip"}))
    catalogue.update("weather", description="x")
    catalogue.delete("weather")
    assert catalogue.store.outbox() == []


# Audit


def test_the_audit_tells_who_did_what(catalogue: Catalogue, reopen: Callable[[], Catalogue]) -> None:
    catalogue.publish(spec(), principal="ann")
    catalogue.publish(spec("user", replaced_by="weather"), principal="ann")
    with pytest.raises(ToolInUseError):
        catalogue.delete("weather", principal="bob")
    audit = reopen().audit
    assert audit is not None
    kept: AuditLog = audit  # type: ignore[assignment]
    assert outcomes(kept) == [
        ("create", "weather", "attempt"),
        ("create", "weather", "done"),
        ("create", "user", "attempt"),
        ("create", "user", "done"),
        ("delete", "weather", "attempt"),
        ("delete", "weather", "failed"),
    ]
    assert outcomes(kept, principal="bob") == [("delete", "weather", "attempt"), ("delete", "weather", "failed")]
    assert outcomes(kept, tool="user", outcome="done") == [("create", "user", "done")]
    assert len(kept.events(action="create")) == 4
    failed, attempt = kept.events(limit=2)
    assert failed.call == attempt.call
    assert "named by 'user'" in failed.detail
    assert kept.events(call=failed.call) == [failed, attempt]
    assert kept.events(since=failed.at + 1) == []


def test_an_audit_that_cannot_write_stops_the_change() -> None:
    class Full:
        remote = False

        def record(self, *events: AuditEvent) -> None:
            raise StoreError("the disk is full")

    catalogue = Catalogue(MemoryStore(), audit=Full())
    with pytest.raises(StoreError):
        catalogue.publish(spec())
    assert "weather" not in catalogue


def test_an_outcome_that_cannot_be_audited_does_not_undo_the_change(caplog: pytest.LogCaptureFixture) -> None:
    class FullAfterTheAttempt(MemoryAudit):
        def record(self, *events: AuditEvent) -> None:
            if events[0].outcome != "attempt":
                raise StoreError("the disk is full")
            super().record(*events)

    catalogue = Catalogue(MemoryStore(), audit=FullAfterTheAttempt())
    catalogue.publish(spec())
    assert "weather" in catalogue
    assert "could not be recorded: the disk is full" in caplog.text
    with pytest.raises(ToolExistsError):
        catalogue.publish(spec())


def test_a_crash_leaves_its_event() -> None:
    class Broken(MemoryStore):
        def commit(self, changes: Any) -> list[Record]:
            raise KeyboardInterrupt

    audit = MemoryAudit()
    with pytest.raises(KeyboardInterrupt):
        Catalogue(Broken(), audit=audit).publish(spec())
    assert [event.outcome for event in audit.events()] == ["crashed", "attempt"]


def test_a_broken_audit_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "tools.audit.db").write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match=r"tools\.audit\.db"):
        open_audit(f"sqlite:///{tmp_path}/tools.db")


# Cleanup


BOUND: dict[str, Any] = {"binding": {"source_code_link": f"http://127.0.0.1/bundles/{'a' * 64}/tool.zip"}}


def test_what_belongs_to_a_deleted_tool_goes_with_it() -> None:
    removed: list[str] = []
    catalogue = Catalogue(MemoryStore(), cleanups=[lambda gone: removed.append(gone.name)])
    catalogue.publish_many([spec("one", **BOUND), spec("two", **BOUND), spec("unbound")])
    catalogue.delete("unbound")
    catalogue.delete("one")
    assert removed == []  # 'two' has the same bundle
    catalogue.delete("two")
    assert removed == ["two"]
    assert catalogue.store.outbox() == []


def test_a_crash_in_the_middle_of_a_delete_is_finished_at_the_next_start() -> None:
    removed: list[str] = []

    def crash(gone: ToolSpec) -> None:
        raise KeyboardInterrupt

    store = MemoryStore()
    catalogue = Catalogue(store, cleanups=[crash])
    catalogue.publish(spec(**BOUND))
    with pytest.raises(KeyboardInterrupt):
        catalogue.delete("weather")
    assert "weather" not in catalogue

    def remove(gone: ToolSpec) -> None:
        removed.append(gone.binding.source_code_link)

    again = Catalogue(store, cleanups=[remove])
    assert again.recover() == 1
    assert removed == [BOUND["binding"]["source_code_link"]]
    assert again.recover() == 0


def test_a_cleanup_that_fails_waits_for_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    broken = [True]

    def remove(gone: ToolSpec) -> None:
        if broken:
            raise StoreError("the blobs do not answer")

    catalogue = Catalogue(MemoryStore(), cleanups=[remove])
    catalogue.publish(spec(**BOUND))
    catalogue.delete("weather")
    assert "the blobs do not answer" in caplog.text
    assert len(catalogue.store.outbox()) == 1
    broken.clear()
    catalogue.publish(spec(**BOUND))
    assert catalogue.recover() == 1  # and the bundle of the tool that is there again stays
    assert catalogue.store.outbox() == []


DYING = """
import os, sys
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.catalogue import Catalogue
Catalogue(SqliteStore(sys.argv[1]), cleanups=[lambda gone: os._exit(9)]).delete("weather")
"""


def test_a_process_that_dies_between_the_deletion_and_the_cleanup(tmp_path: Path, settings: Settings) -> None:
    given = settings.with_changes("test", blobs=f"file://{tmp_path}/blobs")
    url = f"sqlite:///{tmp_path}/tools.db"
    unpacked = given.data_folder / "unpacked" / ("a" * 64)
    unpacked.mkdir(parents=True)
    catalogue = open_catalogue(url, given)
    catalogue.publish(spec(**BOUND))
    catalogue.close()
    dead = subprocess.run([sys.executable, "-c", DYING, str(tmp_path / "tools.db")], check=False)
    assert dead.returncode == 9
    assert unpacked.exists()
    again = open_catalogue(url, given)
    assert "weather" not in again
    assert not unpacked.exists()
    assert again.store.outbox() == []
    again.close()
