"""A caller who hangs up leaves nothing running: otherwise whoever starts runs and goes would take every place."""

import socket
from pathlib import Path

import httpx
from tests.attacks.conftest import Attacked
from tests.support.waiting import wait_until
from tests.surfaces.http.runnable import RUNNABLE


def test_a_run_ends_with_the_connection_of_its_caller(attacked: Attacked, tmp_path: Path) -> None:
    service = attacked.service
    root = Path(__file__).parents[2]
    service.environment |= {
        "TOOLCRIB_PYTHON_TOOLS": ",".join(RUNNABLE),
        "PYTHONPATH": str(root),
        "TOOLCRIB_MAX_RUNS": "2",
    }
    service.start()
    entry = {
        "tool_id": "wait",
        "tool_metadata": {
            "toolcrib": {"binding": {"python": "tests.surfaces.http.runnable:wait"}, "timeout_seconds": 3600}
        },
        "tool_api_spec": {"input": {"type": "object", "additionalProperties": True}},
    }
    created = attacked.as_role("publisher").post("/tools", json=entry)
    assert created.status_code == 201, created.text
    token, begun = attacked.token("runner"), [tmp_path / f"begun-{number}" for number in range(4)]
    for path in begun:  # one caller may have one of the two places
        body = f'{{"arguments": {{"begun": "{path}", "free": "{tmp_path}/never"}}}}'
        head = (
            f"POST /tools/wait/run HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall((head + body).encode())
            wait_until(path.exists)
    admin = attacked.as_role("admin")
    wait_until(lambda: len(_crashed(admin)) == len(begun))


def _crashed(admin: httpx.Client) -> list[object]:
    found: list[object] = admin.get("/audit", params={"tool": "wait", "outcome": "crashed"}).json()
    return found
