"""What the service offers beyond the registry's own contract."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from operator import add
from time import time
from typing import Any

import httpx
import pytest
from tests.support.s3 import S3Server
from tests.support.waiting import PATIENCE, until
from tests.surfaces.conftest import Serve, system_of
from tests.surfaces.http.bundles import SPEC, bundle, code_zip
from tests.surfaces.http.runnable import RUNNABLE

from toolcrib.catalogue.collecting import GRACE_SECONDS, collect
from toolcrib.settings import Settings
from toolcrib.surfaces.http.readiness import Readiness
from toolcrib.surfaces.rest import RenderedEntries
from toolcrib.surfaces.service import readiness_parts

TEXT_IN = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def python_tool(name: str, **changes: Any) -> dict[str, Any]:
    """An entry that runs a function of tests.surfaces.http.runnable."""
    return {
        "tool_id": name,
        "tool_search_description": f"{name} for tests",
        "tool_api_spec": {"input": changes.pop("input", {"type": "object"})},
        "tool_metadata": {"toolcrib": {"binding": {"python": f"tests.surfaces.http.runnable:{name}"}, **changes}},
    }


@pytest.fixture
async def client(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    return await serve(settings.with_changes("test", python_tools=RUNNABLE))


async def create(client: httpx.AsyncClient, entry: dict[str, Any]) -> httpx.Response:
    answer = await client.post("/tools", json=entry)
    assert answer.status_code == 201, answer.text
    return answer


def told(answer: httpx.Response) -> tuple[int, str, str]:
    problem = answer.json()
    return answer.status_code, problem["code"], problem["detail"]


async def test_create_without_a_bundle(client: httpx.AsyncClient) -> None:
    answer = await create(client, {"tool_id": "a"})
    assert answer.json() == {"message": "Tool created successfully", "tool_id": "a"}
    assert answer.headers["location"] == "/tools/a"
    again = await client.post("/tools", json={"tool_id": "a"})
    assert again.status_code == 409
    replaced = await client.post("/tools?replace=true", json={"tool_id": "a", "tool_type": "x"})
    assert replaced.status_code == 201
    assert (await client.get("/tools/a")).json()["tool_type"] == "x"


async def test_pages_lead_through_everything(client: httpx.AsyncClient) -> None:
    names = [f"tool-{number:03}" for number in range(25)]
    for name in names:
        await create(client, {"tool_id": name})
    seen: list[str] = []
    url = "/tools?limit=10"
    sizes = []
    while url:
        answer = await client.get(url)
        page = [entry["tool_id"] for entry in answer.json()]
        sizes.append(len(page))
        seen += page
        url = answer.links.get("next", {}).get("url", "")
    assert (seen, sizes) == (names, [10, 10, 5])


@pytest.mark.parametrize("limit", ["0", "10001", "x", "-1", "1.5", "99999999999999999999"])
async def test_a_wrong_limit_is_refused(client: httpx.AsyncClient, limit: str) -> None:
    answer = await client.get("/tools", params={"limit": limit})
    assert answer.status_code == 400
    assert "'limit'" in answer.json()["detail"]


async def test_etags(client: httpx.AsyncClient) -> None:
    created = await create(client, {"tool_id": "a"})
    first = (await client.get("/tools/a")).headers["etag"]
    assert created.headers["etag"] == first
    unchanged = await client.get("/tools/a", headers={"if-none-match": first})
    assert (unchanged.status_code, unchanged.content) == (304, b"")

    updated = await client.put("/tools/a", json={"tool_type": "x"}, headers={"if-match": first})
    assert updated.status_code == 200
    second = updated.headers["etag"]
    assert second != first
    assert (await client.get("/tools/a", headers={"if-none-match": first})).status_code == 200

    for method in ("PUT", "DELETE"):
        body = {"tool_type": "y"} if method == "PUT" else None
        refused = await client.request(method, "/tools/a", headers={"if-match": first}, json=body)
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert (await client.put("/tools/a", json={}, headers={"if-match": "nonsense"})).status_code == 412
    assert (await client.delete("/tools/a", headers={"if-match": second})).status_code == 200


async def test_of_two_writers_with_the_same_etag_one_loses(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a"})
    etag = (await client.get("/tools/a")).headers["etag"]
    answers = await asyncio.gather(
        *(client.put("/tools/a", json={"tool_type": f"t{n}"}, headers={"if-match": etag}) for n in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7


async def test_head_is_get_without_a_body(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a"})
    for path in ("/tools/a", "/tools", "/healthz", "/openapi.json"):
        get, head = await client.get(path), await client.head(path)
        assert head.status_code == get.status_code == 200
        assert head.content == b""
        assert head.headers["content-length"] == get.headers["content-length"]


async def test_unknown_fields_are_named(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a"})
    for answer in (
        await client.put("/tools/a", json={"tool_typ": "x"}),
        await client.post("/tools", json={"tool_id": "b", "tool_typ": "x"}),
        await client.post("/tools/upload", files={"file": bundle({**SPEC, "tool_typ": "x"})}),
    ):
        assert answer.status_code == 400
        assert "tool_typ" in answer.json()["detail"]
    assert "renamed" in (await client.put("/tools/a", json={"tool_id": "b"})).json()["detail"]


async def test_definitions(client: httpx.AsyncClient) -> None:
    await create(client, {**SPEC, "tool_id": "my.tool"})
    openai = (await client.get("/tools/my.tool/definition")).json()
    assert openai["type"] == "function"
    assert openai["function"]["parameters"]["required"] == ["text"]
    anthropic = (await client.get("/tools/my.tool/definition?format=anthropic")).json()
    assert anthropic["input_schema"]["required"] == ["text"]
    unknown = await client.get("/tools/my.tool/definition?format=cobol")
    assert (unknown.status_code, unknown.json()["code"]) == (400, "export_failed")
    assert (await client.get("/tools/nobody/definition")).status_code == 404


async def test_compatibility(client: httpx.AsyncClient) -> None:
    for name, kind, refuses in (
        ("playwright", "browser", ["selenium"]),
        ("selenium", "browser", []),
        ("bs4", "parser", []),
    ):
        metadata = {"toolcrib": {"incompatible_with": refuses}} if refuses else {}
        await create(client, {"tool_id": name, "tool_type": kind, "tool_metadata": metadata})
    for name in ("tools", "names", "tool_ids"):
        fits = (await client.post("/tools/check-compat", json={name: ["playwright", "bs4"]})).json()
        assert (fits["compatible"], fits["answer"]) == (True, "Compatible")
    clash = (await client.post("/tools/check-compat", json={"tools": ["playwright", "selenium", "bs4"]})).json()
    assert (clash["compatible"], clash["answer"]) == (False, "Non compatible")
    assert len(clash["verdicts"]) == 3
    assert next(v for v in clash["verdicts"] if not v["compatible"])["rule"] == "refused"
    found = (await client.get("/tools/playwright/compatible")).json()
    assert [entry["tool_id"] for entry in found] == ["bs4"]
    missing = await client.post("/tools/check-compat", json={"tools": ["playwright", "nobody"]})
    assert missing.status_code == 404
    for bad in ({}, {"tools": ["a"]}, {"tools": "ab"}, {"tools": ["a", 1]}, {"tools": ["a", "b"], "x": 1}):
        assert (await client.post("/tools/check-compat", json=bad)).status_code == 400, bad


@pytest.mark.parametrize("name", ["search", "upload", "check-compat", "query"])
async def test_a_tool_may_be_called_like_an_endpoint(client: httpx.AsyncClient, name: str) -> None:
    await create(client, {"tool_id": name, "tool_type": "a"})
    assert (await client.get(f"/tools/{name}")).json()["tool_id"] == name
    assert (await client.put(f"/tools/{name}", json={"tool_type": "b"})).status_code == 200
    assert (await client.get(f"/tools/{name}")).json()["tool_type"] == "b"
    assert (await client.delete(f"/tools/{name}")).status_code == 200
    assert (await client.get(f"/tools/{name}")).status_code in (400, 404)


async def test_history_and_restore(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a", "tool_type": "one"})
    await client.put("/tools/a", json={"tool_type": "two"})
    history = (await client.get("/tools/a/history")).json()
    assert [version["version"] for version in history] == [2, 1]
    assert (await client.get("/tools/a/history/1")).json()["tool_type"] == "one"
    restored = await client.post("/tools/a/restore", json={"version": 1})
    assert restored.json() == {"message": "Tool restored successfully", "tool_id": "a"}
    assert (await client.get("/tools/a")).json()["tool_type"] == "one"
    await client.delete("/tools/a")
    assert [v["deleted"] for v in (await client.get("/tools/a/history")).json()] == [True, False, False, False]
    assert (await client.post("/tools/a/restore", json={"version": 2})).status_code == 200
    assert (await client.get("/tools/a")).json()["tool_type"] == "two"
    for path in ("/tools/nobody/history", "/tools/nobody/history/1"):
        assert told(await client.get(path)) == (404, "tool_not_found", "no tool is called 'nobody'")
    for answer in (
        await client.get("/tools/a/history/99"),
        await client.post("/tools/a/restore", json={"version": 99}),
    ):
        assert told(answer) == (404, "version_not_found", "'a' has no version 99; it has 1 to 5")
    assert told(await client.get("/tools/a/tool.zip")) == (404, "bundle_not_found", "'a' has no bundle")
    assert (await client.get("/tools/a/history/x")).status_code == 400
    for bad in ({}, {"version": "1"}, {"version": True}, {"version": 1, "x": 1}):
        assert (await client.post("/tools/a/restore", json=bad)).status_code == 400


async def test_a_breaking_change_says_what_breaks(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a", "tool_api_spec": {"input": {"type": "object"}}})
    refused = await client.put("/tools/a", json={"tool_api_spec": {"input": TEXT_IN}})
    assert (refused.status_code, refused.json()["code"]) == (409, "breaking_change")
    assert any("text" in change for change in refused.json()["changes"])
    forced = await client.put("/tools/a?force=true", json={"tool_api_spec": {"input": TEXT_IN}})
    assert forced.status_code == 200
    assert forced.json()["broke"] == refused.json()["changes"]


async def test_a_tool_in_use_is_not_deleted(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a"})
    await create(client, {"tool_id": "b", "tool_metadata": {"toolcrib": {"compatibilities": ["a"]}}})
    refused = await client.delete("/tools/a")
    assert (refused.status_code, refused.json()["users"]) == (409, ["b"])
    assert (await client.delete("/tools/a?force=true")).status_code == 200


async def test_search(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "html", "tool_search_description": "parses html pages"})
    await create(client, {"tool_id": "pdf", "tool_search_description": "reads pdf files"})
    hits = (await client.get("/tools/search?q=html")).json()
    assert [hit["tool_id"] for hit in hits] == ["html"]
    assert 0 < hits[0]["score"] <= 1
    assert hits[0]["tool"]["tool_search_description"] == "parses html pages"
    assert (await client.get("/tools/search")).status_code == 400


async def test_run(client: httpx.AsyncClient) -> None:
    await create(client, python_tool("shout", input=TEXT_IN))
    done = await client.post("/tools/shout/run", json={"arguments": {"text": "hello"}})
    assert done.status_code == 200
    result = done.json()
    assert (result["success"], result["data"], result["error"], result["error_code"]) == (True, "HELLO", None, None)
    assert result["metadata"]["tool"] == "shout"

    wrong = await client.post("/tools/shout/run", json={"arguments": {"text": 7}})
    assert (wrong.status_code, wrong.json()["error_code"]) == (400, "invalid_arguments")
    assert wrong.json()["success"] is False
    await create(client, python_tool("fail"))
    failed = await client.post("/tools/fail/run", json={"arguments": {}})
    assert (failed.status_code, failed.json()["error_code"]) == (200, "tool_failed")
    await create(client, python_tool("block", timeout_seconds=0.2))
    late = await client.post("/tools/block/run", json={"arguments": {"seconds": 2}})
    assert (late.status_code, late.json()["error_code"]) == (200, "timeout")

    assert (await client.post("/tools/nobody/run", json={})).status_code == 404
    assert (await client.post("/tools/shout/run", json={"args": {}})).status_code == 400
    await create(client, {"tool_id": "described-only"})
    assert (await client.post("/tools/described-only/run", json={})).status_code in (400, 409)


async def test_a_dangerous_tool_does_not_simply_run(client: httpx.AsyncClient) -> None:
    await create(client, python_tool("shout", input=TEXT_IN, safety_level="dangerous"))
    refused = await client.post("/tools/shout/run", json={"arguments": {"text": "x"}})
    assert (refused.status_code, refused.json()["error_code"]) == (403, "approval_required")


@pytest.mark.parametrize("name", ["nobody", "!!"])
async def test_a_run_of_what_is_not_there_is_on_record(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.post(f"/tools/{name}/run", json={})
    assert (answer.status_code, answer.json()["code"]) == (404, "tool_not_found")
    runs = (await client.get("/audit", params={"tool": name})).json()
    assert [event["outcome"] for event in runs] == ["failed", "attempt"]


async def test_the_audit_has_every_write_and_run(client: httpx.AsyncClient) -> None:
    await create(client, python_tool("shout", input=TEXT_IN))
    await client.put("/tools/shout", json={"tool_type": "x"})
    await client.post("/tools/shout/run", json={"arguments": {"text": "x"}})
    await client.put("/tools/shout", json={"nonsense": 1})
    await client.delete("/tools/shout")
    events = (await client.get("/audit")).json()
    seen = [(event["action"], event["outcome"]) for event in reversed(events)]
    assert seen == [
        ("create", "attempt"), ("create", "done"), ("update", "attempt"), ("update", "done"),
        ("run", "attempt"), ("run", "done"), ("update", "attempt"), ("update", "failed"),
        ("delete", "attempt"), ("delete", "done"),
    ]  # fmt: skip
    assert {event["principal"] for event in events} == {"local"}
    only = (await client.get("/audit", params={"action": "run", "limit": 1})).json()
    assert [(event["action"], event["outcome"]) for event in only] == [("run", "done")]
    assert (await client.get("/audit?since=nan")).status_code == 400


async def test_metrics_count(client: httpx.AsyncClient) -> None:
    await create(client, {"tool_id": "a"})
    await client.get("/tools/a")
    await client.get("/tools/b")
    await client.get("/nowhere")
    text = (await client.get("/metrics")).text
    assert 'toolcrib_http_requests_total{method="GET",route="/tools/{tool_id}",status="200"} 1.0' in text
    assert 'toolcrib_http_requests_total{method="GET",route="/tools/{tool_id}",status="404"} 1.0' in text
    assert 'toolcrib_http_requests_total{method="-",route="-",status="404"} 1.0' in text
    assert "toolcrib_outbox_waiting 0.0" in text


async def test_not_ready_without_its_store(client: httpx.AsyncClient) -> None:
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    system_of(client).catalogue.store.close()

    async def not_ready() -> bool:
        return (await client.get("/readyz")).status_code == 503

    await until(not_ready)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
    assert "retry-after" in answer.headers
    assert (await client.get("/healthz")).status_code == 200
    assert (await client.get("/tools/a")).status_code == 503


async def test_being_asked_whether_it_is_ready_leaves_nothing_behind(serve: Serve, settings: Settings) -> None:
    client = await serve(settings)
    service = Readiness(readiness_parts(system_of(client)), remembered=0.0)
    await service.problem()
    before = {path: path.stat().st_size for path in settings.data_folder.rglob("*") if not path.name.endswith("-wal")}
    for _ in range(20):
        assert await service.problem() is None
    after = {path: path.stat().st_size for path in settings.data_folder.rglob("*") if not path.name.endswith("-wal")}
    assert after == before
    assert (await client.get("/audit")).json() == []


async def test_so_many_uploads_at_once_and_the_others_wait(serve: Serve, settings: Settings) -> None:
    client = await serve(settings.with_changes("test", max_uploads=1))
    go = asyncio.Event()
    form = {"content-type": "multipart/form-data; boundary=b"}
    whole = b'--b\r\ncontent-disposition: form-data; name="file"\r\n\r\n' + bundle() + b"\r\n--b--\r\n"

    async def slow() -> AsyncIterator[bytes]:
        yield whole[:100]
        await go.wait()
        yield whole[100:]

    def waiting() -> int:
        return len(list(settings.spool.glob("upload-*")))

    first = asyncio.create_task(client.post("/tools/upload", content=slow(), headers=form))
    await until(waiting)
    second = asyncio.create_task(client.post("/tools/upload?replace=true", content=whole, headers=form))
    for _ in range(20):
        await asyncio.sleep(0)
    assert waiting() == 1
    go.set()
    assert [answer.status_code for answer in await asyncio.gather(first, second)] == [200, 200]
    assert waiting() == 0


async def test_two_services_on_one_database_never_show_old_answers(serve: Serve, settings: Settings) -> None:
    one, other = await serve(settings), await serve(settings)
    await create(one, {"tool_id": "a", "tool_type": "0"})
    for number in range(30):
        writer, reader = (one, other) if number % 2 else (other, one)
        for client in (one, other):
            await client.get("/tools/a")
        assert (await writer.put("/tools/a", json={"tool_type": str(number)})).status_code == 200
        assert (await reader.get("/tools/a")).json()["tool_type"] == str(number)
        assert (await writer.get("/tools/a")).json()["tool_type"] == str(number)
    await one.delete("/tools/a")
    assert (await other.get("/tools/a")).status_code == 404


async def test_rendered_answers_are_bounded(serve: Serve, settings: Settings) -> None:
    client = await serve(settings)
    for number in range(20):
        await create(client, {"tool_id": f"t{number}", "tool_man_page_doc": "x" * 1000})
    catalogue = system_of(client).catalogue
    rendered = RenderedEntries(catalogue, 10_000)
    for _ in range(3):
        for number in range(20):
            body = rendered.get(catalogue, f"t{number}")[0]
            assert f'"tool_id":"t{number}"'.encode() in body
            assert 1000 < rendered.kept_bytes <= 10_000


async def test_a_turn_of_the_loop_asks_the_store_once_and_the_next_one_again(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = system_of(client).catalogue
    catalogue.publish({"name": "a", "description": "one"})
    asked: list[object] = []
    generation = catalogue.store.generation

    def counted() -> object:
        asked.append(generation())
        return asked[-1]

    monkeypatch.setattr(catalogue.store, "generation", counted)
    rendered = RenderedEntries(catalogue)
    for number in range(5):
        await asyncio.sleep(0)
        for _ in range(10):
            rendered.get(catalogue, "a")
        assert len(asked) == number + 1
    for number in range(5):
        catalogue.update("a", description=f"changed {number}")
        await asyncio.sleep(0)
        assert f"changed {number}".encode() in rendered.get(catalogue, "a")[0]


async def test_code_in_s3_is_handed_out_by_a_presigned_address(
    serve: Serve, settings: Settings, s3_server: S3Server
) -> None:
    bucket = s3_server.create_bucket()
    client = await serve(
        settings.with_changes(
            "test",
            blobs=f"s3://{bucket}?endpoint={s3_server.endpoint}",
            s3_access_key_id=s3_server.access_key,
            s3_secret_access_key=s3_server.secret_key,
        )
    )
    assert (await client.post("/tools/upload", files={"file": bundle()})).status_code == 200
    link = (await client.get("/tools/tool-123")).json()["tool_source_code_link"]
    assert link.startswith("http://127.0.0.1:8000/bundles/")
    for path in (link, "/tools/tool-123/tool.zip"):
        answer = await client.get(path)
        assert answer.status_code == 307
        presigned = answer.headers["location"]
        assert presigned.startswith(s3_server.endpoint)
        assert httpx.get(presigned, timeout=PATIENCE).content == code_zip()
        assert httpx.get(presigned[:-4] + "0000", timeout=PATIENCE).status_code == 403
    await client.delete("/tools/tool-123")
    for path in (link, "/tools/tool-123/tool.zip"):
        assert (await client.get(path)).status_code == 404
    system = system_of(client)
    for graces in (2, 4):
        collect(system.blobs, system.store, clock=partial(add, time(), graces * GRACE_SECONDS))
    assert httpx.get(presigned, timeout=PATIENCE).status_code == 404, "the code is gone"


async def test_a_missing_bucket_is_not_a_missing_tool(serve: Serve, settings: Settings, s3_server: S3Server) -> None:
    client = await serve(
        settings.with_changes(
            "test",
            blobs=f"s3://nobody-made-this-either?endpoint={s3_server.endpoint}",
            s3_access_key_id=s3_server.access_key,
            s3_secret_access_key=s3_server.secret_key,
        )
    )
    answer = await client.post("/tools/upload", files={"file": bundle()})
    assert answer.status_code == 503
    assert "'s3://nobody-made-this-either' does not exist; create it" in answer.json()["detail"]
    assert (await client.get("/tools/tool-123")).status_code == 404
