"""``toolcrib serve``: from settings to a running service, and to its end.

A parent process watches over the workers; each worker opens its own catalogue. SIGTERM and SIGINT end it gracefully:
no new connections, requests under way are answered, the stores are closed.
"""

from __future__ import annotations

import asyncio
import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.bootstrap import System, open_system, seed_samples
from toolcrib.calling.blocking import in_thread
from toolcrib.catalogue.bundles import collect_orphans
from toolcrib.core.errors import MissingDependencyError, SettingsError, ToolcribError, UnavailableError
from toolcrib.core.roles import Role
from toolcrib.ports import Tokens
from toolcrib.settings import Settings
from toolcrib.surfaces.auth import Access, Guard
from toolcrib.surfaces.logs import log_config

if TYPE_CHECKING:
    from toolcrib.surfaces.auth.bearer import Bearer
    from toolcrib.surfaces.mcp import HttpDoor
    from toolcrib.surfaces.rest import Application

logger = logging.getLogger("toolcrib.serve")

_SHUTDOWN_SECONDS = 30
_HEADER_MILLISECONDS = 10_000
_PARENT_SECONDS = 1.0
_ORPHAN_SECONDS = 3600.0
_ADDRESSES = {"/": "catalogue", "/docs": "REST API", "/graphql": "GraphQL", "/mcp": "MCP", "/help": "guides"}


def serve(settings: Settings, *, sample: bool = False) -> None:
    """Serve until a signal ends it. Whatever makes a start impossible is raised before the first request is taken."""
    try:
        from granian.constants import Interfaces, Loops
        from granian.http import HTTP1Settings
        from granian.log import LogLevels
        from granian.server import Server
    except ImportError:
        raise MissingDependencyError("the server", extra="server") from None
    check_start(settings, sample=sample)
    if settings.workers > 1:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="toolcrib-metrics-")
    multiprocessing.set_start_method("spawn", force=True)  # a worker shares no threads and no connections with us
    config = log_config(settings.log_level, settings.log_format)
    logging.config.dictConfig(config)
    server = Server(
        "toolcrib",
        settings.host,
        settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        loop=Loops.asyncio,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MILLISECONDS),
        log_level=LogLevels.warning,
        log_dictconfig=config,
        respawn_failed_workers=True,
        workers_kill_timeout=_SHUTDOWN_SECONDS,
    )
    logger.info("toolcrib %s at %s, tools in %s", __version__, settings.service_url, shown(settings.store_url))
    for path, what in _ADDRESSES.items():
        logger.info("%-10s %s%s", what, settings.service_url, path)
    server.serve(target_loader=partial(load_application, settings, os.getpid()), wrap_loader=False)
    logger.info("stopped")


def check_start(settings: Settings, *, sample: bool = False) -> None:
    """Raises what would keep the service from starting: settings, the port, the store. Leaves a clean spool."""
    from toolcrib.surfaces.rest.uploads import discard_leftovers

    _check_port(settings.host, settings.port)
    with open_system(settings) as system:
        access_of(settings, system.tokens)
        bearer_of(settings)
        system.seal.require()
        system.catalogue.store.ping()
        if sample:
            seed_samples(system.catalogue)
    with suppress(OSError):
        discard_leftovers(settings.data_folder / "incoming")


def load_application(settings: Settings, parent: int = 0) -> Application:
    """The application of one worker process."""
    if parent:
        _leave_with_parent(parent)
    return application(settings)


def application(settings: Settings) -> Application:
    """The whole service as an ASGI application; its lifespan closes what it opened."""
    from toolcrib.surfaces.rest import Limits, Service, create_application
    from toolcrib.surfaces.rest.metrics import Metrics

    system = open_system(settings)
    service = Service(
        catalogue=system.catalogue,
        calls=system.calls,
        guard=Guard(access_of(settings, system.tokens), system.tokens, bearer_of(settings)),
        spool=settings.data_folder / "incoming",
        public_url=settings.service_url,
        metrics=Metrics(__version__),
        blobs=system.blobs,
        audit=system.audit,
        limits=Limits(json_bytes=settings.max_body_bytes, upload_bytes=settings.max_upload_bytes),
        version=__version__,
        log_requests=settings.log_requests,
    )
    door = _mcp_door(system)
    start, stop = _lifetime(system, door)
    return create_application(
        service, mounts={"/mcp": (Role.PUBLISHER, door)} if door else None, start=start, stop=stop
    )


def _mcp_door(system: System) -> HttpDoor | None:
    """The MCP door where its SDK is installed; the service does without it otherwise."""
    from toolcrib.surfaces.mcp import CatalogueToolbox, HttpDoor

    try:
        return HttpDoor(CatalogueToolbox(system.catalogue, system.calls))
    except MissingDependencyError:
        return None


def access_of(settings: Settings, tokens: Tokens) -> Access:
    """Who may come in; SettingsError where everybody could."""
    return Access.for_binding(
        settings.host,
        settings.auth,
        has_credentials=bool(settings.jwt_issuer) or bool(tokens.all()),
        hosts=settings.allowed_hosts,
        origins=settings.allowed_origins,
        trusted_proxies=frozenset(settings.trusted_proxies),
        rate=settings.rate,
        burst=settings.burst,
    )


def bearer_of(settings: Settings) -> Bearer | None:
    if not settings.jwt_issuer:
        return None
    from toolcrib.surfaces.auth.bearer import Bearer, Issuer

    return Bearer(
        Issuer(
            settings.jwt_issuer,
            settings.jwt_audience,
            settings.jwt_keys,
            settings.jwt_algorithms,
            settings.jwt_role_claim,
        )
    )


def _lifetime(
    system: System, door: HttpDoor | None
) -> tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]:
    background: list[asyncio.Task[None]] = []

    async def start() -> None:
        if door is not None:
            await door.open()
        background.append(asyncio.create_task(_collect_orphans(system)))
        if system.outbox is not None:
            system.outbox.start()

    async def stop() -> None:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        if door is not None:
            await door.close()
        if system.outbox is not None:
            await in_thread(system.outbox.stop)
        await in_thread(system.close)

    return start, stop


async def _collect_orphans(system: System) -> None:
    """Bundles that no tool names: left by a crash between the blob and the record."""
    while True:
        await asyncio.sleep(_ORPHAN_SECONDS)
        try:
            removed = await in_thread(collect_orphans, system.blobs, system.store)
        except ToolcribError as error:
            logger.warning("orphaned bundles could not be collected: %s", error)
        else:
            if removed:
                logger.info("removed %d bundles that no tool names", len(removed))


def _check_port(host: str, port: int) -> None:
    """Raises where somebody listens there already: the server itself would share the port with them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{host!r} is not an address to listen on: {error}") from None
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise UnavailableError(
                f"port {port} of {host!r} is not free: {error.strerror or error}; choose another with --port"
            ) from None


def _leave_with_parent(parent: int) -> None:
    """End this worker when its parent is gone, killed without a chance to say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def shown(url: str) -> str:
    """An address without the password in it."""
    from toolcrib.surfaces.logs import without_secrets

    return without_secrets(url)
