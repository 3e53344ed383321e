"""The sandbox that bundles run in and their way out of it, by the settings."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolcrib.adapters.files import folder_path
from toolcrib.bootstrap.stores import audit_file, store_file
from toolcrib.calling.blocking import look_up
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.runners.network import Proxies
    from toolcrib.adapters.runners.sandbox import Sandbox

_MOST_CONNECTIONS = 32
"""Of one bundle at once."""


def open_sandbox(settings: Settings) -> Sandbox:
    """Nothing is started before the first run, or before its walls are asked for."""
    from toolcrib.adapters.runners.sandbox import Sandbox

    return Sandbox(isolation=settings.bundle_isolation, hidden=own_places(settings))


def open_proxies(settings: Settings) -> Proxies | None:
    """What answers at the way out of bundles that ask for the network; None if they get none."""
    if not settings.bundle_network:
        return None
    from toolcrib.toolsets.browser.guard import GuardProxy

    rules = AddressRules(
        settings.allowed_addresses, (*settings.denied_addresses, *own_addresses(settings)), public_only=True
    )
    return lambda only: GuardProxy(rules, only=only, most=_MOST_CONNECTIONS, lookup=look_up)


def own_addresses(settings: Settings) -> list[str]:
    """Where the service itself listens, as it may be written: no bundle reaches it, whatever else it may reach."""
    hosts = {"localhost", "127.0.0.0/8", "0.0.0.0/8", "[::1]", "[::]", _bracketed(settings.host)}
    with suppress(OSError):
        name = socket.gethostname()
        hosts |= {_bracketed(str(entry[4][0]).partition("%")[0]) for entry in socket.getaddrinfo(name, None)}
    hosts |= set(map(_bracketed, _addresses()))
    own = [f"{host}:{settings.port}" for host in sorted(hosts)]
    public = urlsplit(settings.public_url)
    return [*own, public.netloc] if public.netloc else own


def _addresses() -> Iterator[str]:
    """Those of this machine, as Linux lists them: its name need not lead to all of them."""
    with suppress(OSError):
        lines = Path("/proc/net/fib_trie").read_text("ascii").splitlines()
        yield from (above.split()[-1] for above, line in pairwise(lines) if "host LOCAL" in line)
    with suppress(OSError):
        lines = Path("/proc/net/if_inet6").read_text("ascii").splitlines()
        yield from (str(IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def own_places(settings: Settings) -> list[Path]:
    """What is the service's own on this machine's disk: no bundle sees it, even in a folder that they all see."""
    files = [*_kept(settings), Path(settings.env_file).expanduser(), *_configured(settings)]
    beside = [other for file in files if file.is_file() for other in file.parent.glob(f"{file.name}*")]
    return [settings.data_folder, *(file for file in files if file.is_dir() and file != Path("/")), *beside]


def _kept(settings: Settings) -> Iterator[Path]:
    """The store with its audit, and the blobs, where they are on this machine's disk."""
    with suppress(SettingsError):
        yield from (store_file(settings.store_url), audit_file(settings.store_url))
    with suppress(SettingsError):
        yield folder_path(settings.blobs_url)


def _configured(settings: Settings) -> list[Path]:
    """The files that settings came from."""
    return [Path(source) for source in set(settings.sources.values()) if Path(source).is_file()]
