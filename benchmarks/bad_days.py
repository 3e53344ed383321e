"""The attacks of rows 5 and 7 to 12 of tests/attacks/README.md, each going on until its process is killed.

For bench_bad_days.py.
"""

from __future__ import annotations

import base64
import io
import json
import os
import random
import socket
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from typing import Any

from bad_days_service import AUDIENCE, ISSUER, READERS, Client, many_files

from toolcrib.formats.bundle import BundleLimits
from toolcrib.surfaces.graphql.limits import MAX_COST

Tokens = dict[str, str]
_SECONDS = 300.0


@dataclass(frozen=True)
class Attack:
    """``hangs``: the issuer and the policy service do, while it goes on. ``files`` that the service may have open.

    ``after`` so many seconds of quiet: the issuer is not asked again sooner.
    """

    title: str
    before: str
    work: Callable[[int, Tokens], None]
    settings: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    files: int = 0
    after: float = 0.0


def begin(work: Callable[[int, Tokens], None], port: int, tokens: Tokens, begun: Event) -> None:
    """What an attacker's process does; its imports are done when it says that it has ``begun``.

    It yields the machine to the service: an attacker would have one of his own.
    """
    os.nice(19)
    many_files()
    begun.set()
    work(port, tokens)


def _at_once(count: int, work: Callable[[int], None]) -> None:
    """Each of so many callers again and again, for ever."""

    def repeat(number: int) -> None:
        while True:
            work(number)
            time.sleep(0.01)  # a refusal that comes at once must not make this a test of connections a second

    threads = [threading.Thread(target=repeat, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _post(port: int, token: str, path: str, body: Any) -> None:
    with Client(port, token, _SECONDS) as client:
        client.ask("POST", path, body)


def bundle(name: str, spec: bytes = b"", code: dict[str, str] | None = None) -> bytes:
    """A bundle whose spec is ``spec``, or names no more than ``name``."""
    inner, whole = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for path, text in (code or {"code/function.py": "class AgentSpaceV1Tool: ...\n"}).items():
            archive.writestr(path, text)
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("spec.json", spec or json.dumps({"tool_id": name, "tool_search_description": "a bundle"}))
        archive.writestr("tool.zip", inner.getvalue())
        archive.writestr("tool.md", "# It works\n")
    return whole.getvalue()


def newlines_bundle() -> bytes:
    """Row 5: it misses a module and has 40,000 newlines in its requirements.txt."""
    code = {"code/function.py": "import no_such_module\n", "code/requirements.txt": "\n" * 40_000}
    return bundle("newlines", code=code)


def newlines(port: int, tokens: Tokens) -> None:
    with Client(port, tokens["publisher"], _SECONDS) as client:
        client.upload(newlines_bundle(), "?replace=true")
    _at_once(1, lambda _: _post(port, tokens["admin"], "/tools/newlines/run", {"arguments": {}}))


def forged_jwts(port: int, tokens: Tokens) -> None:
    """Row 7: thirty at a time, each naming another key that the issuer would have to be asked about."""

    def encoded(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    def forged(number: int) -> None:
        head = {"alg": "ES256", "typ": "JWT", "kid": f"forged-{number}-{time.monotonic_ns()}"}
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "mallory", "exp": int(time.time()) + 600, "role": "admin"}
        _post(port, f"{encoded(head)}.{encoded(claims)}.{'A' * 86}", "/graphql", {"query": "{ tools { tool_id } }"})

    _at_once(30, forged)


def nothing_found(count: int) -> list[dict[str, Any]]:
    """Conditions that match nothing and that no index and no literal makes quicker; never the same ones again."""
    words = [f"(t|g|[a-z ]){{1,9}}.*{random.randrange(10**9):x}?[0-9]z" for _ in range(count)]
    return [{"tool_man_page_doc": {"$regex": word}} for word in words]


def expressions(port: int, tokens: Tokens) -> None:
    """Row 8: a query of four regular expressions from each of 33 callers."""
    where = "/tools/query/generic?limit=10"
    _at_once(READERS, lambda number: _post(port, tokens[f"reader-{number}"], where, {"$or": nothing_found(4)}))


def clauses(port: int, tokens: Tokens) -> None:
    """Row 8: a query of 60 clauses."""
    _at_once(1, lambda _: _post(port, tokens["reader-0"], "/tools/query/generic?limit=10", {"$or": nothing_found(60)}))


def writes(port: int, tokens: Tokens) -> None:
    """Row 9: 120 writes wait for the policy service."""

    def write(number: int) -> None:
        _post(port, tokens["publisher"], "/tools?replace=true", {"tool_id": f"written-{number}"})

    _at_once(120, write)


FIELDS = "tool_id tool_man_page_doc tool_metadata tool_api_spec tool_tags tool_search_description tool_type"
ALIASED = " ".join(f"f{number}: tool_man_page_doc" for number in range(90))
_EACH = MAX_COST // 20 // len(FIELDS.split())
ALLOWED = "{" + " ".join(f"a{number}: tools(limit: {_EACH}) {{ {FIELDS} }}" for number in range(20)) + "}"
"""Twenty aliases that cost as much as is allowed."""


def graphs(port: int, tokens: Tokens) -> None:
    """Row 10: a limit that is a float, and twenty aliases, as many tools as are allowed."""
    documents = (
        {"query": f"query($n: Int!) {{ tools(limit: $n) {{ {FIELDS} {ALIASED} }} }}", "variables": {"n": 10_000.0}},
        {"query": ALLOWED},
    )
    _at_once(2, lambda number: _post(port, tokens[f"reader-{number}"], "/graphql", documents[number]))


def twice_named() -> bytes:
    """Row 11: a spec as large as is allowed, in which one key stands twice."""
    keys = ",".join(f'"key-{number}":{number}' for number in range(BundleLimits().max_spec_bytes // 20))
    return f'{{"tool_id": "twice", "tool_metadata": {{{keys},"key-0":1}}}}'.encode()


def doubled(port: int, tokens: Tokens) -> None:
    content = bundle("twice", twice_named())

    def upload(_: int) -> None:
        with Client(port, tokens["publisher"], _SECONDS) as client:
            client.upload(content)

    _at_once(1, upload)


def silent(port: int, tokens: Tokens) -> None:
    """Row 12: 320 connections that send nothing, and 20 bodies for /mcp that take for ever."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {tokens['admin']}\r\n"
        "Content-Length: 100000\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\n\r\n{"
    ).encode()
    held: dict[int, socket.socket | None] = dict.fromkeys(range(340))
    while True:
        for number, connection in held.items():
            try:
                if connection is None:
                    held[number] = _connected(port, head if number < 20 else b"")
                elif number < 20:
                    connection.send(b" ")
                elif connection.recv(4096) == b"":
                    raise ConnectionError
            except BlockingIOError:
                continue
            except OSError:
                if connection is not None:
                    connection.close()
                held[number] = None
        time.sleep(0.2)


def _connected(port: int, first: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=1)
    connection.sendall(first)
    connection.setblocking(False)
    return connection


_POLICY = {"TOOLCRIB_POLICY": "webhook", "TOOLCRIB_POLICY_WEBHOOK_URL": "OUTSIDE/policy"}

ATTACKS = [
    Attack("5: 40,000 newlines in requirements.txt", "all stand still for 18 s", newlines),
    Attack("7: the issuer hangs, 30 forged JWTs", "a valid JWT waits > 90 s", forged_jwts, hangs=True, after=31),
    Attack("8: 33 callers, four expressions each", "GET /tools 51 s, /readyz 503", expressions),
    Attack("8: a query of 60 clauses", "23 s for the query", clauses),
    Attack("9: the policy service hangs, 120 writes", "reads 14.7 s", writes, _POLICY, hangs=True),
    Attack("10: GraphQL, limit 10000.0 and 20 aliases", "32 s and 20 s for one", graphs),
    Attack("11: a key twice in the largest spec.json", "a thread for 150 s", doubled),
    Attack("12: 340 silent or slow connections, 300 files", "/healthz stops", silent, files=300),
]
ALL_AT_ONCE = [attack for attack in ATTACKS if not attack.title.startswith("5")]
