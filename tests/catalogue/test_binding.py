"""From a catalogued spec to a tool that runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.receiver import Receiver
from tests.support.waiting import wait_until

from toolcrib.bootstrap import open_blobs, open_catalogue, open_store, open_system, seed_samples
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.bundles import ingest
from toolcrib.core.errors import (
    DeniedError,
    InvalidArgumentsError,
    MissingConfigError,
    SettingsError,
    ToolInUseError,
    ToolTimeoutError,
    ToolValidationError,
)
from toolcrib.core.spec import ToolSpec
from toolcrib.define import make_tool
from toolcrib.formats.bundle import bundle_link
from toolcrib.settings import Settings

PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def bound(name: str = "add", **binding: str) -> ToolSpec:
    return ToolSpec.parse({"name": name, "description": "Adds", "parameters": PARAMETERS, "binding": binding})


@pytest.fixture
def arithmetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of the user's own."""
    (tmp_path / "arithmetic_for_tests.py").write_text(
        "import os\nfrom toolcrib import BaseTool, tool\nfrom os import system as run_anything\n"
        "def plain(a: int, b: int) -> int:\n    return a + b\n"
        "@tool\ndef add(a: int, b: int) -> int:\n    'Adds.'\n    return a + b\n"
        "@tool\nasync def multiply(a: int, b: int) -> int:\n    'Multiplies.'\n    return a * b\n"
        "class Subtract(BaseTool):\n    name = 'subtract'\n    description = 'Subtracts'\n"
        "    async def execute(self, a: int, b: int) -> int:\n        return a - b\n"
        "_hidden = add\nvalue = 3\n"
        "@tool\ndef process_id(a: int, b: int) -> int:\n    'Tells it.'\n"
        "    import time\n    time.sleep(a)\n    return os.getpid()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "arithmetic_for_tests"
    sys.modules.pop("arithmetic_for_tests", None)


def open_memory(settings: Settings, **options: Any) -> Catalogue:
    return open_catalogue("memory:", settings, **options)


@pytest.mark.parametrize(("attribute", "result"), [("add", 8), ("multiply", 15), ("Subtract", 2)])
async def test_a_python_reference_runs(settings: Settings, arithmetic: str, attribute: str, result: int) -> None:
    catalogue = open_memory(settings, python_tools=[f"{arithmetic}:{attribute}"])
    catalogue.publish(bound("mine", python=f"{arithmetic}:{attribute}"))
    tool = catalogue.tool("mine")
    assert tool.spec == catalogue.get("mine")
    assert await tool.execute({"a": 5, "b": 3}) == result
    with pytest.raises(InvalidArgumentsError):
        await tool.execute({"a": 5})


async def test_the_catalogue_decides_on_isolation_and_deadline(settings: Settings, arithmetic: str) -> None:
    catalogue = open_memory(settings, python_tools=[f"{arithmetic}:process_id"])
    spec = bound(python=f"{arithmetic}:process_id").with_changes(isolation="process", timeout_seconds=60)
    catalogue.publish(spec)
    assert await catalogue.tool("add").execute({"a": 0, "b": 0}) != os.getpid()
    catalogue.publish(spec.with_changes(name="hurried", timeout_seconds=0.5))
    with pytest.raises(ToolTimeoutError) as caught:
        await catalogue.tool("hurried").execute({"a": 30, "b": 0})
    assert not caught.value.still_running


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("arithmetic_for_tests:plain", "is a plain function; put @tool on it"),
        ("arithmetic_for_tests:run_anything", "is a plain function; put @tool on it"),
        ("arithmetic_for_tests:os", "is not a tool"),
        ("arithmetic_for_tests:value", "is not a tool"),
        ("arithmetic_for_tests:nothing", "defines no tool 'nothing'"),
        ("arithmetic_for_tests.missing:x", "cannot be imported"),
    ],
)
def test_what_the_operator_lists_must_be_a_tool(
    settings: Settings, arithmetic: str, reference: str, words: str
) -> None:
    catalogue = open_memory(settings, python_tools=[reference])
    catalogue.publish(bound(python=reference))
    with pytest.raises(ToolValidationError, match=words):
        catalogue.tool("add")


@pytest.mark.parametrize(
    "text", ["arithmetic", "*", "arithmetic:*", "a.*:add", "a:b.c", "a:b:c", " a:b", "a:", ":b", "a-b:c"]
)
def test_the_operator_lists_each_tool_word_for_word(settings: Settings, text: str) -> None:
    for catalogue in (
        lambda: open_memory(settings, python_tools=[text]),
        lambda: open_memory(settings.with_changes("test", python_tools=[text])),
    ):
        with pytest.raises(SettingsError, match="write each tool word for word, as 'package.module:attribute'"):
            catalogue()


def test_without_permission_nothing_is_imported(settings: Settings, arithmetic: str) -> None:
    catalogue = open_memory(settings)
    catalogue.publish(bound(python=f"{arithmetic}:add"))
    with pytest.raises(DeniedError):
        catalogue.tool("add")
    assert arithmetic not in sys.modules


async def test_the_settings_list_tools(settings: Settings, arithmetic: str) -> None:
    catalogue = open_memory(settings.with_changes("test", python_tools=[f"{arithmetic}:add"]))
    catalogue.publish(bound(python=f"{arithmetic}:add"))
    assert await catalogue.tool("add").execute({"a": 1, "b": 2}) == 3


async def test_a_system_function_runs(settings: Settings) -> None:
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    catalogue = open_memory(settings, functions={"math.add": add})
    catalogue.publish_many([bound(system_function_rpc_id="math.add"), bound("lost", system_function_rpc_id="math.ad")])
    assert await catalogue.tool("add").execute({"a": 1, "b": 2}) == 3
    with pytest.raises(MissingConfigError, match=r"did you mean 'math\.add'"):
        catalogue.tool("lost")


async def test_a_service_is_called_with_its_credentials(settings: Settings) -> None:
    receiver = Receiver()
    receiver.answer = lambda request: (200, {}, json.dumps(sum(json.loads(request.body).values())).encode())
    catalogue = open_memory(settings.with_changes("test", allowed_addresses=["127.0.0.1"]))
    catalogue.publish(bound(service_url=receiver.url).with_changes(credentials={"bearer_token": "hunter2"}))
    tool = catalogue.tool("add")
    assert "hunter2" not in str(tool.spec.to_dict())
    assert await tool.execute({"a": 1, "b": 2}) == 3
    assert receiver.received[0].headers["authorization"] == "Bearer hunter2"
    catalogue.close()
    receiver.stop()


async def test_a_service_at_an_internal_address_is_not_called(settings: Settings) -> None:
    catalogue = open_memory(settings)
    catalogue.publish(bound(service_url="http://127.0.0.1:9/"))
    with pytest.raises(DeniedError, match="not a public address"):
        await catalogue.tool("add").execute({"a": 1, "b": 2})
    catalogue.close()


async def test_an_uploaded_bundle_runs_and_goes(settings: Settings, tmp_path: Path) -> None:
    import io
    import zipfile

    code, bundle = io.BytesIO(), tmp_path / "bundle.zip"
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr(
            "code/function.py",
            "class AgentSpaceV1Tool:\n    def __init__(self, tool_id, tool_data):\n        pass\n"
            "    def execute(self, input_data):\n        return {'sum': input_data['a'] + input_data['b']}\n",
        )
    entry = {"tool_id": "sum", "tool_api_spec": {"input": PARAMETERS, "output": {"type": "object"}}}
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("spec.json", json.dumps(entry))
        archive.writestr("tool.md", "# Sum")
        archive.writestr("tool.zip", code.getvalue())
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", settings)
    blobs = open_blobs(settings)
    ingest(bundle, blobs=blobs, catalogue=catalogue, link_for=lambda digest: bundle_link("http://x", digest))
    assert await catalogue.tool("sum").execute({"a": 1, "b": 2}) == {"sum": 3}
    assert list((settings.data_folder / "unpacked").iterdir())
    catalogue.delete("sum")
    assert len(list(blobs.keys("sha256"))) == 1  # the code is the collector's
    refusing = settings.with_changes("test", run_bundles=False)
    catalogue.restore("sum", 1)
    catalogue.close()
    with open_system(settings) as system:  # what was in use when the tool was deleted is swept when it is not
        wait_until(lambda: system.unpacked.sweep(set()) or not list((settings.data_folder / "unpacked").iterdir()))
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", refusing)
    with pytest.raises(DeniedError, match="bundles do not run here"):
        catalogue.tool("sum")
    catalogue.close()


def test_a_tool_that_is_only_described_cannot_run(settings: Settings) -> None:
    catalogue = open_memory(settings)
    catalogue.publish(bound())
    with pytest.raises(ToolValidationError, match="'add' cannot run"):
        catalogue.tool("add")


async def test_a_changed_tool_is_bound_anew(settings: Settings) -> None:
    functions = {
        "one": make_tool(lambda a, b: a, name="one", description="a"),
        "two": make_tool(lambda a, b: b, name="two", description="b"),
    }
    catalogue = open_memory(settings, functions=functions)
    catalogue.publish(bound(system_function_rpc_id="one"))
    first = catalogue.tool("add")
    assert catalogue.tool("add") is first
    catalogue.update("add", binding={"system_function_rpc_id": "two"})
    assert await catalogue.tool("add").execute({"a": 1, "b": 2}) == 2


def test_the_samples_fill_an_empty_catalogue(settings: Settings, tmp_path: Path) -> None:
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", settings)
    assert seed_samples(catalogue) == len(catalogue) > 60
    assert seed_samples(catalogue) == 0
    assert catalogue.get("playwright").tool_type == "browser"
    assert "goto" in [hit.spec.name for hit in catalogue.search("open a page in the browser", limit=30)]
    assert catalogue.tool("goto").spec == catalogue.get("goto")
    catalogue.close()


def test_a_description_cannot_make_code_safer_than_it_is(settings: Settings) -> None:
    catalogue = open_memory(settings)
    catalogue.publish(bound(python="evaluate_javascript"))
    assert catalogue.get("add").safety_level == "safe"
    assert catalogue.tool("add").spec.safety_level > "safe"


def test_a_pipeline_keeps_the_tools_it_is_made_of(settings: Settings) -> None:
    from toolcrib.toolsets.scraping import make_pipeline

    catalogue = open_memory(settings)
    seed_samples(catalogue)
    made = make_pipeline("httpx", ("parsel", {"selectors": {"title": "title"}}), name="read-pages")
    catalogue.publish(made.as_tool())
    with pytest.raises(ToolInUseError) as caught:
        catalogue.delete("httpx")
    assert caught.value.users == ("read-pages",)


# Addresses


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://x", "use memory:, json:///path, sqlite:///path, mongodb://host/database"),
        ("tools.db", "not the address of a store"),
        ("sqlite://tools.db", "names no file; write sqlite:///path for one from here, sqlite:////path"),
        ("json:///", "names no file"),
        ("sqlite:///folder/", "names no file"),
        ("sqlite:///:memory:", "the store in memory is 'memory:'"),
        ("json:///tools.json#1", "names no file"),
    ],
)
def test_an_address_that_is_none_is_told(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        open_store(url)


def test_importing_toolcrib_imports_no_backend() -> None:
    import subprocess

    program = (
        "import sys, toolcrib.bootstrap as b; b.open_catalogue('memory:').close(); "
        "names = ('pymongo', 'cryptography', 'httpcore', 'obstore', 'cedarpy', 'starlette'); "
        "print([name for name in names if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
