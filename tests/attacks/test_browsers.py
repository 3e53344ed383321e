"""Row 18: no number of calls starts more browsers than there are places, and none outlives its call or the service."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.waiting import PATIENCE, until, wait_until
from tests.surfaces.http.running import RunningService

from toolcrib import OverloadedError, tool
from toolcrib.adapters.runners.placed import placed_tool
from toolcrib.calling.places import Places
from toolcrib.toolsets.browser import standalone_tool

MARK = b"TOOLCRIB_BROWSER"


class Site(ThreadingHTTPServer):
    """Pages that do not come until they are let go."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked = 0
        self.release = threading.Event()
        site = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/":
                    site.asked += 1
                    site.release.wait(PATIENCE)
                with suppress(OSError):
                    self.send_response(200)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Page)
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.release.set()
    made.shutdown()
    made.server_close()


def browsers(folder: Path) -> dict[int, str]:
    """The processes of the browsers that run for the program whose home is ``folder``, each with its browser's mark."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            variables = dict(line.split(b"=", 1) for line in entry.read_bytes().split(b"\0") if b"=" in line)
            if MARK in variables and variables.get(b"HOME") == bytes(folder):
                found[int(entry.parent.name)] = variables[MARK].decode()
    return found


async def test_who_waits_for_a_place_longer_than_the_deadline_is_told_why() -> None:
    begun, places = asyncio.Event(), Places("browsers", 1)

    @tool(timeout_seconds=0.2)
    async def hold() -> None:
        """Wait."""
        begun.set()
        await asyncio.sleep(PATIENCE)

    patient = hold.with_spec(hold.spec.with_changes(timeout_seconds=PATIENCE))
    first = asyncio.create_task(placed_tool(patient, places).execute())
    await begun.wait()
    with pytest.raises(OverloadedError, match=r"none of the 1 browsers was free within 0\.2 s"):
        await placed_tool(hold, places).execute()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (places.busy, places.waiting) == (0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for browsers among the processes of Linux")
def test_many_calls_have_few_browsers_and_all_end_with_the_service(
    tmp_path: Path, chromium_path: str, site: Site
) -> None:
    service = RunningService(
        tmp_path, "--sample", max_browsers=2, allowed_addresses="127.0.0.1", chromium=chromium_path, auth="auto"
    )

    def goto() -> dict[str, Any]:
        asked = {"arguments": {"url": site.url}}
        answer: dict[str, Any] = httpx.post(f"{service.url}/tools/goto/run", json=asked, timeout=PATIENCE).json()
        return answer

    with ThreadPoolExecutor(4) as pool, service:
        answers = [pool.submit(goto) for _ in range(4)]
        wait_until(lambda: site.asked)
        assert len(set(browsers(tmp_path).values())) == 1  # one caller has all places but one
        site.release.set()
        assert all(answer.result()["success"] for answer in answers)
        site.release.clear()
        site.asked = 0
        last = pool.submit(goto)
        wait_until(lambda: site.asked)
        assert browsers(tmp_path)
        service.kill()
        assert isinstance(last.exception(), httpx.HTTPError)
        wait_until(lambda: not browsers(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for browsers among the processes of Linux")
async def test_a_browser_that_hangs_is_killed_when_its_call_ends(
    tmp_path: Path, chromium_path: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    goto = standalone_tool("goto", chromium=chromium_path)
    patient = goto.with_spec(goto.spec.with_changes(timeout_seconds=PATIENCE))
    call = asyncio.create_task(patient.execute({"url": site.url}))
    await until(lambda: site.asked)
    for process in browsers(tmp_path):
        with suppress(OSError):
            os.kill(process, signal.SIGSTOP)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: not browsers(tmp_path))
