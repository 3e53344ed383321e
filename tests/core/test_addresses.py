"""Who may be reached: every spelling of an address gets the verdict of the address."""

import ipaddress
import json
import os
from collections.abc import Iterator
from pathlib import Path

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.core.addresses import (
    AddressRules,
    check_service_url,
    fence,
    is_loopback,
    is_public,
    mask_passwords,
    read_host,
    read_url,
)
from toolcrib.core.errors import DeniedError, SettingsError, ToolValidationError
from toolcrib.core.json import MASK
from toolcrib.core.spec import ToolSpec

PUBLIC_ONLY = AddressRules(public_only=True)

INTERNAL = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0",
    "192.0.0.192", "192.88.99.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "168.63.129.16", "::1", "::", "fe80::1", "fec0::1", "fd00:ec2::254", "ff02::1", "ff0e::1",
    "2001:db8::1", "3fff::1", "5f00::1", "100::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "::ffff:198.18.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::101:101", "2002:7f00:1::",
    "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:1::1", "2001:20::1",
]  # fmt: skip
PUBLIC = ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1", "2002:101:101::1"]

LOOPBACK = [
    "127.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "0x7f.1", "0x7F000001", "0177.0.0.01", "017700000001", "2130706433",
    "%31%32%37.1", "127。0。0。1", "１２７.０.０.１", "①②⑦.1", "127.0.0.1%2e", "[::1]", "[::ffff:127.0.0.1]",
    "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[2002:7f00:1::]", "[64:ff9b::127.0.0.1]", "[::127.0.0.1]",
]  # fmt: skip

WEB_ADDRESSES = {
    # what the WHATWG URL standard says of numbers, one rule a line
    "http://0.0.0.0": "0.0.0.0", "http://0": "0.0.0.0", "http://0x": "0.0.0.0", "http://1.2": "1.0.0.2",
    "http://1.2.3": "1.2.0.3", "http://1.256": "1.0.1.0", "http://256": "0.0.1.0",
    "http://4294967295": "255.255.255.255", "http://4294967296": None,
    "http://1.2.3.256": None, "http://256.1": None, "http://1.2.3.4.5": None,
    "http://1.2.3.08": None, "http://0x100000000": None, "http://1..2": None, "http://1.2.3.4..": None,
    "http://a..b": None,
    "http://foo.09": None, "http://foo.0x4": None, "http://foo.0x": None, "http://09.com": "09.com",
    "http://0xg": "0xg", "http://1e1": "1e1", "http://1.2.3.4a": "1.2.3.4a",
    # of letters
    f"http://{'a' * 64}.example": None, f"http://{'a' * 63}.example": f"{'a' * 63}.example",
    "http://EXAMPLE.com": "example.com", "http://ex%41mple.com": "example.com", "http://example.com.": "example.com.",
    "http://a_b.example": "a_b.example", "http://Bücher.example": "xn--bcher-kva.example",
    "http://faß.example": "xn--fa-hia.example", "http://b\u00adc.example": "bc.example", "http://\u00ad/": None,
    "http://xn--a/": None, "http://a%00b": None, "http://a%2fb": None, "http://a%25b": None, "http://a b": None,
    "http://a<b": None, "http://a^b": None, "http://a|b": None, "http://%80": None, "http://\ufffd": None,
    # of brackets
    "http://[::1]": "::1", "http://[::1%25eth0]": None, "http://[1::2::3]": None, "http://[::1": None,
    "http://::1": None, "http://[::1.2.3]": None, "http://[::01.2.3.4]": None, "http://[www.example]": None,
    "http://%5B::1%5D": None,
    # and of where a host begins and ends
    "http:example.com": "example.com", "http:/\\example.com": "example.com", "http:////example.com": "example.com",
    "http://example.com\\@127.0.0.1/": "example.com", "http://example.com@127.0.0.1/": "127.0.0.1",
    "http://a@b@127.0.0.1": "127.0.0.1", "http://127.0.0.1#@example.com": "127.0.0.1",
    "http://127.0.0.1?@example.com": "127.0.0.1", "  \x01http://127.1  ": "127.0.0.1", "ht\ntp://12\t7.1": "127.0.0.1",
    "HTTPS://example.com": "example.com", "wss://example.com": "example.com", "http://": None, "http://:80": None,
    "http://a:": "a", "http://a:65535": "a", "http://a:65536": None, "http://a:x": None, "http://a:1:2": None,
    "//example.com": None, "example.com": None, "file:///etc/passwd": None, "javascript:alert(1)": None, "": None,
}  # fmt: skip


def read(url: str) -> str | None:
    try:
        return str(read_url(url)[1])
    except ValueError:
        return None


@pytest.mark.parametrize(("url", "host"), WEB_ADDRESSES.items())
def test_a_host_is_read_as_a_browser_reads_it(url: str, host: str | None) -> None:
    assert read(url) == host


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://a", 80),
        ("https://a", 443),
        ("ws://a:", 80),
        ("wss://a", 443),
        ("http://a:0443", 443),
        ("http://a:0", 0),
    ],
)
def test_the_port(url: str, port: int) -> None:
    assert read_url(url)[2] == port


def agrees(url: str, expected: str | None) -> bool:
    """Whether we read the same host, or refuse what a browser would take."""
    ours = read(url)
    return ours is None or ours == (expected and _plain(expected))


def _plain(host: str) -> str:
    return str(ipaddress.IPv6Address(host[1:-1])) if host.startswith("[") else host


HOST_LETTERS = st.text(st.sampled_from("0123456789abcfxXnN.-_%[]:@/\\?#|<> \t。．１ａßÀ☃\u00ad\u200d"), max_size=20)


@given(st.sampled_from(["http://", "https://", "ws:", "http:/\\"]), HOST_LETTERS)
def test_ada_reads_the_same_host(start: str, rest: str) -> None:
    """Ada is the parser of Node.js; it passes the Web Platform Tests."""
    try:
        expected = ada_url.URL(start + rest).hostname
    except ValueError:
        expected = None
    assert agrees(start + rest, expected)


def web_platform_tests() -> Iterator[tuple[str, str | None]]:
    for case in json.loads(Path(os.environ["WPT_URLTESTDATA"]).read_bytes()):
        if isinstance(case, str) or (case.get("base") or "about:").startswith(("http", "ws")):
            continue
        if case.get("failure") or case["protocol"] in ("http:", "https:", "ws:", "wss:"):
            yield case["input"], case.get("hostname")


@pytest.mark.skipif("WPT_URLTESTDATA" not in os.environ, reason="WPT_URLTESTDATA names no urltestdata.json")
def test_the_web_platform_tests() -> None:
    """For who has the file ``url/resources/urltestdata.json`` of the Web Platform Tests; it is not kept here."""
    cases = list(web_platform_tests())
    assert len(cases) > 200
    assert [url for url, host in cases if not agrees(url, host)] == []


@pytest.mark.parametrize("address", INTERNAL)
def test_internal_addresses_are_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    assert "is not a public address" in PUBLIC_ONLY.refusal("tools.example", 443, [address])
    assert "is not a public address" in PUBLIC_ONLY.refusal(address, 443)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_fine(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    assert PUBLIC_ONLY.refusal("tools.example", 443, [address]) == ""


@pytest.mark.parametrize("host", LOOPBACK)
def test_no_spelling_of_loopback_gets_through(host: str) -> None:
    assert "is not a public address" in PUBLIC_ONLY.refusal(host)
    assert "is not a public address" in PUBLIC_ONLY.refusal_of_url(f"http://{host}:8080/x")
    assert "is denied by the rule" in AddressRules(deny=("127.0.0.0/8", "::1")).refusal(host)
    assert AddressRules(("127.0.0.1", "::1")).refusal(host) == ""


def spellings(ip: ipaddress.IPv4Address) -> list[str]:
    number, parts = int(ip), ip.packed
    tails = [str(number), f"{parts[0]}.{number & 0xFFFFFF}", f"{parts[0]}.{parts[1]}.{number & 0xFFFF}", str(ip)]
    based = [".".join(form(part) for part in parts) for form in (hex, "0{:o}".format, "0X{:X}".format)]
    inner = f"{number >> 16:x}:{number & 0xFFFF:x}"
    wrapped = [f"[::ffff:{inner}]", f"[::ffff:{ip}]", f"[64:ff9b::{inner}]", f"[::{ip}]"]
    full_width = str(ip).translate({ord(digit): ord(digit) + 0xFEE0 for digit in "0123456789"})
    escaped = "".join(f"%{ord(letter):02x}" for letter in str(ip))
    return [*tails, *(f"{tail}." for tail in tails), hex(number), f"0{number:o}", *based, *wrapped, full_width, escaped]


@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_address_gets_the_same_verdict(ip: ipaddress.IPv4Address) -> None:
    narrow = AddressRules(deny=(f"{ip}/20",))
    for host in spellings(ip):
        assert (PUBLIC_ONLY.refusal(host) == "") == is_public(ip), host
        assert narrow.refusal(host) != "", host
        assert AddressRules((str(ip),)).refusal(host) == "", host
        assert AddressRules((host,)).refusal(str(ip)) == "", host


@given(st.ip_addresses(v=4))
def test_6to4_and_teredo_are_no_way_in(ip: ipaddress.IPv4Address) -> None:
    inner = int(ip)
    sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (inner << 80))
    teredo = ipaddress.IPv6Address((0x20010000 << 96) | (inner ^ 0xFFFFFFFF))
    for wrapped in (sixtofour, teredo):
        assert is_public(ip) or not is_public(wrapped)
        assert AddressRules(deny=(str(ip),)).refusal(str(wrapped)) != ""


@pytest.mark.parametrize(
    ("entry", "host", "port", "address", "allowed"),
    [
        ("10.0.0.0/8", "x", 80, "10.9.9.9", True),
        ("10.0.0.0/8", "x", 80, "192.168.0.1", False),
        ("10.0.0.0/8", "x", 80, "::ffff:10.9.9.9", True),
        ("10.0.0.0/8:443", "x", 80, "10.9.9.9", False),
        ("127.0.0.1:8080", "x", 8080, "127.0.0.1", True),
        ("127.0.0.1:8080", "x", 8081, "127.0.0.1", False),
        ("0x7f.1", "x", 80, "127.0.0.1", True),
        ("[::1]:8080", "x", 8080, "::1", True),
        ("[fd00::/8]:8080", "x", 8080, "fd00::1", True),
        ("[fd00::/8]:8080", "x", 80, "fd00::1", False),
        ("::1", "x", 99, "::1", True),
        ("fe80::/10", "x", 99, "fe80::1%eth0", True),
        ("Tools.Internal", "tools.internal.", 80, "10.0.0.1", True),
        ("tools.internal", "a.tools.internal", 80, "10.0.0.1", True),
        ("tools.internal", "eviltools.internal", 80, "10.0.0.1", False),
        ("*.tools.internal", "tools.internal", 80, "10.0.0.1", False),
        ("tools.internal:443", "tools.internal", 80, "10.0.0.1", False),
        ("bücher.internal", "xn--bcher-kva.internal", 80, "10.0.0.1", True),
        ("*", "x", 80, "10.0.0.1", True),
        ("*:443", "x", 80, "10.0.0.1", False),
    ],
)
def test_what_is_allowed_though_it_is_not_public(entry: str, host: str, port: int, address: str, allowed: bool) -> None:
    rules = AddressRules((entry,), public_only=True)
    assert (rules.refusal(host, port, [address]) == "") is allowed
    assert rules.refusal(host, port, ["1.1.1.1"]) == ""


@pytest.mark.parametrize(
    ("rules", "host", "port", "allowed"),
    [
        (AddressRules(), "anything.example", None, True),
        (AddressRules(("example.com",)), "example.com", 443, True),
        (AddressRules(("example.com",)), "www.Example.com.", 443, True),
        (AddressRules(("example.com",)), "notexample.com", 443, False),
        (AddressRules(("example.com",)), "example.com.evil.net", 443, False),
        (AddressRules(("*.example.com",)), "example.com", 443, False),
        (AddressRules(("*.example.com",)), "a.b.example.com", 443, True),
        (AddressRules(("example.com:8080",)), "example.com", 80, False),
        (AddressRules(("example.com:8080",)), "example.com", None, False),
        (AddressRules(("*",), deny=("evil.net",)), "www.evil.net", 80, False),
        (AddressRules(("example.com",), deny=("admin.example.com",)), "admin.example.com", 443, False),
        (AddressRules(deny=("10.0.0.0/8", "::1")), "10.1.2.3", 80, False),
        (AddressRules(deny=("10.0.0.0/8", "::1/128")), "[::1]", 80, False),
        (AddressRules(deny=("10.0.0.0/8",)), "11.1.2.3", 80, True),
        (AddressRules(deny=("1.1.1.1",), public_only=True), "1.1.1.1", 80, False),
        (AddressRules(("0.0.1",)), "127.0.0.1", 80, False),
        (AddressRules(("127.0.0.1",)), "localhost", 80, False),
        (AddressRules(("127.0.0.1",), public_only=True), "localhost", 80, True),  # until its addresses are known
        (AddressRules(("example.com",)), "a b", 80, False),
    ],
)
def test_a_name_before_it_is_looked_up(rules: AddressRules, host: str, port: int | None, allowed: bool) -> None:
    assert (rules.refusal(host, port) == "") is allowed


@pytest.mark.parametrize(
    "entry",
    ["", "http://", "http://x", "a/b/c", "example.com/path", "10.0.0.0/99", "a b", ".x", "*.", "1.2.3.256", "[x]"],
)
def test_a_rule_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(SettingsError, match="rule"):
        AddressRules((entry,))
    with pytest.raises(SettingsError, match="rule"):
        AddressRules(deny=(entry,))


def test_a_refusal_names_the_host_the_address_and_the_way_out() -> None:
    assert PUBLIC_ONLY.refusal("db.example", 5432, ["1.1.1.1", "10.0.0.1"]) == (
        "'db.example:5432', which is 10.0.0.1, is not a public address; list it in the allowed addresses "
        "(TOOLCRIB_ALLOWED_ADDRESSES) if tools may reach it"
    )
    assert AddressRules(deny=("10.0.0.0/8",)).refusal("db.example", 80, ["10.0.0.1"]) == (
        "'db.example', which is 10.0.0.1, is denied by the rule '10.0.0.0/8'"
    )
    assert AddressRules(("a.example", "b.example")).refusal("c.example", 443) == (
        "'c.example' is not among the allowed addresses (a.example, b.example)"
    )


def test_what_is_not_a_web_address_is_refused_if_there_are_rules() -> None:
    assert "not a web address" in PUBLIC_ONLY.refusal_of_url("file:///etc/passwd")
    assert AddressRules().refusal_of_url("file:///etc/passwd") == ""


def test_a_name_is_not_let_through_for_its_addresses_if_only_some_hosts_are_allowed() -> None:
    """Secrets are given out by this, before anything is looked up."""
    rules = AddressRules(("shop.example", "127.0.0.1"))
    assert rules.refusal("localhost", 80, ["127.0.0.1"]) == rules.refusal("localhost", 80) != ""
    assert rules.refusal("shop.example", 80, ["10.0.0.1"]) == ""
    assert rules.refusal_of_url("about:blank") != ""


async def test_a_name_is_looked_up_once_and_an_address_never() -> None:
    asked: list[tuple[str, int]] = []

    async def lookup(host: str, port: int) -> list[tuple[object, ...]]:
        asked.append((host, port))
        return [(0, kind, 0, "", (address, port)) for address in ("1.1.1.1", "1.0.0.1") for kind in (1, 2)]

    assert await PUBLIC_ONLY.resolve("Tools.Example", 80, lookup) == ["1.1.1.1", "1.0.0.1"]
    assert await PUBLIC_ONLY.resolve("0x1.1.1.1", 80, lookup) == ["1.1.1.1"]
    with pytest.raises(DeniedError) as refused:
        await PUBLIC_ONLY.resolve("127.1", 80, lookup)
    assert refused.value.rule == "egress"
    assert asked == [("tools.example", 80)]


async def test_one_bad_address_of_a_name_is_enough() -> None:
    async def lookup(_host: str, port: int) -> list[tuple[object, ...]]:
        return [(0, 1, 0, "", (address, port)) for address in ("1.1.1.1", "::ffff:10.0.0.1")]

    inner = ipaddress.ip_address("::ffff:10.0.0.1")  # which newer Pythons write in another way
    with pytest.raises(DeniedError, match=f"'tools.example', which is {inner}, is not a public address"):
        await PUBLIC_ONLY.resolve("tools.example", 80, lookup)


def test_a_fence_holds_inside_only() -> None:
    assert not AddressRules.in_force()
    with fence(PUBLIC_ONLY):
        assert AddressRules.in_force() is PUBLIC_ONLY
    assert not AddressRules.in_force()


def test_a_host_alone() -> None:
    assert read_host("[::1]") == ipaddress.IPv6Address("::1")
    with pytest.raises(ValueError, match="not a host"):
        read_host("")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "LocalHost.", "::1", "[::1]", "127.9.9.9", "a.localhost", "127.1", "::ffff:127.0.0.1"],
)
def test_loopback_in_every_spelling(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "example.org", "localhost.evil.org", "127.0.0.1.evil.org", "notlocalhost", "10.0.0.1", "", "a b"],
)
def test_hosts_that_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_the_passwords_of_addresses_are_masked() -> None:
    assert mask_passwords("mongodb://u:p@ss@h/d, s3://b") == f"mongodb://u:{MASK}@h/d, s3://b"
    assert mask_passwords("mongodb://u:p#s?s@h/d") == f"mongodb://u:{MASK}@h/d"
    assert mask_passwords("https://h/a:b@c") == "https://h/a:b@c"


NO_SERVICE = {
    "": "not an http or https address",
    "x": "not an http or https address",
    "ftp://x/": "not an http or https address",
    "ftp://user:geheim@x/": "not an http or https address",
    "ws://x/": "not an http or https address",
    "http://": "not an http or https address",
    "http://x:y/": "not an http or https address",
    "http://a..b/": "not an http or https address",
    "http:example.com/x": "not an http or https address",
    "http:///example.com/x": "not an http or https address",
    "https://user:geheim@example.com/x": "holds a user name; use credentials instead",
    "https:\\\\user:ge heim@example.com\\x": "holds a user name; use credentials instead",
    "https://@example.com/": "holds a user name; use credentials instead",
    "http://example.com:0/x": "port 0",
    "https://example.com/a b": "holds a blank",
    " https://example.com/x": "holds a blank",
    "http://x\n/": "holds a blank or a control character",
    "https:\\\\example.com\\x": "holds a backslash",
    "http:/\\\\x": "holds a backslash",
}


@pytest.mark.parametrize(("url", "why"), NO_SERVICE.items())
def test_an_address_that_nobody_can_call_is_refused_with_the_reason(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        check_service_url(url)
    assert "heim" not in str(caught.value)
    for binding in ({"service_url": url}, {"mcp": f"{url}#add"}):
        if url and (url != "x" or "mcp" not in binding):  # nothing is no binding, and a word is a command
            with pytest.raises(ToolValidationError, match=f"'binding.*{why}"):
                ToolSpec.parse({"name": "t", "description": "d", "binding": binding})


def test_an_address_is_requested_in_ascii_and_as_a_browser_reads_it() -> None:
    assert check_service_url("HTTPS://B\u00fccher.example/\u00e4?q=\u00e4#part").geturl() == (
        "https://xn--bcher-kva.example/%C3%A4?q=%C3%A4"
    )
    assert check_service_url("http://0x7f.1:8080").geturl() == "http://127.0.0.1:8080/"
    assert check_service_url("https://[0:0::1]/a%20b").geturl() == "https://[::1]/a%20b"


@pytest.mark.parametrize(
    "target", ["", "npx -y server", "run https://user:pw@example.com", "C:\\server.exe", "https://m/#x"]
)
def test_a_command_or_an_address_starts_an_mcp_server(target: str) -> None:
    assert ToolSpec.parse({"name": "t", "description": "d", "binding": {"mcp": target}}).binding.mcp == target
