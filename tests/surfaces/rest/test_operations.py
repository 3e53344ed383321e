"""Doctor, backup and restore, tokens from the command line, policies seen from the door, logs."""

import asyncio
import json
import logging
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from tests.support import s3
from tests.support.processes import free_port
from tests.support.receiver import receiving
from tests.support.waiting import PATIENCE
from tests.surfaces.conftest import Serve, system_of
from tests.surfaces.http.bundles import bundle, code_zip

from toolcrib.adapters.tokens import SqliteTokens
from toolcrib.bootstrap import open_system, open_tokens
from toolcrib.core.errors import ConflictError, InvalidBundleError, SettingsError, StoreError
from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import Settings
from toolcrib.surfaces.backups import backup, restore
from toolcrib.surfaces.doctor import Check, doctor
from toolcrib.surfaces.logs import JsonLines, PlainLines


async def fill(client: httpx.AsyncClient) -> None:
    await client.post("/tools/upload", files={"file": bundle()})
    await client.put("/tools/tool-123", json={"tool_type": "second"})
    await client.post("/tools", json={"tool_id": "a", "default_tool_usage_credentials": {"key": "secret"}})
    await client.post("/tools", json={"tool_id": "b"})
    await client.delete("/tools/b")
    await client.post("/tools", json={"tool_id": "b", "tool_type": "again"})


@pytest.mark.parametrize("target", ["sqlite", "json", "mongo"])
async def test_a_backup_comes_back_in_any_store(
    target: str, serve: Serve, settings: Settings, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    client = await serve(settings)
    await fill(client)
    token, record = new_token("ci", Role.READER, now=1.0)
    SqliteTokens(settings.data_folder / "tokens.db").add(record)
    saved = backup(settings, tmp_path / "saved.zip")
    assert (saved.tools, saved.versions, saved.bundles, saved.tokens) == (3, 6, 1, 1)
    with zipfile.ZipFile(tmp_path / "saved.zip") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    assert b"secret" not in content, "credentials stay sealed"
    assert token.encode() not in content

    urls = {"sqlite": None, "json": f"json:///{tmp_path}/other/tools.json"}
    url = request.getfixturevalue("mongo_database_url") if target == "mongo" else urls[target]
    key = (settings.data_folder / "keys" / "seal.key").read_text().strip()
    other = settings.with_changes("test", data_dir=str(tmp_path / "other"), store=url, seal_keys=(key,))
    assert restore(other, tmp_path / "saved.zip") == saved
    again = await serve(other)
    for path in ("/tools", "/tools/tool-123", "/tools/a", "/tools/b", "/tools/tool-123/history/1"):
        assert (await again.get(path)).json() == (await client.get(path)).json()
    assert (await again.get("/tools/tool-123/tool.zip")).content == code_zip()
    for name, numbers in {"tool-123": [2, 1], "b": [3, 2, 1], "a": [1]}.items():
        history = (await again.get(f"/tools/{name}/history")).json()
        assert [version["version"] for version in history] == numbers
        assert _times(history) == _times((await client.get(f"/tools/{name}/history")).json())
    tokens = open_tokens(other)
    assert tokens.find(record.digest) == record
    tokens.close()
    assert system_of(again).catalogue.credentials("a") == {"key": "secret"}
    with pytest.raises(ConflictError, match="empty"):
        restore(other, tmp_path / "saved.zip")
    keyless = other.with_changes("test", seal_keys=())
    with pytest.raises(SettingsError, match="this process has no key"), open_system(keyless) as system:
        system.seal.require()  # the store is told which key it needs


def _times(history: list[dict[str, float]]) -> list[float]:
    return [round(version["at"], 3) for version in history]


async def test_what_is_not_a_backup_is_not_restored(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("nothing")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("x", "y")
    with zipfile.ZipFile(tmp_path / "new.zip", "w") as archive:
        archive.writestr("manifest.json", '{"format": 99}')
    for name in ("text", "other.zip", "new.zip", "missing.zip"):
        with pytest.raises(InvalidBundleError):
            restore(settings, tmp_path / name)
    with pytest.raises(StoreError):
        backup(settings, tmp_path / "no" / "such" / "folder.zip")


def test_a_backup_goes_where_a_link_leads_and_is_for_its_owner_alone(settings: Settings, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    link = tmp_path / "latest.zip"
    link.symlink_to(disk / "saved.zip")
    saved = backup(settings, link)
    assert link.is_symlink()
    assert (disk / "saved.zip").stat().st_mode & 0o777 == 0o600
    assert restore(settings.with_changes("test", data_dir=str(tmp_path / "other")), link) == saved


def test_a_backup_that_fails_leaves_the_last_one(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "saved.zip"
    path.write_bytes(b"the last one")
    (tmp_path / "broken").write_text("not a database, but long enough to be looked at " * 100)
    with pytest.raises(StoreError):
        backup(settings.with_changes("test", store=f"sqlite:///{tmp_path}/broken"), path, replace=True)
    with pytest.raises(ConflictError, match="replace it"):
        backup(settings, path)
    assert path.read_bytes() == b"the last one"
    assert not list(tmp_path.glob(".*"))


async def test_a_damaged_backup_is_not_restored(serve: Serve, settings: Settings, tmp_path: Path) -> None:
    await fill(await serve(settings))
    backup(settings, tmp_path / "saved.zip")
    damaged = bytearray((tmp_path / "saved.zip").read_bytes())
    damaged[60:90] = b"x" * 30
    (tmp_path / "saved.zip").write_bytes(damaged)
    other = settings.with_changes("test", data_dir=str(tmp_path / "other"))
    with pytest.raises(InvalidBundleError):
        restore(other, tmp_path / "saved.zip")


async def examined(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in await asyncio.to_thread(doctor, settings)}


async def test_doctor(serve: Serve, settings: Settings, tmp_path: Path) -> None:
    await fill(await serve(settings))
    checks = await examined(settings)
    assert {check.health for check in checks.values()} <= {"ok", "warning"}
    assert "3 tools" in checks["store"].detail
    assert "'a'" in checks["credentials"].detail

    (tmp_path / "broken").write_text("not a database, but long enough to be looked at " * 100)
    broken = await examined(settings.with_changes("test", store=f"sqlite:///{tmp_path}/broken"))
    assert broken["store"].health == "failed"
    assert str(tmp_path / "broken") in broken["store"].detail
    exposed = await examined(settings.with_changes("test", host="0.0.0.0"))
    assert exposed["access"].health == "failed"
    assert "open to everybody" in exposed["access"].detail
    lost = await examined(settings.with_changes("test", blobs="file:///proc/nowhere"))
    assert lost["blobs"].health == "failed"


def test_doctor_misses_a_bucket_that_its_server_would_make(settings: Settings, tmp_path: Path) -> None:
    if "seaweedfs" not in s3.available_kinds():
        pytest.skip("SeaweedFS is not installed")
    (tmp_path / "s3").mkdir()
    with s3.s3_server("seaweedfs", tmp_path / "s3") as server:
        missing = settings.with_changes(
            "test",
            blobs=f"s3://nobody-made-this?endpoint={server.endpoint}",
            s3_access_key_id=server.access_key,
            s3_secret_access_key=server.secret_key,
        )
        [blobs] = [check for check in doctor(missing) if check.name == "blobs"]
    assert blobs.health == "failed"
    assert "'s3://nobody-made-this' does not exist; create it" in blobs.detail


async def test_a_policy_that_says_no(serve: Serve, settings: Settings) -> None:
    with receiving() as receiver:
        receiver.answer = lambda _: (200, {}, json.dumps({"allow": False, "reason": "not on Mondays"}).encode())
        client = await serve(
            settings.with_changes(
                "test", policy="webhook", policy_webhook_url=f"{receiver.url}/decide", policy_webhook_timeout=PATIENCE
            )
        )
        refused = await client.post("/tools", json={"tool_id": "a"})
        assert (refused.status_code, refused.json()["code"]) == (403, "denied")
        assert "not on Mondays" in refused.json()["detail"]
        assert (await client.post("/tools/upload", files={"file": bundle()})).status_code == 403
    assert (await client.get("/tools")).json() == []
    outcomes = [event["outcome"] for event in (await client.get("/audit")).json()]
    assert outcomes.count("refused") == 2


async def test_a_policy_that_cannot_be_asked(serve: Serve, settings: Settings) -> None:
    nobody = settings.with_changes(
        "test", policy="webhook", policy_webhook_url=f"http://127.0.0.1:{free_port()}/decide"
    )
    client = await serve(nobody)
    away = await client.post("/tools", json={"tool_id": "a"})
    assert (away.status_code, away.json()["code"]) == (503, "policy_unavailable")
    assert (await client.get("/tools")).json() == []
    open_one = await serve(nobody.with_changes("test", policy_webhook_open=True))
    assert (await open_one.post("/tools", json={"tool_id": "a"})).status_code == 201


def test_log_lines() -> None:
    record = logging.LogRecord("toolcrib.http", logging.INFO, "x", 1, "GET %s 404", ("/x",), None)
    record.details = {"path": "/x\nFORGED", "principal": "Bearer tcrib_" + "a" * 40}
    line = JsonLines().format(record)
    assert "\n" not in line
    assert "aaaa" not in line
    assert json.loads(line)["message"] == "GET /x 404"
    plain = PlainLines().format(record)
    assert "\n" not in plain
    assert "aaaa" not in plain


async def test_requests_are_logged_with_who_and_what(
    serve: Serve, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # what takes long is logged too, however well it went
    client = await serve(settings)
    with caplog.at_level(logging.INFO, "toolcrib"):
        await client.post("/tools", json={"tool_id": "a"})
        await client.get("/tools/a")
        await client.get("/nothing")
    details = [record.details for record in caplog.records if hasattr(record, "details")]
    assert [(d["method"], d["route"], d["status"], d["principal"]) for d in details] == [
        ("POST", "/tools", 201, "local"),
        ("GET", "-", 404, "local"),
    ]
    caplog.clear()
    client = await serve(settings.with_changes("test", log_requests=True))
    with caplog.at_level(logging.INFO, "toolcrib"):
        await client.get("/tools/a")
    assert [record.details["route"] for record in caplog.records] == ["/tools/{tool_id}"]  # type: ignore[attr-defined]


class _Recorded(trace.NonRecordingSpan):
    def __init__(self, name: str) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name = name
        self.attributes: dict[str, object] = {}

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, key: str, value: object) -> None:
        self.attributes[key] = value


class _Tracer(trace.NoOpTracer):
    def __init__(self) -> None:
        self.spans: list[_Recorded] = []

    @contextmanager
    def start_as_current_span(self, name: str, **_: object) -> Iterator[_Recorded]:  # type: ignore[override]
        self.spans.append(_Recorded(name))
        yield self.spans[-1]


async def test_requests_are_traced(serve: Serve, settings: Settings) -> None:
    tracer = _Tracer()
    client = await serve(settings, tracer=tracer)
    await client.post("/tools", json={"tool_id": "a"})
    await client.get("/tools/a/history")
    assert [(span.name, span.attributes["http.response.status_code"]) for span in tracer.spans] == [
        ("POST /tools", 201),
        ("GET /tools/{tool_id}/history", 200),
    ]
