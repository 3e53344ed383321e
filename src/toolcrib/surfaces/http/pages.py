"""The pages of the service. They bring everything with them: no script, style or font comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from starlette.responses import Response

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#b4540a"/>'
    '<path d="M3 5h10M3 8h10M3 11h10M5 3v10M11 3v10" stroke="#fff" stroke-width="1.4"/></svg>'
)
_LINK = f'<link rel="icon" href="data:image/svg+xml,{quote(_ICON)}">\n'.encode()
"""In the page itself: a browser that finds none asks for one that is not there."""
_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


@cache
def _prepared(package: str, name: str) -> tuple[bytes, str]:
    """A page and the content security policy that allows its own script and style, and no others."""
    text = files(package).joinpath(name).read_bytes().replace(b"</head>", _LINK + b"</head>", 1)
    allowed: dict[bytes, list[str]] = {b"script": [], b"style": []}
    for kind, content in _INLINE.findall(text):
        allowed[kind].append(f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'")
    scripts, styles = (" ".join(allowed[kind]) for kind in (b"script", b"style"))
    return text, (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; img-src 'self' data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )


def page(package: str, name: str) -> Response:
    """The page that lies in a door's own package."""
    text, policy = _prepared(package, name)
    headers = {"content-security-policy": policy, "cache-control": "no-cache", "referrer-policy": "no-referrer"}
    return Response(text, headers=headers, media_type="text/html")
