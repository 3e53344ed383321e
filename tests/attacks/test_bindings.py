"""Row 1 of the attack: whoever publishes chooses among what the operator allows, and adds nothing to it."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pkgutil
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.attacks.conftest import Attacked
from tests.support.receiver import receiving
from tests.surfaces.http.bundles import bundle

import toolcrib
from toolcrib import BaseTool, SafetyLevel, Tool, ToolContext, ToolSpec, tool
from toolcrib.bootstrap import open_catalogue, sample_specs
from toolcrib.bootstrap.binding import Binder
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import (
    DeniedError,
    MissingConfigError,
    ToolcribError,
    ToolTimeoutError,
    ToolValidationError,
)
from toolcrib.core.result import ToolResult
from toolcrib.settings import Settings
from toolcrib.toolsets.scraping import BRICKS

ANYTHING = {"type": "object", "additionalProperties": True}
SHIPPED = "toolcrib.toolsets"
BEFORE = "toolcrib.toolsets.browser.standalone"
REPRODUCED = {
    f"{SHIPPED}.scraping.rows:append": {"path": "{victim}", "data": "owned"},
    f"{SHIPPED}.scraping.textfiles:cut_short": {"path": "{victim}"},
    f"{SHIPPED}.scraping.textfiles:read_json_lines": {"path": "{victim}"},
    f"{BEFORE}:configure": {"chromium": "{victim}"},
    f"{BEFORE}:standalone_tool": {"name": "goto", "chromium": "{victim}"},
    f"{SHIPPED}.browser.folders:for_writing": {"folder": "/", "name": "{victim}"},
    "toolcrib.adapters.files:replace_file": {"path": "{victim}", "content": "owned"},
    "os:system": {"command": "rm {victim}"},
}
"""What the issue names, and its like: a reference, and arguments that would harm the victim's file."""
CONTENT = '{"secret": "of the service"}\nwithout an end'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=str(tmp_path / "data"), store="memory:")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim.jsonl"
    path.write_text(CONTENT)
    return path


def spec(name: str = "harmless", **fields: Any) -> ToolSpec:
    return ToolSpec.parse({"name": name, "description": "Harmless.", "parameters": ANYTHING, **fields})


def aimed_at(victim: Path, arguments: dict[str, str]) -> dict[str, str]:
    return {key: value.replace("{victim}", str(victim)) for key, value in arguments.items()}


def opened(settings: Settings, **options: Any) -> closing[Catalogue]:
    return closing(open_catalogue(settings=settings, **options))


async def called(catalogue: Catalogue, name: str, arguments: dict[str, Any]) -> ToolResult:
    return await Calls(catalogue.tool, SafetyLevel.DANGEROUS).execute(name, arguments)


# References


@pytest.mark.parametrize("isolation", ["", "inline", "process"])
@pytest.mark.parametrize("reference", REPRODUCED)
async def test_no_function_of_ours_runs(settings: Settings, victim: Path, reference: str, isolation: str) -> None:
    with opened(settings) as catalogue:
        catalogue.publish(spec(binding={"python": reference}, isolation=isolation))
        result = await called(catalogue, "harmless", aimed_at(victim, REPRODUCED[reference]))
    assert not result.success
    assert result.error_code in {"denied", "invalid_tool"}
    assert "owned" not in str(result.data)
    assert victim.read_text(encoding="utf-8") == CONTENT


def every_reference() -> Iterator[str]:
    """Each name of each module that comes with Toolcrib."""
    yield from (f"toolcrib:{name}" for name in vars(toolcrib))
    for module in pkgutil.walk_packages(toolcrib.__path__, "toolcrib."):
        if not module.name.endswith("__main__"):
            yield from (f"{module.name}:{name}" for name in vars(importlib.import_module(module.name)))


def test_nothing_below_toolcrib_can_be_named_but_shipped_tools(settings: Settings) -> None:
    shipped = {each.name for each in sample_specs() if each.binding.python}
    with opened(settings) as catalogue:
        binder = Binder(settings, lambda: None, {}, ())  # type: ignore[arg-type,return-value]
        references = sorted(set(every_reference()) | {f"{BEFORE}:{name}" for name in shipped})
        assert len(references) > 2000
        for reference in references:
            if reference in {f"{BEFORE}:{name}" for name in shipped}:
                assert binder(spec(binding={"python": reference})).spec.name == "harmless"
                continue
            with pytest.raises((DeniedError, ToolValidationError)):
                binder(spec(binding={"python": reference}))
        assert len(catalogue) == 0


@pytest.mark.parametrize(
    "name",
    [
        "os", "os.system", "toolcrib", "toolcrib.toolsets.scraping.rows", "append", "configure", "scrapy ", "Csv",
        "standalone_tool", "goto()", "goto ", " goto", "GOTO", "__class__", "definitions", "../goto", "goto\n",
        f"{BEFORE}:", f"{BEFORE}:goto:goto", f"{BEFORE}:{BEFORE}:goto", f" {BEFORE}:goto", f"{BEFORE}.goto",
        f"{SHIPPED}.browser:goto", f"{SHIPPED}.browser.tools.navigation:goto", ":goto", "goto:", ":",
    ],
)  # fmt: skip
def test_a_name_is_a_shipped_tools_own_or_nothing(settings: Settings, name: str) -> None:
    with opened(settings) as catalogue:
        catalogue.publish(spec(binding={"python": name}))
        with pytest.raises((DeniedError, ToolValidationError)) as caught:
            catalogue.tool("harmless")
        assert "\n" not in str(caught.value)


def test_samples_are_bound_by_their_names_and_records_of_the_first_release_still_run(settings: Settings) -> None:
    for each in sample_specs():
        assert each.binding.python in {"", each.name}
    with opened(settings) as catalogue:
        catalogue.publish(spec("new", binding={"python": "goto"}))
        catalogue.publish(spec("old", binding={"python": f"{BEFORE}:goto"}))
        catalogue.publish(spec("misspelt", binding={"python": "gotoo"}))
        assert catalogue.tool("new").spec.safety_level == catalogue.tool("old").spec.safety_level
        with pytest.raises(ToolValidationError, match="no tool 'gotoo' ships with Toolcrib; did you mean 'goto'"):
            catalogue.tool("misspelt")


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "allowed_for_tests.py").write_text(
        "from toolcrib import tool\nimport os\n"
        "@tool\ndef good(a: int) -> int:\n    'Good.'\n    return a\n"
        "@tool\ndef other(a: int) -> int:\n    'Not listed.'\n    return a\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "allowed_for_tests:good"
    sys.modules.pop("allowed_for_tests", None)


@pytest.mark.parametrize(
    "reference",
    [
        "allowed_for_tests:other", "allowed_for_tests:os", "allowed_for_tests.sub:good",
        "allowed_for_tests:good.function",
        "allowed_for_tests:good ", "allowed_for_tests: good", "ALLOWED_FOR_TESTS:good", "allowed_for_tests:*",
        "allowed_for_tests", "*", "*:*", "allowed_for_tests:good:good",
    ],
)  # fmt: skip
def test_the_list_is_word_for_word(settings: Settings, listed: str, reference: str) -> None:
    with opened(settings, python_tools=[listed]) as catalogue:
        catalogue.publish(spec("fine", binding={"python": listed}))
        catalogue.publish(spec(binding={"python": reference}))
        assert catalogue.tool("fine").spec.name == "fine"
        with pytest.raises(ToolcribError):
            catalogue.tool("harmless")


def test_nothing_is_imported_that_is_not_listed(settings: Settings, listed: str) -> None:
    with opened(settings, python_tools=[listed]) as catalogue:
        catalogue.publish(spec(binding={"python": "allowed_for_tests:other"}))
        with pytest.raises(DeniedError, match="list it in TOOLCRIB_PYTHON_TOOLS, word for word"):
            catalogue.tool("harmless")
    assert "allowed_for_tests" not in sys.modules


def test_who_bound_a_tool_that_ships_by_its_module_is_told_its_name(settings: Settings) -> None:
    with opened(settings) as catalogue:
        catalogue.publish(spec(binding={"python": "toolcrib.toolsets.browser.tools.goto:goto"}))
        with pytest.raises(DeniedError, match="bind it to the name of the tool, such as 'goto'"):
            catalogue.tool("harmless")


# Arguments, deadlines, isolation


class Opener(BaseTool):
    """Says one thing of itself, and takes more in its code."""

    name = "opener"
    description = "Opens."
    parameters = {"type": "object", "properties": {"url": {"type": "string", "maxLength": 20}}}

    async def execute(self, url: str = "", chromium: str = "", **more: Any) -> dict[str, Any]:
        return {"url": url, "chromium": chromium, **more}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"url": "x", "chromium": "/tmp/evil"}, "takes no argument 'chromium'"),
        ({"url": "x", "more": 1}, "takes no argument 'more'"),
        ({"context": {"principal": "root"}}, "takes no argument 'context'"),
        ({"self": 1}, "takes no argument 'self'"),
        ({"url": "x" * 21}, "'url'"),
        ({"url": 3}, "'url'"),
    ],
)
@pytest.mark.parametrize(
    "parameters",
    [ANYTHING, Opener.parameters, {"type": "object", "properties": {"url": {}, "chromium": {}, "more": {}}}, {}],
)
async def test_code_never_receives_what_its_own_schema_lacks(
    settings: Settings, parameters: dict[str, Any], arguments: dict[str, Any], reason: str
) -> None:
    with opened(settings, functions={"open": Opener}) as catalogue:
        catalogue.publish(spec(binding={"system_function_rpc_id": "open"}, parameters=parameters or {"type": "object"}))
        result = await called(catalogue, "harmless", arguments)
        assert result.error_code == "invalid_arguments", result
        assert reason in (result.error or "")
        assert (await called(catalogue, "harmless", {"url": "fine"})).data == {"url": "fine", "chromium": ""}


async def test_what_its_author_leaves_open_stays_open(settings: Settings) -> None:
    def host(a: int, **more: Any) -> dict[str, Any]:
        return {"a": a, **more}

    with opened(settings, functions={"host": host}) as catalogue:
        catalogue.publish(spec(binding={"system_function_rpc_id": "host"}))
        assert (await called(catalogue, "harmless", {"a": 1, "b": 2})).data == {"a": 1, "b": 2}


async def test_nobody_gives_a_context_as_an_argument(settings: Settings) -> None:
    @tool
    def who(context: ToolContext) -> str:
        """Who."""
        return context.principal

    with opened(settings, functions={"who": who}) as catalogue:
        catalogue.publish(spec(binding={"system_function_rpc_id": "who"}))
        assert (await called(catalogue, "harmless", {"context": {"principal": "root"}})).error_code == (
            "invalid_arguments"
        )


@pytest.mark.parametrize("extra", ["chromium", "session", "folder", "addresses", "context", "self", "start_url"])
async def test_a_description_adds_no_argument_to_a_shipped_tool(settings: Settings, extra: str) -> None:
    parameters = {"type": "object", "properties": {"url": {"type": "string"}, extra: {}}}
    with opened(settings) as catalogue:
        catalogue.publish(spec(binding={"python": "goto"}, parameters=parameters))
        result = await called(catalogue, "harmless", {"url": "https://example.com", extra: "/tmp/evil"})
    assert result.error_code == "invalid_arguments"
    assert extra in (result.error or "")


def bound_to(own: Tool, settings: Settings, **fields: Any) -> Tool:
    with opened(settings, functions={"own": own}) as catalogue:
        catalogue.publish(spec(binding={"system_function_rpc_id": "own"}, **fields))
        return catalogue.tool("harmless")


async def test_a_deadline_can_only_become_shorter(settings: Settings) -> None:
    @tool(timeout_seconds=0.05)
    async def quick() -> None:
        """Never done."""
        await asyncio.sleep(3600)

    for seconds in (None, 0.05, 86400):
        assert bound_to(quick, settings, timeout_seconds=seconds).spec.timeout_seconds == 0.05
    assert bound_to(quick, settings, timeout_seconds=0.01).spec.timeout_seconds == 0.01
    with pytest.raises(ToolTimeoutError):
        await bound_to(quick, settings, timeout_seconds=86400).execute({})


@pytest.mark.parametrize("asked", ["inline", "thread", ""])
def test_isolation_can_only_become_stronger(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """A plain function that a publisher puts inline would hold up everybody."""
    (tmp_path / "isolated_for_tests.py").write_text(
        "from toolcrib import tool\n"
        "@tool\ndef plain() -> int:\n    'Blocks.'\n    import threading\n    return threading.get_ident()\n"
        "@tool(isolation='process')\ndef apart() -> int:\n    'Is apart.'\n    import os\n    return os.getpid()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    names = {"plain": "thread", "apart": "process"}
    with opened(settings, python_tools=[f"isolated_for_tests:{name}" for name in names]) as catalogue:
        for name, own in names.items():
            catalogue.publish(spec(name, binding={"python": f"isolated_for_tests:{name}"}, isolation=asked))
            assert catalogue.tool(name).spec.isolation == (own if asked else "")
            assert asyncio.run(called(catalogue, name, {})).data not in {threading.get_ident(), os.getpid()}
    sys.modules.pop("isolated_for_tests", None)


# Files of the service, through shipped tools


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("upload_file", {"selector": "input", "files": ["{victim}"]}),
        ("load_state", {"file": "{victim}"}),
        ("save_pdf", {"file": "../{name}"}),
        ("screenshot", {"file": "{victim}"}),
        ("download_file", {"url": "https://example.com", "file": "{victim}"}),
        ("goto", {"url": "file://{victim}"}),
        ("goto", {"url": "view-source:file://{victim}"}),
    ],
)
async def test_shipped_tools_reach_no_file_of_the_service(
    settings: Settings, victim: Path, chromium_path: str, name: str, arguments: dict[str, Any]
) -> None:
    aimed = json.loads(json.dumps(arguments).replace("{victim}", str(victim)).replace("{name}", victim.name))
    with opened(settings.with_changes("test", chromium=chromium_path)) as catalogue:
        catalogue.publish(spec(binding={"python": name}))
        result = await called(catalogue, "harmless", aimed)
    assert not result.success
    assert result.error_code in {"path_denied", "domain_denied"}, result
    assert victim.read_text(encoding="utf-8") == CONTENT
    assert "of the service" not in json.dumps(result.to_dict(), default=str)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("jsonlines", {"records": [{"a": 1}], "path": "{victim}"}),
        ("jsonlines", {"records": [{"a": 1}], "path": "../../{name}"}),
        ("csv", {"records": [{"a": 1}], "path": "../../{name}"}),
        ("sqlite", {"records": [{"a": 1}], "path": "{victim}"}),
        ("parquet", {"records": [{"a": 1}], "path": "{victim}"}),
        ("proxy-list", {"url": "https://example.com", "file": "{victim}"}),
        ("playwright", {"url": "https://example.com", "executable": "{victim}"}),
        ("scraperapi", {"url": "https://example.com", "endpoint": "https://evil.example"}),
        ("anticaptcha", {"html": "<p data-sitekey='x'>", "endpoint": "https://evil.example"}),
        ("httpx", {"url": "https://example.com", "max_bytes": 10**15}),
    ],
)
async def test_bricks_that_are_called_reach_no_file_of_the_service_and_keep_what_is_the_operators(
    settings: Settings, victim: Path, name: str, arguments: dict[str, Any]
) -> None:
    aimed = json.loads(json.dumps(arguments).replace("{victim}", str(victim)).replace("{name}", victim.name))
    with opened(settings) as catalogue:
        catalogue.publish(spec(binding={"python": name}))
        result = await called(catalogue, "harmless", aimed)
    assert result.error_code in {"denied", "invalid_arguments"}, result
    assert victim.read_text(encoding="utf-8") == CONTENT
    assert "of the service" not in json.dumps(result.to_dict(), default=str)


def test_a_setting_that_names_a_file_or_a_program_is_marked_in_its_brick() -> None:
    """Without the mark whoever calls the brick as a tool would choose a file of the service, or what it starts."""
    ours = {
        "path", "file", "folder", "dir", "directory", "executable", "binary", "driver", "program", "profile",
        "endpoint", "command", "arguments",
    }  # fmt: skip
    for name, brick in BRICKS.items():
        marked = {*brick.files, *brick.private}
        assert marked <= brick.Config.model_fields.keys()
        found = {field for field in brick.Config.model_fields if ours & {*field.split("_")}}
        assert found <= marked, f"{name}: say whether {found - marked} belong to Brick.files or Brick.private"


# Commands and addresses


COMMAND = f"{shlex.quote(sys.executable)} -c pass"


@pytest.mark.parametrize(
    "target",
    [
        f" {COMMAND}", f"{COMMAND} ", f"{COMMAND} #tool", f"{COMMAND}; touch owned", f"{COMMAND} && touch owned",
        f"X=1 {COMMAND}", f"env {COMMAND}", COMMAND.replace(" -c", "  -c"), COMMAND.replace("pass", "'pass'"),
        COMMAND.replace("pass", "pass\n"), f"{COMMAND}\ttouch", COMMAND.upper(), f"{COMMAND}\n{COMMAND}",
        "touch owned", "sh -c 'touch owned'", "#" + COMMAND, "",
    ],
)  # fmt: skip
async def test_a_command_is_the_operators_word_for_word(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    listed = settings.with_changes("test", mcp_commands=[COMMAND], tool_commands=[COMMAND])
    with opened(listed) as catalogue:
        for way in ("mcp", "command"):
            catalogue.publish(spec(way, binding={way: target}))
            result = await called(catalogue, way, {})
            assert result.error_code in {"denied", "invalid_tool"}, result
    assert not (tmp_path / "owned").exists()


def spellings(port: int) -> list[str]:
    plain = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0.0.0.0", "１２７.0.0.1"]
    named = ["localhost", "LOCALHOST.", "a.localhost"]
    hosts = [*plain, *named, "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"]
    return [f"http://{host}:{port}/" for host in hosts]


async def test_no_spelling_of_an_inner_address_is_called(settings: Settings) -> None:
    with receiving() as inner, opened(settings) as catalogue:
        for url in spellings(inner.port):
            for way in ("service_url", "mcp"):
                catalogue.publish(spec(binding={way: url}), replace=True)
                assert not (await called(catalogue, "harmless", {})).success, url
        assert inner.received == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_leads_to_an_inner_address(settings: Settings, status: int) -> None:
    with receiving() as outer, receiving() as inner:
        outer.answer = lambda _: (status, {"Location": f"{inner.url}/admin"}, b"")
        allowing = settings.with_changes("test", allowed_addresses=[f"127.0.0.1:{outer.port}"])
        with opened(allowing) as catalogue:
            for way in ("service_url", "mcp"):
                catalogue.publish(spec(binding={way: outer.url}, credentials={"api_key": "hunter2"}), replace=True)
                assert not (await called(catalogue, "harmless", {})).success
        assert len(outer.received) >= 2
        assert inner.received == []


@pytest.mark.parametrize(
    "header",
    ["Host", "HOST", "host ", "Content-Length", "transfer-encoding", "Connection", "Upgrade", "Toolcrib-Principal",
     "toolcrib-principal", "Toolcrib_Principal", "content_length"],
)  # fmt: skip
@pytest.mark.parametrize("way", ["service_url", "mcp"])
async def test_a_credential_is_no_way_to_another_host_or_caller(settings: Settings, way: str, header: str) -> None:
    with receiving() as receiver:
        allowing = settings.with_changes("test", allowed_addresses=["127.0.0.1"])
        with opened(allowing) as catalogue:
            catalogue.publish(spec(binding={way: receiver.url}, credentials={"headers": {header: "internal"}}))
            result = await called(catalogue, "harmless", {})
        assert result.error_code == MissingConfigError.code, result
        assert "may not set" in (result.error or "")
        assert receiver.received == []


# Through the service


def entry(name: str, **binding: str) -> dict[str, Any]:
    return {
        "tool_id": name,
        "tool_search_description": "Harmless.",
        "tool_api_spec": {"input": ANYTHING},
        "tool_metadata": {"toolcrib": {"binding": binding}} if binding else {},
    }


def refused(answer: httpx.Response) -> None:
    result = answer.json()
    assert result["success"] is False and result["error_code"] in {"denied", "invalid_tool"}, result


def test_no_door_of_the_service_leads_around(attacked: Attacked, victim: Path) -> None:
    reference = f"{SHIPPED}.scraping.rows:append"
    attack = {"arguments": aimed_at(victim, REPRODUCED[reference])}
    attacked.service.start()
    publisher = attacked.as_role("runner,publisher")

    def run(name: str) -> httpx.Response:
        return publisher.post(f"/tools/{name}/run", json=attack)

    assert publisher.post("/tools", json=entry("posted", python=reference)).status_code == 201
    refused(run("posted"))
    assert publisher.post("/tools", json=entry("put")).status_code == 201
    changed = {"tool_metadata": {"toolcrib": {"binding": {"python": reference}}}}
    assert publisher.put("/tools/put", json=changed).is_success
    refused(run("put"))
    assert publisher.put("/tools/put", json={"tool_metadata": {}}).is_success
    assert publisher.post("/tools/put/restore", json={"version": 2}).is_success
    refused(run("put"))
    for path in ("/tools/upload", "/tools/upload?replace=true"):
        given = bundle(entry("uploaded", python=reference))
        assert publisher.post(path, files={"file": ("b.zip", given)}).is_success
        refused(run("uploaded"))
    assert publisher.post("/tools?replace=true", json=entry("uploaded", python=reference)).is_success
    refused(run("uploaded"))
    pipeline = {**entry("piped"), "tool_metadata": {"pipeline": {"steps": [{"tool": "csv", "config": attack}]}}}
    assert publisher.post("/tools", json=pipeline).status_code == 201
    refused(run("piped"))
    for question in ({"query": 'mutation { run(tool: "posted") }'}, {"query": "{ tools { tool_id run } }"}):
        assert publisher.post("/graphql", json=question).json().get("errors")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "posted", **attack}}
    answer = publisher.post("/mcp", json=message, headers={"accept": "application/json, text/event-stream"})
    assert '"isError":true' in answer.text.replace(" ", "") or "error" in answer.text
    assert victim.read_text(encoding="utf-8") == CONTENT


@pytest.mark.parametrize(
    "binding",
    [{"python": f"{SHIPPED}.scraping.rows:append"}, {"command": "touch owned"}, {"mcp": "touch owned"}],
    ids=lambda binding: next(iter(binding)),
)
async def test_an_entry_of_the_brains_file_runs_nothing_that_the_operator_does_not_list(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, binding: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tools.json"
    written: dict[str, Any] = {
        "name": "evil", "description": "d", "tool_type": "browser", "package_name": "p", "pip_install_command": "p",
        "execution_mode": "sync", "capabilities": [],
    }  # fmt: skip
    path.write_text(json.dumps([written | {"binding": binding}]))
    brain = settings.with_changes("test", store=f"brain:///{path}")
    with pytest.raises(ToolcribError, match="binding"):
        open_catalogue(settings=brain)
    path.write_text(json.dumps([written | {"metadata": {"binding": binding}}]))
    with opened(brain) as catalogue:
        assert (await called(catalogue, "evil", {})).error_code == "denied"
    assert not (tmp_path / "owned").exists()
