"""``/help``: the documentation site, if it was built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.surfaces.http.errors import NoSuchPathError
from toolcrib.surfaces.http.routes import below, whole

_PACKAGE = Path(__file__).parents[2]
PLACES = (_PACKAGE / "help", _PACKAGE.parents[1] / "site")
"""Inside the installed package, or in the checkout."""


def help_routes(places: Sequence[Path] = PLACES) -> list[BaseRoute]:
    """Files of the first place that has a site; a sentence that says how to build it if none has."""
    folder = next((place for place in places if (place / "index.html").is_file()), None)
    if folder is None:
        return [whole("/help", None, _not_built), below("/help", None, _not_built)]
    files: ASGIApp = StaticFiles(directory=folder, html=True)
    return [whole("/help", None, RedirectResponse("/help/")), below("/help", None, files)]


async def _not_built(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise NoSuchPathError("the help pages are not built; run 'make docs' in the checkout and start the service again")
