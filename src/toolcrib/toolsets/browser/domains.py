"""Which hosts a browser may talk to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from toolcrib import SettingsError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


@dataclass(frozen=True, slots=True)
class _Pattern:
    text: str
    host: str = ""
    port: int | None = None
    only_below: bool = False
    network: _Network | None = None

    @classmethod
    def parse(cls, text: str) -> _Pattern:
        given = text.strip().lower()
        if (address := _address(given)) is not None:
            return cls(text, network=ipaddress.ip_network(address))
        if "/" in given and "://" not in given:
            try:
                return cls(text, network=ipaddress.ip_network(given, strict=False))
            except ValueError:
                raise SettingsError(
                    f"the domain rule {text!r} is neither a host nor a network such as 10.0.0.0/8"
                ) from None
        try:
            parts = urlsplit(given if "://" in given else f"//{given}")
            host, port = parts.hostname or "", parts.port
            extra = parts.path.strip("/") + parts.query
        except ValueError:
            host, port, extra = "", None, ""
        if not host or extra:
            raise SettingsError(
                f"the domain rule {text!r} is not a host; write it like 'example.com' or '*.example.com:8080'"
            )
        if host == "*":
            return cls(text, host="", port=port)
        below = host.startswith("*.")
        return cls(text, host=host.removeprefix("*."), port=port, only_below=below)

    def matches(self, host: str, port: int | None) -> bool:
        if self.port is not None and port != self.port:
            return False
        if self.network is not None:
            address = _address(host)
            return address is not None and address in self.network
        if not self.host:
            return True
        if host == self.host:
            return not self.only_below
        return _address(host) is None and host.endswith(f".{self.host}")


@dataclass(frozen=True, slots=True)
class DomainRules:
    """``allow`` empty means every host; ``deny`` wins over ``allow``.

    A rule is a host (``example.com`` covers its subdomains, ``*.example.com`` only those), optionally with a port, an
    address, or a network (``10.0.0.0/8``), which is also held against the addresses that names resolve to.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    _allow: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)
    _deny: tuple[_Pattern, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("allow", "deny"):
            given = getattr(self, name)
            texts = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, name, texts)
            object.__setattr__(self, f"_{name}", tuple(_Pattern.parse(text) for text in texts))

    def __bool__(self) -> bool:
        return bool(self.allow or self.deny)

    def why_not(self, host: str, port: int | None = None) -> str:
        """The rule that refuses the host, in words; empty where nothing does."""
        host = host.lower().rstrip(".").strip("[]")
        for pattern in self._deny:
            if pattern.matches(host, port):
                return f"{_shown(host, port)} is denied by the rule {pattern.text!r}"
        if self._allow and not any(pattern.matches(host, port) for pattern in self._allow):
            return f"{_shown(host, port)} is not among the allowed domains ({', '.join(self.allow)})"
        return ""

    def why_not_address(self, host: str, addresses: Iterable[str]) -> str:
        """The rule that refuses a host for an address its name resolves to."""
        for address in addresses:
            for pattern in self._deny:
                if pattern.network is not None and pattern.matches(address, None):
                    return f"{host} resolves to {address}, which is denied by the rule {pattern.text!r}"
        return ""

    def why_not_url(self, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in _DEFAULT_PORTS:
            return ""
        return self.why_not(parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme])


def host_matches(host: str, patterns: Iterable[str]) -> bool:
    """Whether the host is one of those that the patterns name."""
    return any(_Pattern.parse(pattern).matches(host.lower(), None) for pattern in patterns)


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _shown(host: str, port: int | None) -> str:
    return host if port in (None, 80, 443) else f"{host}:{port}"
