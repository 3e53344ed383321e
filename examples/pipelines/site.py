"""A small bookshop to try pipelines on: ``python examples/pipelines/site.py`` serves it at http://127.0.0.1:8765/.

/books/1           three pages of books, each with a link to the next
/js                a page whose list is made by JavaScript
/guarded           403 unless the client says that it is Chrome
/slow?seconds=2    answers late
/flaky/NAME        503 the first time, a page the second
/broken            HTML that nobody closed
/meta              says of itself, in JSON-LD and Open Graph, what it is
/many/N            one of any number of tiny pages
/captcha           a form that wants a captcha solved
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
CAPTCHA_TOKEN = "the-solved-token"

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
    server: Site

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        times = self.server.count(parts.path)
        if self.server.delay:
            time.sleep(self.server.delay)
        status, text = self.answer(parts.path, parse_qs(parts.query), times)
        self.send_page(status, text)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.count(f"POST {self.path}")
        form = parse_qs(body)
        if form.get("g-recaptcha-response") == [CAPTCHA_TOKEN] and form.get("state") == ["s1"]:
            self.send_page(200, document("Welcome", "<h1>You are not a robot</h1>"))
        else:
            self.send_page(*captcha())

    def answer(self, path: str, query: dict[str, list[str]], times: int) -> Answer:
        plain: dict[str, Callable[[], Answer]] = {
            "/": lambda: (200, document("Bookshop", "<h1>Bookshop</h1><a href='/books/1'>books</a>")),
            "/js": made_by_javascript,
            "/broken": broken,
            "/meta": meta,
            "/captcha": captcha,
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
        if kind == "flaky":
            return (503, document("Busy", "<p>Try again.</p>")) if times == 1 else (200, document("Up", "<h1>Up</h1>"))
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
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def main() -> None:
    site = Site(int(sys.argv[1]) if len(sys.argv) > 1 else 8765)
    print(f"serving {site.url}/ until you press Ctrl-C", flush=True)
    try:
        site.serve_forever()
    except KeyboardInterrupt:
        site.server_close()


if __name__ == "__main__":
    main()
