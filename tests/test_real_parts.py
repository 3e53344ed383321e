"""The parts the other tests lean on are real, and behave as the tests assume."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PreconditionError
from playwright.async_api import async_playwright
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.support import s3
from tests.support.mongo import MongoCluster
from tests.support.processes import Program, wait_for
from tests.support.waiting import PATIENCE, wait_until

Documents = MongoClient[dict[str, object]]


def test_mongo_has_transactions(mongo_url: str) -> None:
    with Documents(mongo_url) as client, client.start_session() as session:
        tools = client.parts.tools
        with session.start_transaction():
            tools.insert_one({"_id": "kept"}, session=session)
        with session.start_transaction():
            tools.insert_one({"_id": "undone"}, session=session)
            session.abort_transaction()
        assert [tool["_id"] for tool in tools.find()] == ["kept"]


def test_each_mongo_test_has_its_own_database(mongo_database_url: str) -> None:
    with Documents(mongo_database_url) as client:
        assert client.get_default_database().list_collection_names() == []


@pytest.mark.timeout(180)
def test_a_majority_write_outlives_its_primary(mongo_cluster: MongoCluster) -> None:
    # Given a time, the driver tries as often as it takes; otherwise twice, and a new primary may step down at once.
    with Documents(mongo_cluster.url, w="majority", timeoutMS=60_000) as client:
        client.parts.tools.insert_one({"_id": "before"})
        dead = mongo_cluster.kill_primary()
        client.parts.tools.insert_one({"_id": "after"})
        assert mongo_cluster.wait_for_primary() != dead
        assert client.parts.tools.count_documents({}) == 2
    mongo_cluster.heal()
    with Documents("127.0.0.1", mongo_cluster.ports[dead], directConnection=True) as rejoined:
        tools = rejoined.parts.get_collection("tools")
        assert wait_for(lambda: tools.count_documents({}) == 2, swallow=(PyMongoError,))


async def test_chromium_opens_a_page(chromium_path: str) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium_path, args=["--no-sandbox"], timeout=PATIENCE * 1000
        )
        page = await browser.new_page()
        await page.goto("data:text/html,<h1>Toolcrib</h1>")
        assert await page.inner_text("h1") == "Toolcrib"
        await browser.close()


@pytest.fixture(scope="module", params=["ceph", "seaweedfs"])
def each_s3_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.S3Server]:
    if request.param not in s3.available_kinds():
        pytest.skip(f"{request.param} is not installed")
    with s3.s3_server(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


def test_s3_keeps_what_is_put(each_s3_server: s3.S3Server) -> None:
    store = each_s3_server.store(each_s3_server.create_bucket())
    obstore.put(store, "folder/bundle", b"contents")
    assert bytes(obstore.get(store, "folder/bundle").bytes()) == b"contents"
    assert [entry["path"] for entry in obstore.list(store).collect()] == ["folder/bundle"]
    obstore.delete(store, "folder/bundle")
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "folder/bundle")


def test_s3_refuses_a_second_create(each_s3_server: s3.S3Server) -> None:
    store = each_s3_server.store(each_s3_server.create_bucket())
    obstore.put(store, "bundle", b"first", mode="create")
    with pytest.raises((AlreadyExistsError, PreconditionError)):
        obstore.put(store, "bundle", b"second", mode="create")
    assert bytes(obstore.get(store, "bundle").bytes()) == b"first"


def test_s3_replaces_only_the_version_it_is_told(each_s3_server: s3.S3Server) -> None:
    store = each_s3_server.store(each_s3_server.create_bucket())
    first = obstore.put(store, "bundle", b"first")["e_tag"]
    bare = first.strip('"') if first else None
    obstore.put(store, "bundle", b"second", mode={"e_tag": bare})
    with pytest.raises(PreconditionError):
        obstore.put(store, "bundle", b"third", mode={"e_tag": bare})
    assert bytes(obstore.get(store, "bundle").bytes()) == b"second"


def test_s3_presigned_urls_hold_only_for_what_they_sign(each_s3_server: s3.S3Server) -> None:
    store = each_s3_server.store(each_s3_server.create_bucket())
    obstore.put(store, "bundle", b"contents")
    obstore.put(store, "secret", b"other")
    url = obstore.sign(store, "GET", "bundle", timedelta(minutes=1))
    assert _fetch(url) == (200, b"contents")
    assert _fetch(url.replace("/bundle?", "/secret?"))[0] == 403
    brief = obstore.sign(store, "GET", "bundle", timedelta(seconds=1))
    wait_until(lambda: _fetch(brief)[0] == 403)


def test_a_program_that_ends_at_once_is_an_error_with_its_log(tmp_path: Path) -> None:
    program = Program(["sh", "-c", "echo no such disk; exit 1"], tmp_path / "log")
    with pytest.raises(RuntimeError, match="no such disk"):
        wait_for(lambda: False, program)


def _fetch(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, b""
