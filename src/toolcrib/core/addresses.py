"""Who may be reached: the one rule about addresses, for HTTP tools, webhooks, MCP, the browser and the pipelines.

A host is read as a browser reads it (the WHATWG URL standard), so that every spelling of an address gets the same
verdict. A rule judges a name before it is looked up and each of its addresses after that; whoever connects uses the
addresses that were judged and does not look the name up again.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from toolcrib.core.errors import DeniedError, SettingsError
from toolcrib.core.json import MASK

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Lookup = Callable[[str, int], Awaitable[Sequence[Any]]]
"""Finds the addresses of a name, as the event loop's ``getaddrinfo`` does."""

WEB_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_IPV4_AT_THE_END = (
    ipaddress.IPv6Network("::ffff:0:0/96"),  # mapped
    ipaddress.IPv6Network("::/96"),  # compatible, no longer in use
    ipaddress.IPv6Network("64:ff9b::/96"),  # NAT64
)
_INTERNAL_ALL_THE_SAME = (
    ipaddress.ip_network("192.0.0.0/24"),  # protocol assignments: Python's opinion of them depends on its version
    ipaddress.ip_network("2001::/23"),
    ipaddress.ip_network("192.88.99.0/24"),  # relays of 6to4, no longer in use
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's platform, answered by the hypervisor
    ipaddress.ip_network("3fff::/20"),  # documentation, unknown to older Pythons
)
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f#/:<>?@\[\\\]^|%]")
_NUMBER = re.compile(r"0x[0-9a-f]*|0[0-7]*|[1-9][0-9]*")
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?")
_PASSWORD = re.compile(r"(?<=://)([^/?#\s:@]*):[^/\s]*(?=@)")
"""Of MongoDB's addresses a password may hold ``?`` and ``#`` as they are."""
_URL = re.compile(r"\s*(?:https?:|[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
_URL_SAFE = "%/:@!$&'()*+,;=~-._"
_ENTRY = re.compile(r"(?P<target>\[[^\]]*\]|[^:]*):(?P<port>[0-9]{1,5})")


def read_host(text: str) -> str | IPAddress:
    """The host as a browser reads it: a name in ASCII and lower case, or an address. ValueError if it is neither.

    Names that nobody could look up are refused, though a browser would read them.
    """
    if text.startswith("["):
        if not text.endswith("]") or "%" in text:
            raise ValueError(f"{text!r} is not an IPv6 address")
        return ipaddress.IPv6Address(text[1:-1])
    name = _ascii(unquote_to_bytes(text).decode("utf-8", "replace"))
    parts = name.removesuffix(".").split(".")
    if _FORBIDDEN.search(name) or not all(0 < len(part) < 64 for part in parts):
        raise ValueError(f"{text!r} is not a host")
    if parts[-1].isdigit() or re.fullmatch(r"0x[0-9a-f]*", parts[-1]):
        return _ipv4(parts)
    return name


def read_url(url: str) -> tuple[str, str | IPAddress, int]:
    """Scheme, host and port of a web address as a browser reads it; ValueError if it is none."""
    scheme, _, place = _split(url)
    found = _AUTHORITY.fullmatch(place) if scheme in WEB_PORTS else None
    port = int(found[2] or WEB_PORTS[scheme]) if found else -1
    if found is None or port > 65535:
        raise ValueError(f"{url!r} is not a web address")
    return scheme, read_host(found[1]), port


def is_url(text: str) -> bool:
    """Whether a text that may also be a command is meant as an address."""
    return _URL.match(text) is not None


def check_service_url(url: str) -> SplitResult:
    """The parts of a service's http or https address in ASCII, as they are requested; ValueError says what is wrong."""
    scheme, user, place = _split(url)
    shown = f"{mask_passwords(url)!r:.200}"
    wrong = f"{shown} is not an http or https address, such as 'https://host/path'"
    if scheme not in {"http", "https"}:
        raise ValueError(wrong)
    if user:
        raise ValueError(f"the address of {place!r:.200} holds a user name; use credentials instead")
    if " " in url or not url.isprintable():
        raise ValueError(f"{shown} holds a blank or a control character; write it with %, such as %20")
    if "\\" in url:
        raise ValueError(f"{shown} holds a backslash; write / instead, or %5C if it is meant")
    try:
        parts = urlsplit(url)
        _, host, port = read_url(url)
    except ValueError:
        raise ValueError(wrong) from None
    if not parts.netloc:
        raise ValueError(wrong)
    if port == 0:
        raise ValueError(f"{shown} has port 0, which no service can listen on; name another port")
    netloc = f"[{host}]" if isinstance(host, ipaddress.IPv6Address) else str(host)
    return SplitResult(
        scheme,
        netloc if parts.port is None else f"{netloc}:{port}",
        quote(parts.path, safe=_URL_SAFE) or "/",
        quote(parts.query, safe=_URL_SAFE + "?"),
        "",
    )


def is_public(ip: IPAddress) -> bool:
    """Whether anybody on the internet could be reached there; an IPv4 address inside an IPv6 one counts too."""
    inner = _inner(ip)
    if inner is not None and not is_public(inner):
        return False
    if isinstance(ip, ipaddress.IPv6Address) and (ip.sixtofour or ip not in _GLOBAL_IPV6):
        return inner is not None
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _INTERNAL_ALL_THE_SAME)


def is_loopback(host: str) -> bool:
    """Whether a host, however it is written, is the machine itself and nobody else."""
    try:
        read = _read(host)
    except ValueError:
        return False
    if isinstance(read, str):
        return f".{read.removesuffix('.')}".endswith(".localhost")
    inner = _inner(read)
    return read.is_loopback or (inner is not None and inner.is_loopback)


def mask_passwords(text: str) -> str:
    """``text`` as it may be shown: the passwords of the addresses in it are masked."""
    return _PASSWORD.sub(rf"\1:{MASK}", text)


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which hosts may be reached, at which ports. Without any rule, all of them.

    An entry is a host name (``example.com`` covers its subdomains, ``*.example.com`` only those), an IP address, a
    network (``10.0.0.0/8``) or ``*``, each with ``:port`` if only that port is meant. ``deny`` wins. With
    ``public_only``, every public address may be reached, and what ``allow`` lists even if it is not public. Without,
    an ``allow`` that is not empty lists all that may be reached, and a name that it lacks is not let through for
    its addresses.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    public_only: bool = False
    _allow: tuple[_Entry, ...] = field(init=False, repr=False, compare=False)
    _deny: tuple[_Entry, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("allow", "deny"):
            given = getattr(self, name)
            texts = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, name, texts)
            object.__setattr__(self, f"_{name}", tuple(_Entry.parse(text) for text in texts))

    @staticmethod
    def in_force() -> AddressRules:
        """The rules that hold where this code runs: those of the fence around it, or none in one's own program."""
        return _in_force.get()

    def __bool__(self) -> bool:
        return bool(self.allow or self.deny or self.public_only)

    def refusal(self, host: str, port: int | None = None, addresses: Iterable[str] | None = None) -> str:
        """Why the host may not be reached, in a sentence; empty if it may.

        Without the ``addresses`` of a name, it is refused only if no address could make it right.
        """
        try:
            target = _read(host)
        except ValueError as error:
            return str(error)
        judged: list[IPAddress | None] = [None if isinstance(target, str) else target]
        if isinstance(target, str) and addresses is not None:
            judged = [ipaddress.ip_address(address.partition("%")[0]) for address in addresses]
        return next(filter(None, (self._refusal(target, port, ip) for ip in judged)), "")

    def refusal_of_url(self, url: str) -> str:
        """Why a web address may not be opened, before its name is looked up; empty if it may."""
        try:
            _, host, port = read_url(url)
        except ValueError as error:
            return str(error) if self else ""
        return self.refusal(str(host), port)

    async def resolve(self, host: str, port: int, lookup: Lookup) -> list[str]:
        """The addresses of the host, looked up once and judged: connect to these. DeniedError if one is refused."""
        self._check(host, port, None)
        target = _read(host)
        if not isinstance(target, str):
            return [str(target)]
        found = await lookup(target, port)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        self._check(host, port, addresses)
        return addresses

    def _check(self, host: str, port: int, addresses: Sequence[str] | None) -> None:
        if refusal := self.refusal(host, port, addresses):
            raise DeniedError(refusal, rule="egress")

    def _refusal(self, host: str | IPAddress, port: int | None, ip: IPAddress | None) -> str:
        """The verdict on one address, or on a name whose address is not known yet."""
        shown = _shown(host, port) + ("" if ip is None or ip == host else f", which is {ip},")
        if denied := next((entry for entry in self._deny if entry.covers(host, port, ip)), None):
            return f"{shown} is denied by the rule {denied.text!r}"
        counted = ip if self.public_only or ip == host else None
        if any(entry.covers(host, port, counted) for entry in self._allow):
            return ""
        if self.public_only and ip is not None and not is_public(ip):
            return (
                f"{shown} is not a public address; list it in the allowed addresses (TOOLCRIB_ALLOWED_ADDRESSES) "
                "if tools may reach it"
            )
        if self.public_only or not self._allow:
            return ""
        return f"{_shown(host, port)} is not among the allowed addresses ({', '.join(self.allow)})"


_EVERYTHING = AddressRules()
_in_force = ContextVar("address_rules", default=_EVERYTHING)


@contextmanager
def fence(rules: AddressRules) -> Iterator[None]:
    """Put the rules in force for what runs inside, in its tasks and in threads that take over its context."""
    token = _in_force.set(rules)
    try:
        yield
    finally:
        _in_force.reset(token)


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    name: str = ""
    only_below: bool = False
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> _Entry:
        given = text.strip()
        found = _ENTRY.fullmatch(given)
        target, port = (found["target"], int(found["port"])) if found else (given, None)
        bare = target.removeprefix("[").removesuffix("]")
        try:
            if target == "*":
                return cls(text, port=port)
            if "/" in bare:
                return cls(text, network=ipaddress.ip_network(bare, strict=False), port=port)
            host = _read(target.removeprefix("*."))
            if isinstance(host, str):
                return cls(text, host.rstrip("."), target.startswith("*."), port=port)
            return cls(text, network=ipaddress.ip_network(_inner(host) or host), port=port)
        except ValueError:
            raise SettingsError(
                f"the address rule {text!r} is not a host name, an IP address or a network; write it like "
                "'example.com', '*.example.com:8080' or '10.0.0.0/8'"
            ) from None

    def covers(self, host: str | IPAddress, port: int | None, ip: IPAddress | None) -> bool:
        if self.port not in (None, port):
            return False
        if (network := self.network) is not None:
            return ip is not None and any(form in network for form in (ip, _inner(ip)) if form is not None)
        if not self.name:
            return True
        if not isinstance(host, str):
            return False
        below = host.rstrip(".").endswith(f".{self.name}")
        return below or (not self.only_below and host.rstrip(".") == self.name)


def _split(url: str) -> tuple[str, str, str]:
    """Scheme, user information with its ``@``, and host with port, as a browser cuts a web address."""
    text = re.sub(r"[\t\n\r]", "", url.strip("".join(map(chr, range(0x21)))))
    scheme, _, rest = text.partition(":")
    user, at, place = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0].rpartition("@")
    return scheme.lower(), user + at, place


def _read(host: str) -> str | IPAddress:
    """A host as URLs hold it, or an IPv6 address without its brackets, as programs pass it on."""
    return read_host(f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host)


def _inner(ip: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if any(ip in network for network in _IPV4_AT_THE_END):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.sixtofour or (ip.teredo[1] if ip.teredo else None)


def _ascii(name: str) -> str:
    """The name as it is looked up (UTS 46). Refuses some symbols that browsers still take."""
    if name.isascii() and "xn--" not in name.lower():
        return name.lower()
    import idna  # most hosts never need its tables

    labels = idna.uts46_remap(name, std3_rules=False).split(".")
    return ".".join(
        label if label.isascii() and not label.startswith("xn--") else idna.alabel(label).decode() for label in labels
    )


def _ipv4(parts: Sequence[str]) -> ipaddress.IPv4Address:
    numbers = [_number(part) for part in parts]
    *first, last = numbers
    if len(numbers) > 4 or any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
        raise ValueError(f"{'.'.join(parts)!r} is not an IPv4 address")
    return ipaddress.IPv4Address(last + sum(number << 8 * (3 - place) for place, number in enumerate(first)))


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a part of an IPv4 address")
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def _shown(host: str | IPAddress, port: int | None) -> str:
    text = f"[{host}]" if isinstance(host, ipaddress.IPv6Address) else str(host)
    return repr(text if port in (None, 80, 443) else f"{text}:{port}")
