"""``/help``: the documentation site, once it is built."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.surfaces.http.errors import NoSuchPathError
from toolcrib.surfaces.http.routes import below, whole

SITE = Path(__file__).parents[1] / "help"
"""Where ``make docs`` puts it; part of the installed package."""


def help_routes(site: Path = SITE) -> list[BaseRoute]:
    """The files of the site. It may be built while the service runs, so every request looks for it."""
    files: ASGIApp = StaticFiles(directory=site, html=True, check_dir=False)

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        if not (site / "index.html").is_file():
            raise NoSuchPathError("the help pages are not built; run 'make docs' in the checkout")
        await files(scope, receive, send)

    return [whole("/help", None, RedirectResponse("/help/")), below("/help", None, page)]
