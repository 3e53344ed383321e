"""The pages of the service. They bring everything with them: no script, style or font comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from starlette.responses import Response

_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


@cache
def _prepared(package: str, name: str) -> tuple[bytes, str]:
    """A page and the content security policy that allows its own script and style, and no others."""
    text = files(package).joinpath(name).read_bytes()
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
