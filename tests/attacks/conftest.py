"""A service to attack: the real one, credentials required, on the stores that an organisation runs it on."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any

import httpx
import pytest
from tests.support.archives import zipped
from tests.support.bundles import bench, make_bench
from tests.support.stores import STORES
from tests.support.waiting import PATIENCE
from tests.surfaces.http.running import RunningService

from toolcrib.adapters.runners.sandbox import Sandbox
from toolcrib.bootstrap.stores import open_tokens
from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import load_settings

__all__ = ["attacked", "bench", "make_bench"]


@dataclass
class Attacked:
    """``service`` is not started yet, so that a test can say how.

    ``as_role`` is a client with a token of that role, or of several: ``"runner,publisher"``.
    """

    service: RunningService
    _clients: list[httpx.Client] = field(default_factory=list)

    def token(self, role: str, name: str = "") -> str:
        tokens = open_tokens(load_settings(self.service.environment, self.service.folder))
        token, record = new_token(name or role, *map(Role.parse, role.split(",")), now=time())
        tokens.add(record)
        tokens.close()
        return token

    def as_role(self, role: str, name: str = "", **options: Any) -> httpx.Client:
        options.setdefault("headers", {"authorization": f"Bearer {self.token(role, name)}"})
        client = httpx.Client(base_url=self.service.url, timeout=PATIENCE, **options)
        self._clients.append(client)
        return client

    def upload(self, name: str, body: str, **more: Any) -> None:
        """A Python bundle whose code is ``body``, with ``more`` in its description."""
        lines = "".join(f"        {line}\n" for line in body.splitlines())
        code = zipped({
            "code/function.py": "import os, time\nclass AgentSpaceV1Tool:\n    def __init__(self, i, d): ...\n"
            f"    def execute(self, input_data):\n{lines}"
        })  # fmt: skip
        spec = {"tool_id": name, "tool_search_description": "Looks harmless.", "tool_api_spec": {"input": {}}, **more}
        bundle = zipped({"spec.json": json.dumps(spec), "tool.zip": code, "tool.md": "# x"})
        answer = self.as_role("publisher").post("/tools/upload", files={"file": ("bundle.zip", bundle)})
        assert answer.status_code in {200, 201}, answer.text

    @contextmanager
    def beside(self, request: Callable[[], object]) -> Iterator[None]:
        """A request that is under way meanwhile, and may fail."""
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(request)
            yield
            with suppress(httpx.HTTPError):
                waiting.result()

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.service.__exit__()


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skip the test where the walls that bundles need cannot be built."""
    walls = Sandbox().walls()
    if walls.lacking:
        pytest.skip(f"the walls cannot be built here: {walls}")


@pytest.fixture(params=["sqlite", "mongo"])
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Attacked]:
    store = STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))
    target = Attacked(RunningService(tmp_path, auth="required", store=store))
    yield target
    target.close()


class SlowNames:
    """Names below ``slow.example`` have no answer until :meth:`answer`."""

    def __init__(self) -> None:
        self._look_up = socket.getaddrinfo
        self._asked: list[str] = []
        self._may_answer = threading.Event()

    @property
    def fill_the_loop(self) -> bool:
        """Whether as many are asked for as an event loop has threads of its own, or as one caller may."""
        return len(self._asked) >= min(8, (os.cpu_count() or 1) + 4)

    def answer(self) -> None:
        self._may_answer.set()

    def __call__(self, host: Any, *words: Any, **options: Any) -> Any:
        if str(host).endswith("slow.example"):
            self._asked.append(host)
            self._may_answer.wait()
            raise socket.gaierror("no answer")
        return self._look_up(host, *words, **options)


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNames]:
    names = SlowNames()
    monkeypatch.setattr(socket, "getaddrinfo", names)
    yield names
    names.answer()
