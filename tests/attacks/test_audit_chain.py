"""Whoever writes the audit behind its back is found out."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from tests.support.stores import STORES
from typer.testing import CliRunner

from toolcrib.bootstrap import open_audit, open_system
from toolcrib.core.chains import Head, Verdict, verify
from toolcrib.ports import AuditEvent, AuditLog
from toolcrib.settings import Settings
from toolcrib.surfaces.backups import backup, restore
from toolcrib.surfaces.cli.app import build_app
from toolcrib.surfaces.cli.invocation import Invocation

EVENTS = [AuditEvent(f"c{n}", 1000.0 + n, "ada", "run", f"t{n}", "attempt", "é\0 " * (n % 3)) for n in range(12)]


def _quoted(value: object) -> str:
    """A value as SQL has it, whatever the text holds."""
    return repr(value) if isinstance(value, float) else f"cast(x'{str(value).encode().hex()}' as text)"


@dataclass
class Kept:
    """An audit, and what somebody can do to it who has its file or its database."""

    url: str

    def open(self) -> AuditLog:
        return open_audit(self.url)

    def verdict(self, *remembered: Head) -> Verdict:
        with closing(self.open()) as audit:
            return verify(audit.links, audit.heads(), remembered)

    def head(self) -> Head:
        with closing(self.open()) as audit:
            return list(audit.heads().values())[-1]

    def record(self, *events: AuditEvent) -> None:
        with closing(self.open()) as audit:
            for event in events:
                audit.record(event)

    def sql(self, statement: str) -> None:
        path = self.url.removeprefix("sqlite:///").replace(".db", ".audit.db")
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(statement)

    def mongo(self, change: Callable[[Any], object]) -> None:
        with MongoClient[dict[str, Any]](self.url) as client:
            change(client.get_default_database()["audit"])

    def change(self, call: str, **fields: str) -> None:
        if self.url.startswith("sqlite"):
            self.sql(f"update audit set {', '.join(f'{k} = {v!r}' for k, v in fields.items())} where call = {call!r}")
        else:
            self.mongo(lambda audit: audit.update_one({"call": call}, {"$set": fields}))

    def remove(self, *calls: str) -> None:
        if self.url.startswith("sqlite"):
            self.sql(f"delete from audit where call in ({', '.join(map(repr, calls))})")
        else:
            self.mongo(lambda audit: audit.delete_many({"call": {"$in": calls}}))


@pytest.fixture(params=["sqlite", "mongo"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return Kept(STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url"))))


def test_what_nobody_touched_fits(kept: Kept) -> None:
    assert kept.verdict() == Verdict(0, 0)
    with closing(kept.open()) as audit:
        audit.record(*EVENTS[:3])
        audit.record(*EVENTS[3:])
        assert audit.events(limit=2) == EVENTS[:-3:-1]
        remembered = list(audit.heads().values())[-1]
    kept.record(EVENTS[0])
    verdict = kept.verdict(remembered)
    assert (verdict.events, verdict.fault) == (13, "")


def test_a_changed_event_is_named(kept: Kept) -> None:
    kept.record(*EVENTS)
    kept.change("c5", principal="eve")
    assert "attempt of 'eve' to run 't5' at 1005.0, call c5) was changed" in kept.verdict().fault


@pytest.mark.parametrize(
    ("gone", "named"), [(("c5",), "6"), (("c0",), "1"), (("c3", "c4"), "4"), (("c10", "c11"), "11")]
)
def test_what_was_taken_out_is_missed(kept: Kept, gone: tuple[str, ...], named: str) -> None:
    with closing(kept.open()) as audit:
        audit.record(*EVENTS)
    kept.remove(*gone)
    assert f"event {named} of chain" in kept.verdict().fault and "is gone" in kept.verdict().fault
    kept.record(*EVENTS[:3])
    assert f"event {named} of chain" in kept.verdict().fault, "also when more was recorded since"


def test_a_chain_of_which_nothing_is_left_is_missed(kept: Kept) -> None:
    kept.record(*EVENTS)
    kept.remove(*(event.call for event in EVENTS))
    assert "event 1 of chain" in kept.verdict().fault and "up to 12" in kept.verdict().fault
    kept.record(EVENTS[0])
    assert "is gone" in kept.verdict().fault, "also when more was recorded since"


def test_what_was_put_in_is_found(kept: Kept) -> None:
    kept.record(*EVENTS)
    forged = dict(EVENTS[1]._replace(call="forged", principal="mallory")._asdict())
    if kept.url.startswith("sqlite"):
        kept.sql(f"insert into audit ({', '.join(forged)}) values ({', '.join(map(_quoted, forged.values()))})")
    else:
        kept.mongo(lambda audit: audit.insert_one(forged))
    assert "call forged) has no hash" in kept.verdict().fault


def test_a_chain_that_was_made_anew_does_not_hold_the_head_that_the_log_has(kept: Kept, tmp_path: Path) -> None:
    kept.record(*EVENTS)
    remembered = kept.head()
    assert kept.verdict(remembered).fault == ""
    if kept.url.startswith("sqlite"):
        Path(kept.url.removeprefix("sqlite:///").replace(".db", ".audit.db")).unlink()
    else:
        kept.mongo(lambda audit: audit.drop())
    kept.record(*EVENTS[:5], *EVENTS[6:])
    assert kept.verdict().fault == "", "whoever can write everything can make everything anew"
    assert f"of chain {remembered.chain} is gone" in kept.verdict(remembered).fault


def test_several_write_at_once_and_every_chain_fits(kept: Kept) -> None:
    first, second = kept.open(), kept.open()
    with closing(first), closing(second), ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit((first, second)[n % 2].record, event) for n in range(20) for event in EVENTS]
        for job in jobs:
            job.result()
        assert len(first.events(limit=1000)) == 240
    verdict = kept.verdict()
    assert (verdict.events, verdict.fault) == (240, "")


def test_a_chain_that_another_one_saw_cannot_be_taken_away_whole(mongo_database_url: str) -> None:
    kept = Kept(mongo_database_url)
    kept.record(EVENTS[0])
    chain = kept.head().chain
    kept.record(EVENTS[1])
    kept.mongo(lambda audit: audit.delete_many({"chain": chain}))
    assert f"event 1 of chain {chain} is gone" in kept.verdict().fault


def test_events_of_the_first_release_are_linked_as_they_are_found(kept: Kept) -> None:
    old = [event._asdict() for event in EVENTS[:4]]
    if kept.url.startswith("sqlite"):
        columns = "call text not null, at real not null, principal text not null, action text not null"
        more = "tool text not null, outcome text not null, detail text not null"
        kept.sql(f"create table audit (sequence integer primary key autoincrement, {columns}, {more}) strict")
        for event in old:
            kept.sql(f"insert into audit ({', '.join(event)}) values ({', '.join(map(_quoted, event.values()))})")
    else:
        kept.mongo(lambda audit: audit.insert_many([dict(event) for event in old]))
    kept.record(EVENTS[4])
    verdict = kept.verdict()
    assert (verdict.events, verdict.chains, verdict.fault) == (5, 2, "")
    with closing(kept.open()) as audit:
        assert list(reversed(audit.events())) == EVENTS[:5]
    kept.change("c2", tool="x")
    assert "event 3 of chain past" in kept.verdict().fault
    kept.remove("c0", "c1", "c2", "c3")
    assert "event 1 of chain" in kept.verdict().fault and "is gone" in kept.verdict().fault


def test_a_backup_keeps_the_chains(kept: Kept, tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"), store=kept.url)
    for _ in range(2):
        with open_system(settings) as system:
            system.catalogue.publish({"name": "a", "description": "A."}, replace=True)
    remembered = kept.head()
    backup(settings, tmp_path / "saved.zip")
    (tmp_path / "third").mkdir()
    for store in (f"sqlite:///{tmp_path}/other/tools.db", f"json:///{tmp_path}/third/tools.json"):
        restore(Settings(data_dir=str(tmp_path / "other"), store=store), tmp_path / "saved.zip")
        with closing(open_audit(store)) as audit:
            assert verify(audit.links, audit.heads(), [remembered]).fault == ""
            audit.record(EVENTS[0])
            verdict = verify(audit.links, audit.heads(), [remembered])
        assert (verdict.events, verdict.fault) == (5, "")


@pytest.fixture
def run(kept: Kept) -> Callable[..., Any]:
    def invoke(*arguments: str) -> Any:
        return CliRunner().invoke(build_app(), list(arguments), obj=Invocation("toolcrib", kept.url))

    return invoke


def test_the_command_says_whether_the_audit_fits(kept: Kept, run: Callable[..., Any]) -> None:
    kept.record(*EVENTS)
    good = run("--store", kept.url, "audit", "verify", "--head", str(kept.head()))
    assert good.exit_code == 0 and good.stdout.startswith("12 events in 1 chain, each in its place."), good.output
    assert str(kept.head()) in good.stdout
    listed = run("--store", kept.url, "audit", "list", "--tool", "t3", "--json")
    assert '"call": "c3"' in listed.stdout
    kept.change("c5", principal="eve")
    bad = run("--store", kept.url, "audit", "verify")
    assert bad.exit_code == 1
    assert "the audit is not what was recorded: event 6 of chain" in bad.output
