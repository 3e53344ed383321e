"""The service that is attacked, its tokens, its issuer of JWTs and its policy service, both of which can hang; and a
plain client. For bench_bad_days.py."""

from __future__ import annotations

import http.client
import json
import os
import resource
import shutil
import sys
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import jwt
from bench_service import fill, free_port, running
from cryptography.hazmat.primitives.asymmetric import ec

from toolcrib.bootstrap.stores import open_tokens
from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import load_settings

ISSUER, AUDIENCE, KEY = "https://issuer.example", "toolcrib", "bench"
READERS = 33


class Client:
    """One connection; a request that fails has the status 0, and the next one gets a new connection."""

    def __init__(self, port: int, token: str, seconds: float) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        kind = {"content-type": "application/json"} if content is not None else {}
        try:
            self._connection.request(method, path, content, {**self._headers, **kind, **headers})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, b""

    def status(self, method: str, path: str, body: Any = None, **headers: str) -> int:
        return self.ask(method, path, body, **headers)[0]

    def upload(self, content: bytes, query: str = "") -> int:
        form = (
            b'--bench\r\nContent-Disposition: form-data; name="file"; filename="b.zip"\r\n\r\n'
            + content + b"\r\n--bench--\r\n"
        )  # fmt: skip
        return self.status(
            "POST", f"/tools/upload{query}", form, **{"content-type": "multipart/form-data; boundary=bench"}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class _Outside(ThreadingHTTPServer):
    """The issuer's keys at every GET, a yes to every POST; nothing at all while it ``hangs``."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
        self.keys = json.dumps({"keys": [{**public, "kid": KEY, "use": "sig", "alg": "ES256"}]}).encode()
        self.hangs = False
        super().__init__(("127.0.0.1", 0), _Answering)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Answering(BaseHTTPRequestHandler):
    server: _Outside

    def do_GET(self) -> None:
        self._answer(self.server.keys)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer(b'{"allow": true}')

    def _answer(self, body: bytes) -> None:
        while self.server.hangs:
            time.sleep(0.05)
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # it has hung up meanwhile

    def log_message(self, *_: object) -> None: ...


class Service:
    """The service in ``folder``, with at most so many open ``files``. ``tokens`` are by name."""

    def __init__(self, folder: Path, settings: dict[str, str], files: int = 0) -> None:
        self.folder = folder
        self.port = free_port()
        self.tokens: dict[str, str] = {}
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._settings = settings
        self._files = files
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._outside = _Outside(self._key)
        self._open.callback(self._outside.shutdown)
        outside = f"http://127.0.0.1:{self._outside.server_port}"
        environment = {
            "TOOLCRIB_DATA_DIR": str(self.folder), "TOOLCRIB_STORE": f"sqlite:///{self.folder}/toolcrib.db",
            "TOOLCRIB_AUTH": "required", "TOOLCRIB_JWT_ISSUER": ISSUER, "TOOLCRIB_JWT_AUDIENCE": AUDIENCE,
            "TOOLCRIB_JWT_KEYS": f"{outside}/jwks", "HOME": str(self.folder),
            **{name: value.replace("OUTSIDE", outside) for name, value in self._settings.items()},
        }  # fmt: skip
        self._make_tokens(environment)
        command = [str(Path(sys.executable).parent / "toolcrib"), "serve", "--port", str(self.port)]
        if self._files:
            command = ["sh", "-c", f'ulimit -n {self._files}; exec "$@"', "sh", *command]
        self._open.enter_context(running(command, self.port, environment, "/healthz"))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def hang(self, hangs: bool) -> None:
        """Let the issuer and the policy service hang, or answer again."""
        self._outside.hangs = hangs

    def jwt(self) -> str:
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "honest", "exp": now + 3600, "role": "reader"}
        return jwt.encode(claims, self._key, "ES256", headers={"kid": KEY})

    def _make_tokens(self, environment: dict[str, str]) -> None:
        tokens = open_tokens(load_settings(environment, self.folder))
        for name in ("admin", "publisher", *(f"reader-{number}" for number in range(READERS))):
            self.tokens[name], record = new_token(name, Role.parse(name.partition("-")[0]), now=time.time())
            tokens.add(record)
        tokens.close()


def filled(folder: Path, number: int, tools: int) -> Path:
    """A data folder of its own with so many tools; they are written once and copied."""
    made, copied = folder / f"filled-{tools}", folder / f"service-{number}"
    if not made.exists():
        made.mkdir(parents=True)
        fill(f"sqlite:///{made}/toolcrib.db", tools)
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(made, copied)
    copied.chmod(0o755)
    return copied


def many_files() -> None:
    """As many open files as this process may have: an attacker has them too."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.nice(5)  # it shares the processors with what it attacks, which it would not elsewhere
