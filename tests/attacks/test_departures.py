"""A caller who hangs up leaves nothing running: otherwise whoever starts runs and goes would take every place."""

import json
import socket
import uuid
from typing import Any

import httpx
import pytest
from tests.attacks.conftest import Attacked
from tests.support.bundles import FOREVER
from tests.support.processes import running
from tests.support.waiting import wait_until

CALL = {"name": "endless", "arguments": {}}
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
DOORS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "rest": ("/tools/endless/run", {}, {"arguments": {}}),
    "mcp with a handshake": (
        "/mcp",
        {"MCP-Protocol-Version": "2025-06-18"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL},
    ),
    "mcp without": (
        "/mcp",
        {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "endless"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CALL, "_meta": ENVELOPE}},
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_run_ends_with_the_connection_of_its_caller(attacked: Attacked, door: str) -> None:
    """What the tool has started is dead too. One caller may have one of the two places, so each run ends the last."""
    service, mark, runs = attacked.service, uuid.uuid4().hex, 3
    service.environment["TOOLCRIB_MAX_RUNS"] = "2"
    service.start()
    for_an_hour = {"toolcrib": {"timeout_seconds": 3600}}
    attacked.upload("endless", FOREVER.format(mark=mark) + "time.sleep(3600)", tool_metadata=for_an_hour)
    path, headers, message = DOORS[door]
    body = json.dumps(message)
    lines = {
        "Host": f"127.0.0.1:{service.port}",
        "Authorization": f"Bearer {attacked.token('runner')}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        **headers,
    }
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    for _ in range(runs):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(f"{head}\r\n{body}".encode())
            wait_until(lambda: running(mark))
        wait_until(lambda: not running(mark))
    admin = attacked.as_role("admin")
    wait_until(lambda: len(_crashed(admin)) == runs)


def _crashed(admin: httpx.Client) -> list[object]:
    found: list[object] = admin.get("/audit", params={"tool": "endless", "outcome": "crashed"}).json()
    return found
