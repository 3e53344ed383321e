"""One way for every request: the same answers whether requests are logged, traced or neither."""

import logging
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from tests.support.s3 import S3Server
from tests.surfaces.conftest import Serve, system_of

from toolcrib.settings import Settings
from toolcrib.surfaces.http.help import help_routes


@pytest.fixture(params=["plain", "logged", "traced"])
async def client(request: pytest.FixtureRequest, serve: Serve, settings: Settings) -> httpx.AsyncClient:
    options: dict[str, Any] = {"tracer": trace.NoOpTracer()} if request.param == "traced" else {}
    return await serve(settings.with_changes("test", log_requests=request.param == "logged"), **options)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_what_the_caller_has_is_not_sent_again(client: httpx.AsyncClient, method: str) -> None:
    await client.post("/tools", json={"tool_id": "a"})
    etag = (await client.get("/tools/a")).headers["etag"]
    for tags in ("*", etag, f"W/{etag}", f'"x", {etag}', f'W/"x" ,W/{etag}', f" {etag} "):
        answer = await client.request(method, "/tools/a", headers={"if-none-match": tags})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag), tags
    for tags in ('"x"', 'W/"x", "y"', etag.strip('"')):
        answer = await client.request(method, "/tools/a", headers={"if-none-match": tags})
        assert (answer.status_code, answer.headers["etag"]) == (200, etag), tags


@pytest.mark.parametrize("name", ["a b", ".hidden", "$where", "a%00b", "%F0%9F%94%A7", "a" * 200, "-"])
async def test_a_name_that_no_tool_can_have_is_not_found_by_reading(client: httpx.AsyncClient, name: str) -> None:
    for below in ("", "/history", "/definition", "/compatible", "/tool.zip", "/history/1"):
        answer = await client.get(f"/tools/{name}{below}")
        assert (answer.status_code, answer.json()["code"]) == (404, "tool_not_found"), below
        assert (await client.head(f"/tools/{name}{below}")).status_code == 404
    for method in ("PUT", "DELETE"):
        answer = await client.request(method, f"/tools/{name}", json={})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_name"), method


async def test_a_method_that_a_path_has_not(client: httpx.AsyncClient) -> None:
    for path, ways in {
        "/tools": "GET, HEAD, POST",
        "/tools/a": "DELETE, GET, HEAD, PUT",
        "/tools/upload": "DELETE, GET, HEAD, POST, PUT",
        "/tools/search": "DELETE, GET, HEAD, PUT",
        "/healthz": "GET, HEAD",
        "/graphql": "GET, HEAD, POST",
    }.items():
        answer = await client.patch(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, ways), path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "method_not_allowed"


async def test_a_tool_may_be_called_upload(client: httpx.AsyncClient) -> None:
    missing = await client.get("/tools/upload")
    assert (missing.status_code, missing.json()["code"]) == (404, "tool_not_found")
    await client.post("/tools", json={"tool_id": "upload", "tool_type": "x"})
    assert (await client.get("/tools/upload")).json()["tool_type"] == "x"
    assert (await client.post("/tools/upload")).status_code == 400


async def test_every_answer_is_marked(client: httpx.AsyncClient) -> None:
    for path in ("/tools/none", "/tools", "/", "/nowhere", "/help"):
        answer = await client.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff", path


async def test_a_defect_is_answered_and_logged_once(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    store = system_of(client).catalogue.store
    monkeypatch.setattr(type(store), "get", broken)
    with caplog.at_level(logging.ERROR):
        answer = await client.get("/tools/a")
    assert (answer.status_code, answer.json()["code"]) == (500, "error")
    assert "secret" not in answer.text
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


# Help


@pytest.fixture
async def helped(serve: Serve, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    async def client_of(site: Path) -> httpx.AsyncClient:
        monkeypatch.setattr("toolcrib.surfaces.service.help_routes", lambda: help_routes(site))
        return await serve(settings.with_changes("test", auth="required"))

    return client_of


async def test_help(helped: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    built = await helped(site)
    for path in ("/help/", "/help/guides/"):
        answer = await built.get(path)
        assert answer.status_code == 404
        assert "make docs" in answer.json()["detail"]
    (site / "guides").mkdir(parents=True)
    (site / "index.html").write_text("<title>Toolcrib</title>")
    (site / "guides" / "index.html").write_text("guides")
    (tmp_path / "secret").write_text("x")
    assert (await built.get("/help")).headers["location"] == "/help/"
    assert "Toolcrib" in (await built.get("/help/")).text
    assert (await built.get("/help/guides/")).text == "guides"
    for path in ("/help/nothing", "/help/../secret", "/help/%2e%2e/secret"):
        answer = await built.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "no_such_path")
    assert (await built.post("/help/")).headers["allow"] == "GET, HEAD"


# Ready


@pytest.mark.parametrize(
    ("bucket", "secret", "code", "said"),
    [
        ("missing-bucket", "", "storage_missing", "missing-bucket"),
        ("", "wrong", "storage_refused", "SECRET_ACCESS_KEY"),
    ],
    ids=["no bucket", "wrong keys"],
)
async def test_what_is_wrong_with_the_bucket_is_told_apart(
    bucket: str, secret: str, code: str, said: str, serve: Serve, settings: Settings, s3_server: S3Server
) -> None:
    client = await serve(
        settings.with_changes(
            "test",
            blobs=f"s3://{bucket or s3_server.create_bucket()}?endpoint={s3_server.endpoint}",
            s3_access_key_id=s3_server.access_key,
            s3_secret_access_key=secret or s3_server.secret_key,
        )
    )
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, code)
    assert said in answer.json()["detail"]
