"""A small web for the browser tests, on loopback: pages of every kind that browsers meet, and a log of who asked."""

# ruff: noqa: E501  pages are written as they are served

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOME = """<!doctype html><html lang="en"><head><title>Toolworks</title>
<meta name="description" content="Tools for all trades"><meta property="og:type" content="website">
<link rel="canonical" href="https://toolworks.example/"><link rel="icon" href="/icon.png">
</head><body>
<nav aria-label="Main"><a href="/pricing">Pricing</a> <a href="/contact">Contact us</a> <a href="/docs">Documentation</a>
<a href="/form" id="signup">Create an account</a></nav>
<main><h1>Welcome to Toolworks</h1><p>Hammers, saws &amp; drills.</p>
<button id="counter" onclick="this.dataset.n=+(this.dataset.n||0)+1;this.textContent='Clicked '+this.dataset.n">Count</button>
<button id="hidden" style="display:none">Hidden button</button>
<button id="off" disabled>Disabled button</button>
<p id="secret-note" hidden>not shown</p></main>
<footer><a href="/pricing#fine-print">Fine print</a></footer></body></html>"""

FORM = """<!doctype html><html><head><title>Sign up</title></head><body><h1>Sign up</h1>
<form id="signup" name="signup" action="/submitted" method="post" aria-label="Sign up">
<label for="email">Email address</label><input id="email" name="email" type="email" required value="old@example.com">
<label>Full name <input name="fullname" placeholder="Ada Lovelace"></label>
<input name="city" placeholder="City you live in">
<label for="pw">Password</label><input id="pw" name="password" type="password">
<label>Country <select name="country"><option value="">choose</option><option value="no">Norway</option><option value="se">Sweden</option></select></label>
<label>Sizes <select name="sizes" multiple><option>S</option><option>M</option><option>L</option></select></label>
<fieldset><legend>Plan</legend><label><input type="radio" name="plan" value="free" checked> Free</label>
<label><input type="radio" name="plan" value="pro"> Pro plan</label></fieldset>
<label><input type="checkbox" name="news" id="news"> Send me news</label>
<input type="checkbox" id="fancy" name="fancy" style="position:absolute;opacity:0;width:0;height:0"><label for="fancy">I agree to the terms</label>
<label>Remarks <textarea name="remarks">hello</textarea></label>
<label>Age <input type="number" name="age"></label>
<button type="submit">Create account</button><button type="reset">Start over</button></form>
<div role="combobox" id="fruit" tabindex="0" aria-label="Fruit" onclick="document.getElementById('opts').hidden=false">none</div>
<div id="opts" role="listbox" hidden><div role="option" onclick="pick(this)">Apple</div><div role="option" onclick="pick(this)">Banana</div></div>
<script>function pick(o){document.getElementById('fruit').textContent=o.textContent;document.getElementById('opts').hidden=true}</script>
</body></html>"""

EVENTS = """<!doctype html><title>Events</title><style>#menu:hover #sub{display:block}#sub{display:none}
.box{width:120px;height:60px;border:1px solid;display:inline-block}</style>
<div id="log"></div>
<button id="multi">Mouse target</button><div id="menu">Products <div id="sub">Submenu shown</div></div>
<input id="field" aria-label="Typing field">
<div id="cover-box" style="position:relative;width:200px;height:40px"><button id="covered" style="width:200px;height:40px">Covered button</button>
<div id="cover" style="position:absolute;inset:0;background:#eee"></div></div>
<div id="card" class="box" draggable="true">Card</div><div id="done" class="box" aria-label="Done column" role="region">Done</div>
<div id="scrollbox" style="height:100px;overflow:auto"><div style="height:1000px">tall</div></div>
<div style="height:3000px"></div><h2 id="far">Far below</h2>
<script>
const log = (t) => { document.getElementById('log').textContent += t + ';' };
const multi = document.getElementById('multi');
multi.ondblclick = () => log('double'); multi.oncontextmenu = (e) => { e.preventDefault(); log('context') };
multi.onclick = (e) => log('click' + (e.shiftKey ? '+shift' : ''));
document.getElementById('field').onkeydown = (e) => log('key ' + (e.ctrlKey ? 'Control+' : '') + e.key);
const card = document.getElementById('card'), done = document.getElementById('done');
card.ondragstart = (e) => e.dataTransfer.setData('text', 'card');
done.ondragover = (e) => e.preventDefault(); done.ondrop = (e) => { e.preventDefault(); done.append(card); log('dropped') };
</script>"""

DIALOGS = """<!doctype html><title>Dialogs</title><p id="out">nothing</p>
<button onclick="alert('Mind the gap');out.textContent='alerted'">Alert</button>
<button onclick="out.textContent='confirm '+confirm('Delete everything?')">Confirm</button>
<button onclick="out.textContent='prompt '+prompt('Your name?','nobody')">Prompt</button>"""

SHADOW = """<!doctype html><title>Shadow</title><toy-box></toy-box><script>
customElements.define('toy-box', class extends HTMLElement { connectedCallback() {
 const root = this.attachShadow({mode: 'open'});
 root.innerHTML = '<p>Inside the shadow</p><button id="deep">Shadow button</button><label>Shadow field <input id="deepfield"></label>';
 root.getElementById('deep').onclick = (e) => { e.target.textContent = 'Shadow clicked' }; } });</script>"""

FRAMES = """<!doctype html><title>Frames</title><h1>Outer page</h1><iframe name="inner" src="/framed" width="400" height="200"></iframe>
<iframe name="other" src="{other}/framed?who=other" width="400" height="200"></iframe>"""
FRAMED = """<!doctype html><title>Inner</title><p>Words in the {who} frame</p>
<button onclick="this.textContent='{who} pressed'">{who} frame button</button><input aria-label="{who} frame field">"""

INFINITE = """<!doctype html><title>Infinite</title><ul id="list"></ul><script>
let n = 0; const list = document.getElementById('list');
const more = () => { for (let i = 0; i < 100; i++) { const li = document.createElement('li'); li.textContent = 'Item ' + (++n); list.append(li) } };
more(); addEventListener('scroll', () => { if (innerHeight + scrollY >= document.body.scrollHeight - 50 && n < 500) more() });</script>"""

SPA = """<!doctype html><title>App</title><nav><a href="/spa/settings" id="go">Settings</a></nav><div id="view">Start view</div><script>
document.getElementById('go').onclick = (e) => { e.preventDefault(); history.pushState({}, '', '/spa/settings');
 document.getElementById('view').textContent = 'Loading...';
 setTimeout(() => { document.getElementById('view').innerHTML = '<h2>Settings view</h2><button id="late">Save settings</button>';
  document.title = 'App settings'; }, 300) };
addEventListener('popstate', () => { document.getElementById('view').textContent = 'Start view' });</script>"""

BROKEN = """<html><head><title>Broken</title><body><h1>Unclosed <p>First <b>bold <i>both</b> italic</i><table><tr><td>cell <div>div in table
<ul><li>one<li>two</ul><a href=/pricing>Pricing<a href="/docs">Docs</a></table><button id=b onclick="this.textContent='ok'">Press"""

PRODUCT = """<!doctype html><title>Hammer | Toolworks</title><script type="application/ld+json">
{"@context":"https://schema.org","@type":"Product","name":"Claw hammer","sku":"H-42","brand":{"@type":"Brand","name":"Toolworks"},
"offers":{"@type":"Offer","price":"1,299.50","priceCurrency":"NOK","availability":"https://schema.org/InStock"}}</script>
<script type="application/ld+json">{ this is not json</script>
<h1>Claw hammer</h1><div itemscope itemtype="https://schema.org/Review"><span itemprop="author">Grace</span><meta itemprop="ratingValue" content="4.5"></div>
<dl><dt>Weight</dt><dd>0.6 kg</dd><dt>Material:</dt><dd>Steel</dd></dl><p><b>Warranty:</b> 24 months</p><span class="stock-count">17 left</span>
<ul class="reviews"><li class="review"><h3 class="title">Solid</h3><span class="stars">5</span></li>
<li class="review"><h3 class="title">Heavy</h3><span class="stars">3</span></li></ul>
<table><caption>Prices</caption><thead><tr><th>Size</th><th>Price</th></tr></thead><tr><td>S</td><td>10,50 €</td></tr><tr><td>L</td><td>1.299,00 €</td></tr></table>
<table><tr><td>layout</td></tr></table>"""

CAPTCHA = """<!doctype html><title>Check</title><form action="/submitted" method="post"><div class="g-recaptcha" data-sitekey="key-123" style="width:300px;height:78px">robot?</div>
<textarea name="g-recaptcha-response" style="display:none"></textarea><button>Go on</button></form>"""

NOISY = """<!doctype html><title>Noisy</title><p id="out"></p><img src="/pixel.png"><script>
console.log('hello from the page'); console.error('something is off'); setTimeout(() => { throw new Error('uncaught boom') }, 0);
fetch('/api/user').then(r => r.json()).then(d => { document.getElementById('out').textContent = 'user ' + d.name });
fetch('/status/500');</script>"""

UPLOAD = """<!doctype html><title>Upload</title><form><label>Attach a file <input type="file" id="file" multiple></label></form>
<button id="fancy" onclick="document.getElementById('file').click()">Choose files</button><p id="out"></p>
<script>document.getElementById('file').onchange = async (e) => {
 const texts = await Promise.all([...e.target.files].map((f) => f.text()));
 document.getElementById('out').textContent = [...e.target.files].map((f, i) => f.name + '=' + texts[i]).join(',') };</script>"""

DOWNLOADS = """<!doctype html><title>Downloads</title><a href="/report.csv">Download the report</a>
<a href="/evil-name">Download with a hostile name</a>"""

# Everything a page can do to get out: each of these must come to nothing.
ESCAPE = """<!doctype html><title>Escape</title><h1>Inside</h1><a href="{other}/stolen?how=click">Leave by click</a>
<a href="/redirect?to={other}/stolen?how=redirect">Leave by redirect</a>
<form action="{other}/stolen" method="post"><input name="how" value="form"><button>Leave by form</button></form>
<img src="{other}/stolen?how=image"><script src="{other}/stolen?how=script"></script><link rel="stylesheet" href="{other}/stolen?how=style">
<link rel="prefetch" href="{other}/stolen?how=prefetch"><iframe src="{other}/stolen?how=frame"></iframe><iframe src="/redirect?to={other}/stolen?how=frameredirect"></iframe>
<video src="{other}/stolen?how=video"></video><script>
const done = [];
fetch('{other}/stolen?how=fetch', {{mode: 'no-cors'}}).catch(() => 0).finally(() => done.push('fetch'));
fetch('/redirect?to={other}/stolen?how=fetchredirect', {{mode: 'no-cors'}}).catch(() => 0).finally(() => done.push('redirect'));
const x = new XMLHttpRequest(); x.onloadend = () => done.push('xhr'); x.open('GET', '{other}/stolen?how=xhr'); try {{ x.send() }} catch {{}}
navigator.sendBeacon('{other}/stolen?how=beacon', 'x');
const w = new WebSocket('{ws}/stolen?how=websocket'); w.onerror = w.onclose = () => done.push('websocket');
const e = new EventSource('{other}/stolen?how=eventsource'); e.onerror = () => {{ e.close(); done.push('eventsource') }};
const worker = new Worker(URL.createObjectURL(new Blob(["fetch('{other}/stolen?how=worker',{{mode:'no-cors'}}).catch(()=>0).finally(()=>postMessage(1))"])));
worker.onmessage = () => done.push('worker');
navigator.serviceWorker?.register('/sw.js').then(() => done.push('sw'), () => done.push('sw'));
window.open('{other}/stolen?how=popup');
const pc = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{udp}'}}]}}); pc.createDataChannel('x');
pc.createOffer().then((o) => pc.setLocalDescription(o));
window.escaped = done;</script>"""

SERVICE_WORKER = "self.addEventListener('install', () => fetch('{other}/stolen?how=serviceworker', {{mode: 'no-cors'}}).catch(() => 0));"

HOSTILE = """<!doctype html><title>Hostile</title><h1>Free prizes</h1><p id="perm">asking</p><script>
for (let i = 0; i < 30; i++) window.open('/pricing?popup=' + i);
alert('You won'); confirm('Really?'); onbeforeunload = (e) => { e.preventDefault(); return 'stay' };
const asked = []; const tell = () => { document.getElementById('perm').textContent = asked.join(' ') };
Notification.requestPermission().then((p) => { asked.push('notifications:' + p); tell() });
navigator.geolocation.getCurrentPosition(() => { asked.push('geo:granted'); tell() }, () => { asked.push('geo:denied'); tell() });
navigator.mediaDevices?.getUserMedia({audio: true}).then(() => { asked.push('mic:granted'); tell() }, () => { asked.push('mic:denied'); tell() });
</script><a href="/pricing">Pricing</a>"""


def large_page(rows: int = 4000) -> str:
    parts = [
        f'<tr><td>{n}</td><td>Product number {n}</td><td><a href="/p/{n}">Open product {n}</a></td><td>{n * 3}.50</td></tr>'
        for n in range(rows)
    ]
    cards = [
        f'<article class="card"><h3>Card {n}</h3><p>Some words about card {n}, enough to fill a line or two.</p><button>Buy {n}</button></article>'
        for n in range(1000)
    ]
    return f"<!doctype html><title>Large</title><h1>Large page</h1><main><table><thead><tr><th>Id</th><th>Name</th><th>Link</th><th>Price</th></tr></thead>{''.join(parts)}</table>{''.join(cards)}<button id='last'>The very last button</button></main>"


RESULTS = """<!doctype html><title>Results</title><main><h1>Results for {query}</h1><ol>
<li><h3><a href="https://one.example/">First about {query}</a></h3><p>Snippet one</p></li>
<li><h3><a href="https://two.example/">Second about {query}</a></h3><p>Snippet two</p></li></ol></main>"""

LOGIN = """<!doctype html><title>Login</title><form action="/login" method="post"><label>User <input name="user"></label>
<label>Password <input name="password" type="text" id="pw"></label><button>Log in</button></form>"""


class Web:
    """The server. ``other`` is the address of a second one, which stands for the rest of the world."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.other = ""
        self.udp = 9  # a script that names no port fails there
        self._closing = threading.Event()
        self._large = large_page()
        handler = type("Handler", (_Handler,), {"web": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.requests]

    def page(self, path: str, query: dict[str, str]) -> tuple[int, str, str, dict[str, str]]:  # noqa: C901  a table
        """Status, type, body and headers of a path."""
        html = "text/html; charset=utf-8"
        static = {
            "/": HOME, "/form": FORM, "/events": EVENTS, "/dialogs": DIALOGS, "/shadow": SHADOW, "/infinite": INFINITE, "/spa": SPA,
            "/broken": BROKEN, "/product": PRODUCT, "/captcha": CAPTCHA, "/noisy": NOISY, "/upload": UPLOAD, "/downloads": DOWNLOADS,
            "/hostile": HOSTILE, "/large": self._large, "/login": LOGIN,
        }  # fmt: skip
        if path in static:
            return 200, html, static[path], {}
        if path in ("/pricing", "/contact", "/docs"):
            name = path[1:].title()
            return 200, html, f"<!doctype html><title>{name}</title><h1>{name} page</h1><a href='/'>Home</a>", {}
        if path == "/frames":
            return 200, html, FRAMES.format(other=f"http://localhost:{self.port}"), {}
        if path == "/framed":
            return 200, html, FRAMED.format(who=query.get("who", "inner")), {}
        if path == "/escape":
            return 200, html, ESCAPE.format(other=self.other, ws=self.other.replace("http", "ws"), udp=self.udp), {}
        if path == "/sw.js":
            return 200, "text/javascript", SERVICE_WORKER.format(other=self.other), {}
        if path == "/redirect":
            return 302, html, "", {"Location": query["to"]}
        if path.startswith("/status/"):
            return int(path.rpartition("/")[2]), html, f"<title>{path}</title><p>status page</p>", {}
        if path == "/slow":
            self._closing.wait(float(query.get("ms", "500")) / 1000)
            return 200, html, "<title>Slow</title>slow", {}
        if path == "/report.csv":
            return 200, "text/csv", "a,b\n1,2\n", {"Content-Disposition": 'attachment; filename="report.csv"'}
        if path == "/evil-name":
            return 200, "text/plain", "evil", {"Content-Disposition": 'attachment; filename="../../evil.txt"'}
        if path == "/api/user":
            return 200, "application/json", '{"name": "Real"}', {}
        if path == "/search":
            return 200, html, RESULTS.format(query=query.get("q", "")), {}
        if path == "/search.json":
            hits = [
                {"title": f"Hit {n} for {query.get('q', '')}", "url": f"https://{n}.example/", "content": f"text {n}"}
                for n in range(20)
            ]
            return 200, "application/json", json.dumps({"results": hits}), {}
        if path == "/set-login":
            return (
                200,
                html,
                "<title>Logged in</title><script>localStorage.setItem('user','ada')</script>in",
                {"Set-Cookie": "login=tok-123; Path=/"},
            )
        return 404, html, "<title>Not found</title><h1>Not found</h1>", {}


class _Handler(BaseHTTPRequestHandler):
    web: Web
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        self.web.requests.append((self.command, self.path, dict(self.headers), body))
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path in ("/submitted", "/login") and self.command == "POST":
            fields = parse_qs(body.decode(), keep_blank_values=True)
            content = f"<!doctype html><title>Submitted</title><h1>Thank you</h1><pre>{json.dumps(fields)}</pre>"
            self._send(200, "text/html; charset=utf-8", content, {})
            return
        if parts.path == "/echo-headers":
            self._send(200, "application/json", json.dumps(dict(self.headers)), {})
            return
        if parts.path == "/redirect":
            query["to"] = parts.query.partition("to=")[2]
        self._send(*self.web.page(parts.path, query))

    do_GET = do_POST = do_HEAD = do_OPTIONS = _serve

    def _send(self, status: int, kind: str, content: str, headers: dict[str, str]) -> None:
        data = content.encode()
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # the browser went elsewhere in the meantime

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read ``web.requests`` instead."""
