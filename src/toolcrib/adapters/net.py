"""Which addresses a request may reach that somebody else's record asked for.

A catalogued tool names the address it is served from, so whoever may publish could make the service call its own
neighbours. The guard judges the resolved address, not the name, and the caller connects to that very address: a name
that resolves to something else a moment later gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from toolcrib.core.errors import DeniedError, SettingsError, ToolValidationError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_INTERNAL_ALL_THE_SAME = (
    ipaddress.ip_network("192.0.0.0/24"),  # protocol assignments: Python's opinion of it depends on its version
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's platform, answered by the hypervisor
)
_URL_SAFE = "%/:@!$&'()*+,;=~-._"


class EgressGuard:
    """Refuses every address that is not public, except what ``allow`` lists.

    An entry is an address (``10.1.2.3``), a network (``10.0.0.0/8``) or a host name, each with ``:port`` where only
    that port is meant (``127.0.0.1:8080``, ``[::1]:8080``, ``tools.internal:443``).
    """

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._rules = tuple(_Rule.parse(entry) for entry in allow)

    def check(self, host: str, port: int, address: str) -> None:
        """DeniedError where ``address``, which ``host`` resolved to, may not be reached."""
        ip = ipaddress.ip_address(address.partition("%")[0])
        if is_public(ip) or any(rule.covers(host, port, ip) for rule in self._rules):
            return
        resolved = "" if host == address else f", which is {address}"
        raise DeniedError(
            f"{host!r}{resolved} is not a public address; list it in the allowed addresses if tools may call it",
            rule="egress",
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    host: str
    network: _Network | None
    port: int | None

    @classmethod
    def parse(cls, entry: str) -> _Rule:
        text = entry.strip().lower()
        target, port = _split_port(text)
        try:
            return cls("", ipaddress.ip_network(target, strict=False), port)
        except ValueError:
            pass
        if not target or not all(re.fullmatch(r"[\w-]+", part) for part in target.rstrip(".").split(".")):
            raise SettingsError(
                f"{entry!r} is not an address to allow; use an IP address, a network such as '10.0.0.0/8' or a host "
                "name, with ':port' where only one port is meant"
            )
        return cls(target.rstrip("."), None, port)

    def covers(self, host: str, port: int, ip: IPAddress) -> bool:
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            return any(form in self.network for form in _forms(ip))
        return self.host == host.lower().rstrip(".")


def is_public(ip: IPAddress) -> bool:
    """Whether anybody on the internet could be reached there; an IPv4 address inside an IPv6 one counts too."""
    return all(
        form.is_global and not form.is_multicast and not any(form in network for network in _INTERNAL_ALL_THE_SAME)
        for form in _forms(ip)
    )


def check_url(url: str) -> SplitResult:
    """The parts of an http or https address in ASCII, or ToolValidationError."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError:
        raise ToolValidationError(f"{url!r} is not an http or https address") from None
    if parts.scheme not in {"http", "https"} or not host or port == 0 or not url.isprintable() or " " in url:
        raise ToolValidationError(f"{url!r} is not an http or https address")
    if parts.username is not None:
        raise ToolValidationError(f"the address of {host!r} holds a user name; use credentials instead")
    netloc = f"[{host}]" if ":" in host else host
    return SplitResult(
        parts.scheme,
        netloc if port is None else f"{netloc}:{port}",
        quote(parts.path, safe=_URL_SAFE) or "/",
        quote(parts.query, safe=_URL_SAFE + "?"),
        "",
    )


def _forms(ip: IPAddress) -> tuple[IPAddress, ...]:
    """The address, or the IPv4 addresses that it stands for."""
    if isinstance(ip, ipaddress.IPv4Address):
        return (ip,)
    if ip.ipv4_mapped is not None:
        return (ip.ipv4_mapped,)
    if ip.sixtofour is not None:
        return (ip, ip.sixtofour)
    if ip.teredo is not None:
        return (ip, *ip.teredo)
    if ip in _NAT64:
        return (ip, ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return (ip,)


def _split_port(text: str) -> tuple[str, int | None]:
    target, colon, port = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        return text[1:-1], None
    bracketed = target.startswith("[") and target.endswith("]")
    if not colon or not port.isdigit() or (":" in target and not bracketed):
        return text, None
    return (target[1:-1] if bracketed else target), int(port)
