"""Bundles: what an upload goes through before its code is kept."""

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from tests.attacks.fuzz.target import Attack, Fault, Target, refusing
from tests.support.archives import SPEC, bundle, member, python_code, raw_zip, zipped

from toolcrib.formats.archives import ArchiveLimits
from toolcrib.formats.bundle import BundleLimits, read_bundle

_LIMITS = BundleLimits(ArchiveLimits(max_bytes=4_000_000, max_members=500), 100_000, 100_000)


def _stored() -> bytes:
    """Nothing compressed, so that a changed byte arrives as it is; the checksums are only looked at afterwards."""
    return raw_zip(
        [
            member(b"spec.json", json.dumps(SPEC).encode()),
            member(b"tool.zip", raw_zip([member(b"code/function.py"), member(b"code/a/b.txt", b"y" * 50)])),
            member(b"tool.md", "# Ünïcode\n".encode()),
        ]
    )


def _long() -> bytes:
    """The first member with its sizes and its place in 64 bits, as large archives have them."""
    content = bundle()
    at, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    packed, size, name_length = struct.unpack_from("<IIH", content, at + 20)
    entry = bytearray(content[at : at + 46 + name_length])
    extra = struct.pack("<HHQQQ", 1, 24, size, packed, 0)
    entry[20:28], entry[42:46] = b"\xff" * 8, b"\xff" * 4
    entry[30:32] = struct.pack("<H", len(extra))
    directory = bytes(entry) + extra + content[at + 46 + name_length : end]
    tail = bytearray(content[end:])
    tail[12:16] = struct.pack("<I", len(directory))
    return content[:at] + directory + bytes(tail)


@contextmanager
def _opened(folder: Path) -> Iterator[Attack]:
    def attack(content: bytes) -> None:
        """From files, as in the service: they refuse other offsets than memory does."""
        with TemporaryFile(dir=folder) as file, TemporaryFile(dir=folder) as code, refusing():
            file.write(content)
            file.seek(0)
            found = read_bundle(file, code, _LIMITS)
            kept = code.read()
            if hashlib.sha256(kept).hexdigest() != found.digest or found.size != len(kept):
                raise Fault("the digest is not the code's")

    yield attack


TARGET = Target(
    "archives",
    (
        bundle(),
        _stored(),
        _long(),
        bundle(code=python_code(requirements="requests\n" * 5), LICENSE="x"),
        bundle(code=zipped([("code/run.sh", "#!/bin/sh\n"), ("code/", "")])),
        raw_zip([member(b"spec.json", method=8, packed=b"\x03\x00", content=b"")]),
    ),
    (
        b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08", b"spec.json",
        b"tool.zip",
        b"tool.md", b"../", b"\0\0\x01\0", b"\xff\xff", b"\xff\xff\xff\xff", b"\x08\0", b"\x0e\0", b"\x01\0\x18\0",
        b"\x01\x99", b"\0\0\0\xa0",
    ),
    _opened,
    20_000,
)  # fmt: skip
