"""A place where bundles are run, without a service around it."""

import asyncio
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.archives import zipped
from toolcrib import Tool, ToolSpec
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.runners.bound import bound_tool
from toolcrib.adapters.runners.bundle import BundleRunner
from toolcrib.adapters.runners.sandbox import Sandbox, SandboxLimits
from toolcrib.adapters.runners.unpacking import BundleCache
from toolcrib.adapters.runners.walls import WALLS, Isolation
from toolcrib.formats.bundle import blob_key, bundle_link

FOREVER = (
    "import subprocess\n"
    "subprocess.Popen(['sh', '-c', 'while :; do sleep 0.02; done', {mark!r}], start_new_session=True)\n"
)
"""Starts a process that can be found by its mark, out of reach of a signal to the group."""
LIMITS = SandboxLimits(memory_bytes=600 * 1024 * 1024, file_bytes=2 * 1024 * 1024, processes=20, output_bytes=100_000)


class Bench:
    """A place where bundles are run, with nothing of the machine it stands on."""

    def __init__(
        self,
        folder: Path,
        limits: SandboxLimits = LIMITS,
        isolation: Isolation = "full",
        build: Sequence[str] = WALLS,
        scratch: Path | None = None,
        **options: Any,
    ) -> None:
        self.blobs = open_blobs(f"file://{folder}/blobs")
        self.scratch = scratch or folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self.cache_folder = folder / "cache"
        self.cache = BundleCache(self.blobs, self.cache_folder)
        self.sandbox = Sandbox(limits, scratch=self.scratch, isolation=isolation, hidden=[folder], build=build)
        self.runner = BundleRunner(self.cache, self.sandbox, **options)

    def tool(self, code: bytes, credentials: Mapping[str, Any] | None = None, **fields: Any) -> Tool:
        digest = hashlib.sha256(code).hexdigest()
        self.blobs.put(blob_key(digest), io.BytesIO(code))
        spec = ToolSpec(
            **{
                "name": "scribe",
                "description": "Writes.",
                "timeout_seconds": 60,
                "binding": {"source_code_link": bundle_link("https://tools.example.org", digest)},
                "parameters": {"type": "object"},
                "manual": "m" * 200_000,
                "credentials": dict.fromkeys(credentials or {}, "********"),
                **fields,
            }
        )
        return bound_tool(spec, self.runner, lambda: credentials or {})

    def python(self, body: str, **fields: Any) -> Tool:
        lines = "\n".join(f"        {line}" for line in body.splitlines())
        source = (
            "import os, sys, time\n\n\nclass AgentSpaceV1Tool:\n"
            "    def __init__(self, tool_id, tool_data):\n        self.id, self.data = tool_id, tool_data\n\n"
            f"    def execute(self, input_data):\n{lines}\n\n"
            "    def execute_command(self, name, data):\n        return {'command': name, 'data': data}\n"
        )
        return self.tool(
            zipped({"code/function.py": source, "code/requirements.txt": "no-such-package>=2\n# x\n"}), **fields
        )

    def program(self, text: str, **fields: Any) -> Tool:
        return self.tool(zipped({"code/run": text}), **fields)


async def needs_wall(bench: Bench, wall: str) -> None:
    """Skip the test where the wall cannot be built."""
    walls = await asyncio.to_thread(bench.sandbox.walls)
    if wall not in walls.standing:
        pytest.skip(f"{wall}: {walls.missing[wall]}")


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(*args: Any, **options: Any) -> Bench:
        made.append(Bench(tmp_path, *args, **options))
        return made[-1]

    yield make
    for bench in made:
        bench.runner.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
