"""Local services that speak the interfaces of the paid ones, and a forward proxy."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from toolcrib.toolsets.scraping.practice import CAPTCHA_SOLUTION

SCRAPER_KEY = "scraper-key-1"
CAPTCHA_KEY = "captcha-key-1"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"


class _Local(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.calls: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def respond(self, status: int, body: bytes, kind: str = "text/html", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def fetch(self, url: str, user_agent: str) -> tuple[int, bytes]:
        request = urllib.request.Request(url, headers={"User-Agent": user_agent})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def log_message(self, format: str, *args: object) -> None:
        pass


class ScraperService(_Local):
    """Fetches ``url`` as a browser would, for those who have the key."""

    def __init__(self) -> None:
        super().__init__(_ScraperHandler)
        self.credits_used_up = False


class _ScraperHandler(_Handler):
    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.calls.append(query)
        if query.get("api_key") != SCRAPER_KEY:
            self.respond(401, b"Unauthorized request, please make sure your API key is valid.")
            return
        if self.server.credits_used_up:
            self.respond(403, b"You have used up all your API credits.")
            return
        status, body = self.fetch(query["url"], CHROME)
        self.respond(status, body, sa_final_url=query["url"])


class CaptchaService(_Local):
    """Solves a task at the second time of asking."""

    def __init__(self) -> None:
        super().__init__(_CaptchaHandler)
        self.asked = 0
        self.token = CAPTCHA_SOLUTION
        self.answer_field = "gRecaptchaResponse"


class _CaptchaHandler(_Handler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append((self.path, body))
        self.respond(200, json.dumps(self.answer(body)).encode(), "application/json")

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("clientKey") != CAPTCHA_KEY:
            return {"errorId": 1, "errorCode": "ERROR_KEY_DOES_NOT_EXIST", "errorDescription": "Account key not found"}
        if self.path == "/createTask":
            return {"errorId": 0, "taskId": 7654321}
        self.server.asked += 1
        if self.server.asked % 2:
            return {"errorId": 0, "status": "processing"}
        return {"errorId": 0, "status": "ready", "solution": {self.server.answer_field: self.server.token}}


class ForwardProxy(_Local):
    """Forwards plain HTTP and says so in a header; ``broken`` proxies answer 502."""

    def __init__(self) -> None:
        super().__init__(_ProxyHandler)
        self.broken = False


class _ProxyHandler(_Handler):
    def do_GET(self) -> None:
        self.server.calls.append(self.path)
        if self.server.broken:
            self.respond(502, b"bad gateway")
            return
        status, body = self.fetch(self.path, self.headers.get("User-Agent", ""))
        self.respond(status, body)
