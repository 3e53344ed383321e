"""Row 20: whatever an archive's fields say, it is read or it is refused; nothing else comes out."""

import random
import struct
import tempfile
import zlib

import pytest
from tests.support.archives import bundle, python_code

from toolcrib import InvalidBundleError
from toolcrib.formats.archives import Archive
from toolcrib.formats.bundle import read_bundle

SEEDS = range(6_000, 8_000)
_ODD = (0, 1, 2, 20, 64, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1)
_NAMES = (b"a", b"b/c", b"\xc3\xa9", b"\xff\xfe", b"x\0y", b"../a", b"d/", b"a" * 300)


class Forger:
    """Writes archives byte by byte; any field may say something odd, as the seed has it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def archive(self) -> bytes:
        body, directory, count = b"", b"", self.random.randrange(1, 4)
        for _ in range(count):
            local, central = self._member(len(body))
            body, directory = body + local, directory + central
        ends = self._large_end(count, len(directory), len(body)) if self.random.random() < 0.4 else b""
        sizes = (self._field(len(directory), 32), self._field(len(body), 32), self._field(0, 16, 0.02))
        counts = (self._field(0, 16, 0.02), 0, self._field(count, 16), self._field(count, 16))
        return body + directory + ends + struct.pack("<4sHHHHIIH", b"PK\x05\x06", *counts, *sizes)

    def mutated(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.random.choice((1, 1, 2, 8))):
            at = self.random.randrange(len(changed))
            match self.random.randrange(4):
                case 0:
                    changed[at] ^= 1 << self.random.randrange(8)
                case 1:
                    del changed[at : at + self.random.randrange(1, 20)]
                case 2:
                    changed[at:at] = self.random.randbytes(self.random.randrange(1, 20))
                case _:
                    changed[at : at + 8] = self.random.choice((b"\xff", b"\0", b"\x7f")) * 8
            changed = changed or bytearray(b"P")
        return bytes(changed)

    def _field(self, right: int, bits: int, odds: float = 0.12) -> int:
        value = self.random.choice(_ODD) if self.random.random() < odds else right
        return value % (1 << bits)

    def _member(self, offset: int) -> tuple[bytes, bytes]:
        name = self.random.choice((*_NAMES, self.random.randbytes(3)))
        content = b"hello" * self.random.randrange(5)
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(content) + packer.flush()
        sums = ((zlib.crc32(content), 32, 0.05), (len(packed), 32, 0.08), (len(content), 32, 0.08))
        flags = self._field(self.random.choice((0, 0x800)), 16, 0.1)
        heads = [
            struct.pack("<HHHHH", self._field(20, 16, 0.05), flags, self._field(8, 16, 0.05), 0, 33)
            + struct.pack("<III", *(self._field(*told) for told in sums))
            for _ in range(2)
        ]
        extras = [self._extra(), self._extra()]
        lengths = [struct.pack("<HH", self._field(len(name), 16, 0.03), len(extra)) for extra in extras]
        local = b"PK\x03\x04" + heads[0] + lengths[0] + name + extras[0] + packed
        rest = struct.pack("<HHHII", 0, 0, 0, self._field(0o100644 << 16, 32, 0.05), self._field(offset, 32, 0.2))
        return local, b"PK\x01\x02\x14\x03" + heads[1] + lengths[1] + rest + name + extras[1]

    def _extra(self) -> bytes:
        if self.random.random() < 0.5:
            return b""
        body = b"".join(struct.pack("<Q", self._field(3, 64, 0.6)) for _ in range(self.random.randrange(4)))
        kind = self.random.choice((1, 1, 1, 0x7075, self.random.getrandbits(16)))
        return struct.pack("<HH", kind, self._field(len(body), 16, 0.1)) + body

    def _large_end(self, count: int, size: int, offset: int) -> bytes:
        fields = (44, self._field(45, 16), 45, 0, 0, *(self._field(told, 64) for told in (count, count, size, offset)))
        place = struct.pack("<4sIQI", b"PK\x06\x07", 0, self._field(size + offset, 64), 1)
        return struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", *fields) + place


def outcome(data: bytes) -> str:
    """What comes of it in a file, as an upload is one."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        try:
            archive = Archive(file, "the archive")
            archive.verify()
            assert all(archive.mode(name) >= 0 for name in archive.files)
        except InvalidBundleError:
            return "refused"
    return "read"


def test_odd_fields_are_refused_and_raise_nothing_else() -> None:
    outcomes = {outcome(Forger(seed).archive()) for seed in SEEDS}
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63, 2**64 - 1])
def test_a_member_beyond_the_end_of_every_file_is_refused(offset: int) -> None:
    extra = struct.pack("<HHQ", 1, 8, offset)
    local = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"a"
    central = b"PK\x01\x02" + struct.pack("<HHHHHHIIIHH", 0x314, 20, 0, 0, 0, 33, 0, 0, 0, 1, len(extra))
    central += struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, 0xFFFFFFFF) + b"a" + extra
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local), 0)
    assert outcome(local + central + end) == "refused"


def test_mutated_bundles_are_read_or_refused() -> None:
    good, code = bundle(), python_code()
    for seed in SEEDS:
        forger = Forger(seed)
        with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as unpacked:
            file.write(forger.mutated(good) if seed % 2 else bundle(code=forger.mutated(code)))
            file.seek(0)
            try:
                assert read_bundle(file, unpacked).digest
            except InvalidBundleError:
                pass
