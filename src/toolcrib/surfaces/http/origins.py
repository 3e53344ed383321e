"""Which hosts and which web pages a request may come from.

On loopback every program of the machine may call, and so may any web page in its browser unless it is kept out: a
page can send requests here (they carry its ``Origin``), or let its own name resolve to 127.0.0.1 (they carry its
``Host``). Both are refused.
"""

from __future__ import annotations

from toolcrib.core.addresses import is_loopback
from toolcrib.surfaces.http.errors import ForeignHostError, ForeignOriginError

_KNOWN, _HOST_LENGTH = 1000, 300


def host_name(host: str) -> str:
    """``Host`` without its port, lower case: ``[::1]:8000`` is ``::1``."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


class Origins:
    """``hosts``: names beside loopback's, ``*`` for any; ``origins``: web pages that may call from elsewhere."""

    def __init__(self, hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> None:
        self._any_host = "*" in hosts
        self._hosts = frozenset(name.lower() for name in hosts)
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._known: set[str] = set()

    def check(self, host: str, origin: str, fetch_site: str, fetch_mode: str, method: str) -> None:
        """Raises ForeignHostError or ForeignOriginError."""
        if host not in self._known:
            self._check_host(host)
        if origin:
            self._check_origin(origin, host)
        elif fetch_site in ("cross-site", "same-site") and not (fetch_mode == "navigate" and method == "GET"):
            raise ForeignOriginError("a web page of another origin may not call this service", rule="origin")

    def _check_host(self, host: str) -> None:
        name = host_name(host)
        if not (self._any_host or name in self._hosts or is_loopback(name)):
            raise ForeignHostError(
                f"{name!r:.80} is not a host of this service; to serve it, add it to the setting 'allowed_hosts'"
            )
        if len(self._known) < _KNOWN and len(host) <= _HOST_LENGTH:
            self._known.add(host)

    def _check_origin(self, origin: str, host: str) -> None:
        given = origin.lower()
        if given in self._origins or "*" in self._origins:
            return
        if given in (f"http://{host.lower()}", f"https://{host.lower()}"):  # compared, not read: a stranger wrote it
            return
        raise ForeignOriginError(
            f"a web page of {origin!r:.80} may not call this service; to let it, add it to 'allowed_origins'",
            rule="origin",
        )
