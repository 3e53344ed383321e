"""What a bundle may be, and the sentence for everything that it may not."""

import hashlib
import io
import json
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.archives import SPEC, bundle, member, python_code, raw_zip, zipped

from toolcrib.core.errors import InvalidBundleError
from toolcrib.formats.archives import Archive, ArchiveLimits
from toolcrib.formats.bundle import Bundle, BundleLimits, blob_key, bundle_digest, bundle_link, read_bundle

FEW = ArchiveLimits(max_bytes=1_000_000, max_members=50, max_ratio=100)
SMALL = BundleLimits(FEW, 10_000, 10_000, code=FEW)


def read(content: bytes, limits: BundleLimits | None = None) -> Bundle:
    return read_bundle(io.BytesIO(content), io.BytesIO(), limits)


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def test_a_good_bundle() -> None:
    code = python_code()
    found = read(bundle(code=code, manual="# Handbuch für ☃\n"))
    assert found.entry == SPEC
    assert found.manual == "# Handbuch für ☃\n"
    assert found.digest == hashlib.sha256(code).hexdigest()
    assert found.size == len(code)
    assert found.code.read() == code


def test_a_byte_order_mark_and_other_files_do_no_harm() -> None:
    content = bundle(spec=b"\xef\xbb\xbf" + json.dumps(SPEC).encode(), README="hello")
    assert read(content).entry == SPEC


def wrong_bundles() -> dict[str, tuple[bytes, str]]:
    good = bundle()
    nested_json = '{"a":' * 91 + "1" + "}" * 91
    return {
        "not a zip": (b"hello", "not a ZIP archive"),
        "empty": (b"", "not a ZIP archive"),
        "cut short": (good[: len(good) // 2], "not a ZIP archive"),
        "no spec": (zipped({"tool.zip": python_code(), "tool.md": ""}), "no 'spec.json' at its root"),
        "no code": (zipped({"spec.json": "{}", "tool.md": ""}), "no 'tool.zip' at its root"),
        "no manual": (zipped({"spec.json": "{}", "tool.zip": python_code()}), "no 'tool.md' at its root"),
        "in a folder": (zipped({"x/spec.json": "{}"}), "at 'x/spec.json', so zip what is in the folder"),
        "spec is no json": (bundle(spec="{"), "'spec.json' is not JSON"),
        "spec is a list": (bundle(spec="[]"), "must hold a JSON object, not a list"),
        "spec is not utf-8": (bundle(spec=b'{"a": "\xff"}'), "'spec.json' in the bundle is not UTF-8"),
        "spec is deep": (bundle(spec=nested_json), "nested more than 90 deep"),
        "spec is very deep": (bundle(spec="[" * 4000 + "]" * 4000), "it is nested "),
        "spec has NaN": (bundle(spec='{"a": NaN}'), "nan is not a JSON number (at 'a')"),
        "spec has infinity": (bundle(spec='{"a": 1e999}'), "inf is not a JSON number"),
        "spec has a huge integer": (bundle(spec='{"a": 1' + "0" * 34 + "}"), "more than 34 digits"),
        "spec has endless digits": (bundle(spec='{"a": ' + "9" * 5000 + "}"), "is not JSON"),
        "spec has a key twice": (bundle(spec='{"a": 1, "a": 2}'), "the key 'a' stands twice"),
        "spec has half a pair": (bundle(spec='{"a": "\\ud800"}'), "half of a surrogate pair"),
        "spec key has half a pair": (bundle(spec='{"\\ud800": 1}'), "half of a surrogate pair"),
        "spec is large": (bundle(spec=" " * 20_000 + "{}"), "'spec.json' in the bundle is larger than 10,000"),
        "manual is large": (bundle(manual="y" * 20_000), "'tool.md' in the bundle is larger than 10,000"),
        "manual is not utf-8": (bundle(manual=b"\xff\xfe"), "'tool.md' in the bundle is not UTF-8"),
        "code is no zip": (bundle(code=b"#!/bin/sh\n"), "'tool.zip' is not a ZIP archive"),
        "code leaves its folder": (bundle(code=zipped({"../x": "1"})), "'../x' in 'tool.zip' leaves its folder"),
        "code has many members": (bundle(code=zipped({f"f{i}": "" for i in range(51)})), "'tool.zip' has more than 50"),
        "code is a bomb": (bundle(code=zipped({"bomb": b"\0" * 1_100_000})), "more than 100 times its size"),
        "code is large": (bundle(code=zipped({f"f{i}": b"ab" * 150_000 for i in range(4)})), "unpacks to more than"),
    }  # fmt: skip


@pytest.mark.parametrize(("content", "sentence"), wrong_bundles().values(), ids=wrong_bundles())
def test_a_wrong_bundle_is_refused_in_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(InvalidBundleError) as caught:
        read(content, SMALL)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def wrong_archives() -> dict[str, tuple[bytes, str]]:
    plain = member(b"a")
    bomb = deflated(b"\0" * 3_000_000)
    lying = member(b"a", b"\0" * 3_000_000, method=8, size=10, packed=bomb)
    many = [member(b"f%d" % i) for i in range(60)]
    return {
        "parent": (raw_zip([member(b"../a")]), "leaves its folder"),
        "parent inside": (raw_zip([member(b"a/../../b")]), "leaves its folder"),
        "this folder": (raw_zip([member(b"./a")]), "leaves its folder"),
        "absolute": (raw_zip([member(b"/etc/passwd")]), "leaves its folder"),
        "empty part": (raw_zip([member(b"a//b")]), "leaves its folder"),
        "no name": (raw_zip([member(b"")]), "leaves its folder"),
        "backslash": (raw_zip([member(b"a\\..\\b")]), "'\\' or ':'"),
        "drive": (raw_zip([member(b"C:/x")]), "'\\' or ':'"),
        "stream": (raw_zip([member(b"a:stream")]), "'\\' or ':'"),
        "nul": (raw_zip([member(b"a\0.py")]), "control characters"),
        "newline": (raw_zip([member(b"a\nb")]), "control characters"),
        "not utf-8": (raw_zip([member(b"\xff\xfe", flags=0x800)]), "not a ZIP archive that can be read"),
        "long": (raw_zip([member(b"a" * 300)]), "too long a name"),
        "deep": (raw_zip([member(b"d/" * 40 + b"a")]), "more than 32 folders deep"),
        "twice": (raw_zip([plain, member(b"a")]), "twice"),
        "twice by case": (raw_zip([plain, member(b"A")]), "twice"),
        "twice by accent": (raw_zip([member(name.encode(), flags=0x800) for name in ("é", "e\u0301")]), "twice"),
        "file and folder": (raw_zip([plain, member(b"a/b")]), "a file and a folder"),
        "folder and file": (raw_zip([member(b"a/b"), plain]), "a file and a folder"),
        "link": (raw_zip([member(b"a", b"/etc/passwd", mode=stat.S_IFLNK | 0o777)]), "is a link"),
        "device": (raw_zip([member(b"a", mode=stat.S_IFCHR | 0o666)]), "is a device"),
        "pipe": (raw_zip([member(b"a", mode=stat.S_IFIFO | 0o666)]), "is a device or pipe"),
        "encrypted": (raw_zip([member(b"a", flags=1)]), "is encrypted"),
        "strongly encrypted": (raw_zip([member(b"a", flags=0x41)]), "is encrypted"),
        "lzma": (raw_zip([member(b"a", method=14)]), "compressed by method 14"),
        "overlapping": (raw_zip([member(b"a%d" % i) for i in range(3)], shared_offset=True), "overlaps another"),
        "over the directory": (longer_than_it_is(), "overlaps its directory"),
        "many": (raw_zip(many), "more than 50 members"),
        "many but says few": (raw_zip(many, claimed_count=1), "more than 50 members"),
        "thousands": (raw_zip([member(b"%x" % i) for i in range(3000)]), "more than 50 members"),
        "bomb that lies": (raw_zip([lying]), "damaged"),
        "wrong checksum": (raw_zip([member(b"a", b"x", packed=b"y")]), "damaged"),
        "broken stream": (raw_zip([member(b"a", b"x" * 9, method=8, packed=b"\xff" * 9)]), "damaged"),
        "other local name": (raw_zip([member(b"aaaa")]).replace(b"aaaa", b"bbbb", 1), "damaged"),
    }  # fmt: skip


def longer_than_it_is() -> bytes:
    content = bytearray(raw_zip([member(b"a", b"x")]))
    directory = content.index(b"PK\x01\x02")
    content[directory + 20 : directory + 28] = (500).to_bytes(4, "little") * 2
    return bytes(content)


@pytest.mark.parametrize(("content", "sentence"), wrong_archives().values(), ids=wrong_archives())
def test_a_hostile_archive_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(InvalidBundleError) as caught:
        Archive(io.BytesIO(content), "the archive", SMALL.archive).verify()
    assert sentence in str(caught.value)


def test_a_bomb_in_a_bomb_is_never_unpacked() -> None:
    """Archives inside the code are just files: forty-two of them unpack to what they are."""
    bomb = zipped({"x": b"\0" * 900_000})
    code = zipped({f"lib{i}.zip": bomb for i in range(42)})
    assert read(bundle(code=code), SMALL).digest == hashlib.sha256(code).hexdigest()


def test_what_other_programs_write_can_be_read(tmp_path: Path) -> None:
    target = tmp_path / "a.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("code")
        archive.writestr("code/ünïcode.txt", "x")
        with archive.open("code/streamed.bin", "w", force_zip64=True) as file:
            file.write(b"y" * 1000)
    with target.open("rb") as opened:
        found = Archive(opened, "the archive")
        found.verify()
        assert found.files == ["code/ünïcode.txt", "code/streamed.bin"]


@given(st.binary(max_size=400))
def test_no_bytes_crash_the_reader(content: bytes) -> None:
    with pytest.raises(InvalidBundleError):
        read(content)


@given(st.data())
def test_no_damage_crashes_the_reader(data: st.DataObject) -> None:
    content = bytearray(bundle())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(bytes(content))
    except InvalidBundleError:
        return
    assert found.digest == hashlib.sha256(found.code.read()).hexdigest()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_any_json_object_comes_back(entry: dict[str, Any]) -> None:
    assert read(bundle(spec=json.dumps(entry))).entry == entry


def test_the_link_says_the_digest() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    assert bundle_digest(bundle_link("https://tools.example.org/", digest)) == digest
    assert bundle_digest(bundle_link("", digest)) == digest
    assert blob_key(digest) == f"sha256/{digest[:2]}/{digest}"
    for other in (
        "",
        "https://example.org/tool.zip",
        f"https://x/bundles/{digest[:-1]}/tool.zip",
        f"/bundles/{digest}/tool.zip\n",
    ):
        assert bundle_digest(other) is None
