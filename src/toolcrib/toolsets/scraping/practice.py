"""A small bookshop to practise on, at http://127.0.0.1:8765/ unless told otherwise.

    python -m toolcrib.toolsets.scraping.practice                 serves until Ctrl-C
    python -m toolcrib.toolsets.scraping.practice --background    serves until --stop, for an hour at most

/books/1           three pages of books, each with a link to the next
/js                a page whose list is made by JavaScript
/guarded           403 unless the client says that it is Chrome
/slow?seconds=2    answers late
/flaky/NAME        503 the first time, a page the second
/busy/NAME         429 the first time, with Retry-After: 1, a page later
/staff/wages       a page that its robots.txt keeps crawlers away from
/broken            HTML that nobody closed
/meta              says of itself, in JSON-LD and Open Graph, what it is
/many/N            one of any number of tiny pages
/captcha           a form that wants a captcha solved
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import parse_qs, urlsplit

TITLES = (
    "The Left Hand of Darkness",
    "A Wizard of Earthsea",
    "The Dispossessed",
    "Kindred",
    "Parable of the Sower",
    "Solaris",
    "Roadside Picnic",
    "Hard to Be a God",
    "Invisible Cities",
    "The Name of the Rose",
)
PER_PAGE = 4
PAGES = -(-len(TITLES) // PER_PAGE)
CAPTCHA_SOLUTION = "the-solved-token"

ROBOTS = "User-agent: *\nDisallow: /staff/\n"

Answer = tuple[int, str]


def price(number: int) -> str:
    return f"{5 + number * 1.25:.2f}"


def document(title: str, body: str, head: str = "") -> str:
    start = f"<!doctype html><html><head><meta charset='utf-8'><title>{title}</title>{head}</head>"
    return f"{start}<body>{body}</body></html>"


def books(page: int) -> Answer:
    if not 1 <= page <= PAGES:
        return 404, document("Not here", "<p>No such page.</p>")
    rows = "".join(
        f"<article class='book' id='b{number}'><h3><a href='/book/{number}'>{TITLES[number]}</a></h3>"
        f"<p class='price'>{price(number)}</p>"
        f"<ul><li class='tag'>novel</li><li class='tag'>no {number}</li></ul></article>"
        for number in range((page - 1) * PER_PAGE, min(page * PER_PAGE, len(TITLES)))
    )
    following = f"<a class='next' href='/books/{page + 1}'>next</a>" if page < PAGES else ""
    return 200, document(f"Books, page {page}", f"<main>{rows}</main>{following}")


def book(number: int) -> Answer:
    if not 0 <= number < len(TITLES):
        return 404, document("Not here", "<p>No such book.</p>")
    return 200, document(TITLES[number], f"<h1>{TITLES[number]}</h1><p class='price'>{price(number)}</p>")


def made_by_javascript() -> Answer:
    script = (
        "<ul id='list'></ul><script>setTimeout(() => { for (const name of ['one', 'two', 'three']) {"
        " const item = document.createElement('li'); item.className = 'made'; item.textContent = name;"
        " document.getElementById('list').append(item); } }, 50)</script>"
    )
    return 200, document("Made by JavaScript", script)


def broken() -> Answer:
    return 200, "<html><body><div class=item><b>first<p>one<div class=item><b>second</i><p>two"


def meta() -> Answer:
    head = (
        "<meta property='og:title' content='Kindred'><meta property='og:type' content='book'>"
        '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Book", "name": "Kindred",'
        ' "author": {"@type": "Person", "name": "Octavia E. Butler"}}</script>'
    )
    return 200, document("Kindred", "<h1>Kindred</h1>", head)


def captcha() -> Answer:
    form = (
        "<form action='/captcha' method='post'><input type='hidden' name='state' value='s1'>"
        "<div class='g-recaptcha' data-sitekey='site-key-1'></div><button>Go</button></form>"
    )
    return 200, document("Are you a robot?", form)


class Site(ThreadingHTTPServer):
    """The server. ``hits`` counts the answers by path."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.hits: Counter[str] = Counter()
        self.delay = 0.0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, path: str) -> int:
        with self.lock:
            self.hits[path] += 1
            return self.hits[path]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body in one packet

    @property
    def site(self) -> Site:
        return cast(Site, self.server)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        times = self.site.count(parts.path)
        if self.site.delay:
            time.sleep(self.site.delay)
        status, text = self.answer(parts.path, parse_qs(parts.query), times)
        self.send_page(status, text)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.site.count(f"POST {self.path}")
        form = parse_qs(body)
        if form.get("g-recaptcha-response") == [CAPTCHA_SOLUTION] and form.get("state") == ["s1"]:
            self.send_page(200, document("Welcome", "<h1>You are not a robot</h1>"))
        else:
            self.send_page(*captcha())

    def do_STOP(self) -> None:
        self.send_page(200, document("Bookshop", "<p>Closed.</p>"))
        self.wfile.flush()  # before: the process may end sooner than this thread goes on
        threading.Thread(target=self.site.shutdown).start()

    def answer(self, path: str, query: dict[str, list[str]], times: int) -> Answer:
        plain: dict[str, Callable[[], Answer]] = {
            "/": lambda: (200, document("Bookshop", "<h1>Bookshop</h1><a href='/books/1'>books</a>")),
            "/js": made_by_javascript,
            "/broken": broken,
            "/meta": meta,
            "/captcha": captcha,
            "/robots.txt": lambda: (200, ROBOTS),
            "/staff/wages": lambda: (200, document("Wages", "<h1>Wages</h1>")),
        }
        if path in plain:
            return plain[path]()
        kind, _, rest = path.lstrip("/").partition("/")
        if kind in ("books", "book", "many") and rest.isdigit():
            return self.numbered(kind, int(rest))
        if kind == "guarded":
            return self.guarded()
        if kind == "slow":
            time.sleep(float(query.get("seconds", ["1"])[0]))
            return 200, document("Slow", "<h1>At last</h1>")
        if kind in ("flaky", "busy") and times == 1:
            return 503 if kind == "flaky" else 429, document("Busy", "<p>Try again.</p>")
        if kind in ("flaky", "busy"):
            return 200, document("Up", "<h1>Up</h1>" if kind == "flaky" else "<h1>Ready</h1>")
        return 404, document("Not here", "<p>No such page.</p>")

    def numbered(self, kind: str, number: int) -> Answer:
        if kind == "many":
            return 200, f"<p class='n'>{number}</p>"
        return books(number) if kind == "books" else book(number)

    def guarded(self) -> Answer:
        if "Chrome/" in self.headers.get("User-Agent", ""):
            return 200, document("Inside", "<h1>For browsers only</h1>")
        return 403, document("Forbidden", "<h1>Go away</h1>")

    def send_page(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status, HTTPStatus(status).phrase)
        self.send_header("Content-Type", "text/plain" if text is ROBOTS else "text/html; charset=utf-8")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m toolcrib.toolsets.scraping.practice")
    parser.add_argument("--port", type=int, default=8765)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--background", action="store_true", help="serve until --stop, for an hour at most")
    how.add_argument("--stop", action="store_true", help="end what serves in the background")
    how.add_argument("--hidden", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    address = f"http://127.0.0.1:{chosen.port}/"
    if chosen.stop:
        print("stopped" if _asked(address, "STOP") else f"nobody serves {address}")
    elif chosen.background:
        _in_background(chosen.port, address)
    else:
        _serve(Site(chosen.port), hidden=chosen.hidden)


def _serve(site: Site, *, hidden: bool) -> None:
    if hidden:
        end = threading.Timer(3600, site.shutdown)
        end.daemon = True
        end.start()
    else:
        print(f"serving {site.url}/ until you press Ctrl-C", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        site.serve_forever(poll_interval=0.1)
    site.server_close()


def _in_background(port: int, address: str) -> None:
    if not _asked(address, "GET"):
        command = [sys.executable, "-m", "toolcrib.toolsets.scraping.practice", "--hidden", "--port", str(port)]
        nothing = subprocess.DEVNULL
        shop = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
        until = time.monotonic() + 50
        while not _asked(address, "GET"):
            if shop.poll() is not None or time.monotonic() > until:
                sys.exit(f"nothing answers at {address}; is the port in use? choose another with --port")
            time.sleep(0.05)
    print(f"serving {address}; end it with --stop")


def _asked(address: str, method: str) -> bool:
    """Whether the shop answers there."""
    try:
        request = urllib.request.Request(address, method=method)  # noqa: S310  our own address
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as response:
            return b"Bookshop" in response.read()
    except OSError:
        return False


if __name__ == "__main__":
    main()
