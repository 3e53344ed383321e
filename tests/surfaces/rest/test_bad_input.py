"""Whatever is sent, the answer is a problem that says what was wrong, and never a 500."""

import asyncio
import io
import json
import struct
import zipfile
from typing import Any

import httpx
import pytest
from tests.surfaces.conftest import Serve
from tests.surfaces.http.bundles import SPEC, bundle, code_zip, zipped

from toolcrib.settings import Settings
from toolcrib.surfaces.http.bodies import Limits

PROBLEM = {"type", "title", "status", "detail", "code"}


def check(answer: httpx.Response, *statuses: int) -> dict[str, Any]:
    assert answer.status_code in statuses, (answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem.keys() >= PROBLEM
    assert problem["status"] == answer.status_code
    assert len(answer.content) < 3000
    return problem


async def upload(client: httpx.AsyncClient, content: bytes) -> httpx.Response:
    return await client.post("/tools/upload", files={"file": ("bundle.zip", content)})


BAD_IDS = [
    "../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f", "a" * 5000, "a b", "a%00b", "%ff%fe", ".hidden",
    "a%0d%0aset-cookie: x", "tool\u00e9", "%F0%9F%94%A7", "a?b=c", "-", "$where", "<script>",
]  # fmt: skip


async def test_bad_ids(client: httpx.AsyncClient) -> None:
    for name in BAD_IDS:
        for suffix in ("", "/history", "/run", "/definition", "/tool.zip", "/compatible", "/restore"):
            url = httpx.URL(f"http://127.0.0.1:8000/tools/{name}{suffix}")
            for method in ("GET", "PUT", "DELETE", "POST"):
                check(await client.request(method, url, json={}), 400, 404, 405)


async def test_what_is_not_a_bundle(client: httpx.AsyncClient) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("spec.json", json.dumps(SPEC))
        archive.writestr("tool.md", "x")
        archive.writestr("tool.zip", b"\0" * 50_000_000)
    cases = {
        "empty": b"",
        "no zip": b"this is not a zip",
        "half a zip": bundle()[: len(bundle()) // 2],
        "no members": zipped({}),
        "no spec": zipped({"tool.zip": code_zip(), "tool.md": b""}),
        "no code": zipped({"spec.json": b"{}", "tool.md": b""}),
        "no manual": zipped({"spec.json": b"{}", "tool.zip": code_zip()}),
        "spec no json": zipped({"spec.json": b"{", "tool.zip": code_zip(), "tool.md": b""}),
        "spec a list": zipped({"spec.json": b"[]", "tool.zip": code_zip(), "tool.md": b""}),
        "code no zip": bundle(code=b"nothing"),
        "manual no text": zipped({"spec.json": b"{}", "tool.zip": code_zip(), "tool.md": b"\xff\xfe\xff"}),
        "escape": zipped({"../../evil": b"x", "spec.json": b"{}", "tool.zip": code_zip(), "tool.md": b""}),
        "escape inside": bundle(code=zipped({"../../evil": b"x"})),
        "absolute": bundle(code=zipped({"/etc/cron.d/evil": b"x"})),
        "bomb": bomb.getvalue(),
        "no id": bundle({}),
        "bad id": bundle({**SPEC, "tool_id": "../x"}),
        "long id": bundle({**SPEC, "tool_id": "x" * 5000}),
        "wrong type": bundle({**SPEC, "tool_tags": "nlp"}),
        "bad schema": bundle({**SPEC, "tool_api_spec": {"input": {"type": "nonsense"}}}),
        "deep": zipped({"spec.json": b'{"a":' * 5000 + b"1" + b"}" * 5000, "tool.zip": code_zip(), "tool.md": b""}),
    }
    for what, content in cases.items():
        problem = check(await upload(client, content), 400)
        assert problem["detail"], what
    assert (await client.get("/tools")).json() == []


async def test_uploads_that_are_no_uploads(client: httpx.AsyncClient) -> None:
    post = client.post
    for no_form in (
        await post("/tools/upload"),
        await post("/tools/upload", json={}),
        await post("/tools/upload", data={"file": "bundle.zip"}),
        await post("/tools/upload", content=bundle(), headers={"content-type": "application/zip"}),
    ):
        problem = check(no_form, 400)
        assert problem["code"] == "invalid_bundle"
        assert "curl -F file=@bundle.zip" in problem["detail"]
    assert "'application/zip'" in problem["detail"]
    check(await post("/tools/upload", files={"other": b"x"}), 400)
    check(await post("/tools/upload", files=[("file", b"x"), ("file", b"y")]), 400)
    check(await post("/tools/upload", files=[(f"f{n}", b"x") for n in range(50)]), 400)
    form = {"content-type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b", b"--b\r\n", b"x" * 5000, b"--b\r\n" + b"x: " + b"y" * 20_000, b"--b--\r\n",
                 b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhalf'):  # fmt: skip
        check(await post("/tools/upload", content=body, headers=form), 400)
    check(await post("/tools/upload", content=b"", headers={"content-type": "multipart/form-data"}), 400)
    long = {"content-type": "multipart/form-data; boundary=" + "b" * 5000}
    check(await post("/tools/upload", content=b"", headers=long), 400)
    check(await post("/tools/upload?replace=perhaps", files={"file": bundle()}), 400)


async def test_an_encrypted_member_and_a_link_are_refused(client: httpx.AsyncClient) -> None:
    encrypted = bytearray(bundle())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = encrypted.find(mark)
        flags = struct.unpack_from("<H", encrypted, at + offset)[0]
        struct.pack_into("<H", encrypted, at + offset, flags | 1)
    check(await upload(client, bytes(encrypted)), 400)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("code/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    check(await upload(client, bundle(code=buffer.getvalue())), 400)


BAD_BODIES: list[bytes] = [
    b"", b"{", b"nonsense", b"\xff", b"[]", b"1", b"null", b'"x"', b"[" * 100_000, b'{"a":' * 2000 + b"1" + b"}" * 2000,
    b'{"tool_id": NaN}', b'{"tool_id": "\\ud800"}', b'{"tool_id": 1e999}',
]  # fmt: skip


@pytest.mark.parametrize("path", ["/tools", "/tools/check-compat", "/tools/a/run", "/tools/a/restore", "/graphql"])
async def test_bodies_that_are_no_objects(client: httpx.AsyncClient, path: str) -> None:
    for body in BAD_BODIES:
        answer = await client.post(path, content=body, headers={"content-type": "application/json"})
        check(answer, 400, 404)


WRONG_ENTRIES: list[dict[str, Any]] = [
    {"tool_id": 1}, {"tool_id": None}, {"tool_id": ["a"]}, {"tool_tags": "x"}, {"tool_tags": [1]},
    {"tool_metadata": []}, {"tool_metadata": "x"}, {"tool_api_spec": []}, {"tool_api_spec": {"input": 7}},
    {"tool_api_spec": {"input": {"type": "object", "properties": 3}}}, {"tool_type": 5}, {"tool_type": None},
    {"tool_search_description": {}}, {"tool_man_page_doc": 1}, {"tool_custom_actions_dsl_map": 1},
    {"default_tool_usage_credentials": "x"}, {"": 1}, {"$set": {}}, {"tool_id.x": 1},
]  # fmt: skip


async def test_wrong_values(client: httpx.AsyncClient) -> None:
    assert (await client.post("/tools", json={"tool_id": "a"})).status_code == 201
    for wrong in WRONG_ENTRIES:
        answer = await client.post("/tools", json={"tool_id": "b", **wrong})
        assert answer.status_code == 400, wrong
        check(answer, 400)
        check(await client.put("/tools/a", json=wrong), 400)
    assert [entry["tool_id"] for entry in (await client.get("/tools")).json()] == ["a"]


async def test_values_that_stores_differ_on(client: httpx.AsyncClient) -> None:
    """Accepted or refused, but whole: what comes back is what was sent."""
    for number, value in enumerate(
        [2**63, -(2**63) - 1, 1e308, 0.1, "\u0000", "\U0001f527", {"a.b": 1}, {"$x": 1}, {"": 1}]
    ):
        name = f"v{number}"
        answer = await client.post("/tools", json={"tool_id": name, "tool_metadata": {"value": value}})
        if answer.status_code == 201:
            assert (await client.get(f"/tools/{name}")).json()["tool_metadata"]["value"] == value
        else:
            check(answer, 400)


BAD_FILTERS: list[Any] = [
    {"$where": "while(true){}"}, {"a": {"$where": "1"}}, {"$expr": {}}, {"$jsonSchema": {}}, {"$text": {}},
    {"a": {"$regex": "("}}, {"a": {"$regex": "(a+)+$" * 300}}, {"a": {"$regex": "(?=x)"}}, {"a": {"$in": "x"}},
    {"a": {"$gt": {"$gt": 1}}}, {"$or": []}, {"$or": {}}, {"$and": [1]}, {"a..b": 1}, {"": 1}, {"a": {"$size": -1}},
    {"a": {"$type": "nonsense"}}, {"a": {"$in": list(range(50_000))}}, [], "x", 1, {"a": {"$bad": 1}},
    {"default_tool_usage_credentials": {"$exists": True}}, {"credentials": 1}, {"credentials.x": 1},
    {"$nor": [{"default_tool_usage_credentials.api_key": {"$regex": "^s"}}]},
]  # fmt: skip


async def test_filters_that_are_none(client: httpx.AsyncClient) -> None:
    await client.post("/tools", json={"tool_id": "a"})
    deep: Any = {"a": 1}
    for _ in range(200):
        deep = {"$and": [deep]}
    for bad in [*BAD_FILTERS, deep]:
        answer = await client.post("/tools/query/generic", json=bad)
        if bad == {"a": {"$gt": {"$gt": 1}}} and answer.status_code == 200:
            continue
        problem = check(answer, 400)
        assert problem["code"] in ("invalid_query", "bad_request")
        graph = {"query": "query($q: JSON) { tools(query: $q) { tool_id } }", "variables": {"q": bad}}
        shown = await client.post("/graphql", json=graph)
        if shown.status_code == 200:
            assert shown.json()["errors"][0]["extensions"]["code"] == "invalid_query", bad
        else:
            assert bad is deep
            check(shown, 400)
    problem = check(await client.post("/tools/query/generic", json={"$where": "1"}), 400)
    assert "$where" in problem["detail"]


async def test_missing_and_long_parameters(client: httpx.AsyncClient) -> None:
    names = {"by-type": "type", "by-tag": "tag", "by-keyword": "keyword", "by-execution-mode": "mode"}
    for path, name in {**names, "by-policy-uri": "uri"}.items():
        problem = check(await client.get(f"/tools/query/{path}"), 400)
        assert repr(name) in problem["detail"]
        check(await client.get(f"/tools/query/{path}", params={name: "x" * 2000}), 400)
        assert (await client.get(f"/tools/query/{path}", params={name: "é\u0000'\"; drop table"})).status_code in (
            200,
            400,
        )
    check(await client.get("/tools/query/by-keyword?keyword=%20"), 400)
    check(await client.get("/tools?cursor=../x"), 400)
    check(await client.get("/tools/query/by-keyword", params={"keyword": "." * 900}), 400)


async def test_bodies_over_the_limit(serve: Serve, settings: Settings) -> None:
    client = await serve(settings.with_changes("test", max_body_bytes=10_000, max_upload_bytes=50_000))
    check(await client.post("/tools", json={"tool_id": "a", "tool_man_page_doc": "x" * 20_000}), 413)
    check(await client.post("/tools/query/generic", json={"a": "x" * 20_000}), 413)
    check(await client.post("/graphql", json={"query": "x" * 20_000}), 413)
    check(await upload(client, b"x" * 100_000), 413)

    async def endless() -> Any:
        for _ in range(100):
            yield b"x" * 10_000

    undeclared = {"content-type": "application/json"}
    check(await client.post("/tools", content=endless(), headers=undeclared), 413)
    form = {"content-type": "multipart/form-data; boundary=b"}
    check(await client.post("/tools/upload", content=endless(), headers=form), 413, 400)
    assert not list((settings.data_folder / "incoming").glob("*"))


async def test_paths_and_methods_that_are_not_there(client: httpx.AsyncClient) -> None:
    check(await client.get("/nothing"), 404)
    check(await client.get("/tools/a/b/c"), 404)
    wrong = await client.patch("/tools/a")
    check(wrong, 405)
    assert wrong.headers["allow"] == "DELETE, GET, HEAD, PUT"
    check(await client.delete("/tools"), 405)
    check(await client.request("BREW", "/tools"), 405)
    check(await client.get("/bundles/xyz/tool.zip"), 400)
    check(await client.get(f"/bundles/{'0' * 64}/tool.zip"), 404)


async def test_bodies_that_come_too_slowly(serve: Serve, settings: Settings) -> None:
    client = await serve(
        settings, limits=Limits(10_000, 10_000, json_seconds=0.3, upload_seconds=1.0, stall_seconds=0.3)
    )

    async def dripping(pause: float, begin: bytes = b" ") -> Any:
        yield begin
        while True:
            await asyncio.sleep(pause)
            yield b" "

    form = {"content-type": "multipart/form-data; boundary=b"}
    for pause in (600, 0.05):  # one that stops, and one that never ends
        problem = check(await client.post("/tools", content=dripping(pause)), 408)
        assert problem["code"] == "slow_client"
    begin = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n'
    for pause in (600, 0.1):
        check(await client.post("/tools/upload", content=dripping(pause, begin), headers=form), 408)
