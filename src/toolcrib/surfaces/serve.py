"""``toolcrib serve``: the service as processes, from its start to its end.

A parent process watches over the workers; each worker opens its own catalogue. SIGTERM and SIGINT end it gracefully:
no new connections, requests under way are answered, the stores are closed.
"""

from __future__ import annotations

import gc
import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.bootstrap import System, close_data_folder, open_sandbox, open_system, seed_samples
from toolcrib.core.errors import MissingDependencyError, SettingsError, ToolcribError, UnavailableError
from toolcrib.core.masking import without_secrets
from toolcrib.settings import Settings
from toolcrib.surfaces.connections import Watch, places_for
from toolcrib.surfaces.http.gate import Access, Gate
from toolcrib.surfaces.logs import log_config

if TYPE_CHECKING:
    from toolcrib.surfaces.http.application import Application

logger = logging.getLogger("toolcrib.serve")

_SHUTDOWN_SECONDS = 30
_NEWEST_HEADS = 5
_HEAD_BYTES = 65_536
_BACKLOG = 1024
_PARENT_SECONDS = 1.0
_SWITCH_SECONDS = 0.00005
"""How long one thread of a worker computes while others wait: a short read must not wait for a long one."""
_COLLECTIONS = (700, 10, 1000)
"""When the garbage collector looks: at what is new as often as ever, at everything a hundred times less often. To look
at everything holds up all requests, the longer the more a large read has under way."""
_ADDRESSES = {"/": "catalogue", "/docs": "REST API", "/graphql": "GraphQL", "/mcp": "MCP", "/help": "guides"}


def serve(settings: Settings, *, sample: bool = False) -> None:
    """Serve until a signal ends it. Whatever makes a start impossible is raised before the first request is taken."""
    try:
        from granian.constants import HTTPModes, Interfaces, Loops
        from granian.http import HTTP1Settings
        from granian.log import LogLevels
        from granian.server import Server

        from toolcrib.surfaces.http.metrics import shared_folder
    except ImportError:
        raise MissingDependencyError("the server", extra="server") from None
    config = log_config(settings.log_level, settings.log_format)
    logging.config.dictConfig(config)
    address = check_start(settings, sample=sample)
    multiprocessing.set_start_method("spawn", force=True)  # a worker shares no threads and no connections with us
    places = places_for(settings.max_connections)
    settings = settings.with_changes("the limit on open files", max_connections=places)
    server = Server(
        "toolcrib",
        address,
        settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        loop=Loops.asyncio,
        websockets=False,
        http=HTTPModes.http1,  # told to guess the version, it waits for the first bytes for ever
        backpressure=places,
        backlog=_BACKLOG,
        http1_settings=HTTP1Settings(
            header_read_timeout=max(1, round(settings.idle_seconds * 1000)), max_buffer_size=_HEAD_BYTES
        ),
        log_level=LogLevels.warning,
        log_dictconfig=config,
        respawn_failed_workers=True,
        workers_kill_timeout=_SHUTDOWN_SECONDS,
    )
    logger.info(
        "toolcrib %s at %s, tools in %s", __version__, settings.service_url, without_secrets(settings.store_url)
    )
    _prepare_bundles(settings)
    for path, what in _ADDRESSES.items():
        logger.info("%-10s %s%s", what, settings.service_url, path)
    _log_heads(settings)
    with shared_folder() if settings.workers > 1 else nullcontext():
        server.serve(target_loader=partial(load_application, settings, os.getpid()), wrap_loader=False)
    _log_heads(settings)
    logger.info("stopped")


def _log_heads(settings: Settings) -> None:
    """Say where the audit stands, where nobody who writes it can reach: see ``toolcrib audit verify --head``."""
    try:
        with open_system(settings) as system:
            for head in list(system.audit.heads().values())[-_NEWEST_HEADS:]:
                logger.info("the audit's head is %s", head)
    except ToolcribError as error:
        logger.warning("the audit's head could not be read: %s", error)


async def serve_mcp(system: System) -> None:
    """Serve plugins and kept tools to one MCP client on standard input and output, until it leaves."""
    from toolcrib.surfaces.mcp import Toolbox, large_results, serve_stdio

    large = large_results(system.settings)
    await serve_stdio(Toolbox(system.local_calls, registry=system.plugins, catalogue=system.catalogue, large=large))


def check_start(settings: Settings, *, sample: bool = False) -> str:
    """The IP address to listen on; raises what would keep the service from starting: settings, the port, the store.

    Leaves a clean spool.
    """
    from toolcrib.surfaces.rest.uploads import discard_leftovers

    address = _free_address(settings.host, settings.port)
    close_data_folder(settings)
    with open_system(settings) as system:
        Gate(Access.of(settings, system.tokens), system.tokens, system.bearer)
        system.seal.require()
        system.catalogue.store.ping()
        if sample:
            seed_samples(system.catalogue)
    with suppress(OSError):
        discard_leftovers(settings.spool)
    return address


def _prepare_bundles(settings: Settings) -> None:
    """Say behind which walls bundles run, and remove what runs left when a service was killed."""
    if not settings.run_bundles:
        return
    sandbox = open_sandbox(settings)
    sandbox.sweep()
    try:
        walled, sentence = sandbox.told()
    except SettingsError as error:
        walled, sentence = False, error.message
    logger.log(logging.INFO if walled else logging.WARNING, "%s", sentence)


def load_application(settings: Settings, parent: int = 0) -> Application:
    """The application of one worker process."""
    from toolcrib.surfaces.service import application

    served = application(settings)
    if parent:
        _keep_turns_short()
        _leave_with_parent(parent)
        Watch(settings.port, settings.max_connections, served.clients, settings.trusted_proxies).start()
    return served


def _keep_turns_short() -> None:
    """Let no step of the interpreter be so long that every request waits for it."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what is loaded by now stays
    gc.set_threshold(*_COLLECTIONS)


def _free_address(host: str, port: int) -> str:
    """``host`` as an IP address; raises if somebody listens there: the server itself would share the port with them."""
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
    return str(address[0])


def _leave_with_parent(parent: int) -> None:
    """End this worker when its parent is gone, killed without a chance to say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
