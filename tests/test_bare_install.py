"""The core works without a single extra, and what needs one says which `pip install` brings it."""

import subprocess
import sys

import pytest

BARE = """
import importlib.metadata, re, sys

NEEDED = {
    "cloudpickle", "docstring-parser", "filelock", "google-re2", "idna", "jsonschema-rs", "pydantic",
    "pydantic-settings", "python-dotenv",
}

def closure(names):
    found = set()
    todo = [re.sub(r"[-_.]+", "-", name).lower() for name in names]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        for line in importlib.metadata.requires(name) or ():
            if "extra ==" not in line:
                todo.append(re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9_.-]+", line)[0]).lower())
    return found

allowed = closure(NEEDED)
packages = importlib.metadata.packages_distributions()
blocked = {
    module for module, owners in packages.items()
    if not any(re.sub(r"[-_.]+", "-", owner).lower() in allowed | {"toolcrib"} for owner in owners)
}

class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Bare())
"""


def run_bare(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BARE + program], capture_output=True, text=True, timeout=60, check=False
    )


def test_define_register_run_and_keep_need_no_extra() -> None:
    answer = run_bare(
        """
import asyncio, tempfile
from toolcrib import ToolRegistry, open_catalogue, tool

@tool(timeout_seconds=60)
def add(a: int, b: int = 1) -> int:
    '''Add.

    Args:
        a: One.
    '''
    return a + b

registry = ToolRegistry([add])
print(asyncio.run(registry.execute("add", {"a": 2})).data)
print(registry.definitions("anthropic")[0]["name"], registry.generate_prompt()[:16])
with tempfile.TemporaryDirectory() as folder:
    for url in ("memory:", f"json:///{folder}/tools.json", f"sqlite:///{folder}/tools.db"):
        catalogue = open_catalogue(url)
        catalogue.publish(add.spec)
        print(catalogue.get("add").name, [hit.spec.name for hit in catalogue.search("add")])
        catalogue.close()
"""
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split("\n")[:2] == ["3", "add Available Tools:"]
    assert answer.stdout.count("add ['add']") == 3


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        ("from toolcrib.surfaces.cli import main; main()", ".[cli]"),
        ("from toolcrib import open_catalogue; open_catalogue('mongodb://127.0.0.1:9/x')", ".[mongo]"),
        (
            "from toolcrib import ToolRegistry, tool\n@tool\ndef f(): 'F.'\nToolRegistry([f]).to_langchain_tools()",
            ".[langchain]",
        ),
        ("from toolcrib import ToolRegistry\nToolRegistry().to_pydantic_ai()", ".[pydantic-ai]"),
        ("from toolcrib import ToolRegistry\nToolRegistry().to_openai_agents()", ".[openai-agents]"),
        ("from toolcrib import ToolRegistry\nToolRegistry().add_llama_index([])", ".[llama-index]"),
    ],
)
def test_what_is_missing_is_named_with_its_install_line(program: str, extra: str) -> None:
    answer = run_bare(program)
    assert answer.returncode != 0
    assert f"pip install '{extra}'" in answer.stderr
